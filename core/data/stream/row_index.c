/* row_index.c - see row_index.h. */
#include "core/data/stream/row_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/crc32c.h"
#include "core/base/files/own.h"
#include "core/base/files/replace.h"

enum { BLOCKS_GROW_MIN = 64, PATH_TEXT_MAX = 4096 };

void row_index_free(struct row_index *x)
{
    free(x->blocks);
    *x = (struct row_index){0};
}

/* ---- making ---- */

static err add_block(struct row_index *x, int64_t *capacity, const struct row_place *place)
{
    if (x->count == *capacity) {
        const int64_t more = *capacity ? 2 * *capacity : BLOCKS_GROW_MIN;
        struct row_block *blocks = realloc(x->blocks, (size_t)more * sizeof *blocks);
        if (!blocks) return fail(ERR_MEMORY, "no memory for an index of rows");
        x->blocks = blocks;
        *capacity = more;
    }
    x->blocks[x->count++] = (struct row_block){*place, x->rows};
    return OK;
}

static uint64_t block_bytes(const struct row_index *x)
{
    const uint64_t unpacked = x->state.bytes * (x->is_packed ? PACKED_RATIO : 1);
    const uint64_t bytes = unpacked / ROW_BLOCKS_MAX;
    return bytes > ROW_BLOCK_BYTES ? bytes : ROW_BLOCK_BYTES;
}

static err find_blocks(struct row_reader *reader, struct row_index *x)
{
    const uint64_t bytes = block_bytes(x);
    struct row_place place;
    int64_t capacity = 0;
    bool found;
    for (;; x->rows++) {
        TRY(reader->calls->skip(reader, &place, &found));
        if (!found) break;
        if (x->count == 0 || place.byte - x->blocks[x->count - 1].place.byte >= bytes)
            TRY(add_block(x, &capacity, &place));
    }
    return OK;
}

err row_index_make(struct row_reader *reader, struct row_index *ret)
{
    struct row_index x = {.is_packed = input_is_packed(reader->input)};
    err e = input_state(reader->input, &x.state);
    if (!e) e = find_blocks(reader, &x);
    if (!e) e = row_index_check(&x, reader);
    if (e)
        row_index_free(&x);
    else
        *ret = x;
    return e;
}

err row_index_check(const struct row_index *x, const struct row_reader *reader)
{
    struct file_state now;
    TRY(input_state(reader->input, &now));
    if (now.bytes != x->state.bytes)
        return fail(ERR_INPUT, "%s: changed while it is read: had %llu bytes, now %llu",
                    reader->name, (unsigned long long)x->state.bytes,
                    (unsigned long long)now.bytes);
    if (now.changed_s != x->state.changed_s || now.changed_ns != x->state.changed_ns)
        return fail(ERR_INPUT, "%s: changed while it is read: it was written to", reader->name);
    if (now.identity != x->state.identity)
        return fail(ERR_INPUT, "%s: changed while it is read: another file took its place",
                    reader->name);
    return OK;
}

/* ---- broken rows ---- */

static err count_good(struct row_reader *reader, struct columns *columns, void *const *to,
                      struct bad_rows *bad_rows, int64_t *ret)
{
    struct row row;
    bool found = true;
    err e = reader->calls->next(reader, &row, &found);
    if (e && !reader->is_row_broken) return e;
    if (!e && !found) return fail(ERR_INPUT, "%s: changed while it is read", reader->name);
    if (!e) e = columns_make(columns, reader, &row, to, 0);
    *ret += !e;
    if (!e) bad_rows_keep(bad_rows);
    return e ? bad_rows_leave_out(bad_rows, e) : OK;
}

err row_index_leave_out(struct row_index *x, struct row_reader *reader, struct columns *columns,
                        void *const *to, struct bad_rows *bad_rows)
{
    int64_t good = 0;
    TRY(reader->calls->seek(reader, &x->blocks[0].place));
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t end = i + 1 < x->count ? x->blocks[i + 1].first : x->rows;
        const int64_t rows = end - x->blocks[i].first;
        x->blocks[i].first = good;
        for (int64_t row = 0; row < rows; row++)
            TRY(count_good(reader, columns, to, bad_rows, &good));
    }
    x->rows = good;
    return OK;
}

/* If several blocks begin with the same row, the last one: the others are empty. */
int64_t row_index_block(const struct row_index *x, int64_t row)
{
    int64_t from = 0, to = x->count;
    while (to - from > 1) {
        const int64_t middle = (from + to) / 2;
        if (x->blocks[middle].first <= row)
            from = middle;
        else
            to = middle;
    }
    return from;
}

/* ---- saved: a head, the blocks, and a checksum of both; in this machine's byte order ---- */

struct index_head {
    char magic[8];
    uint64_t key;
    struct file_state state;
    int64_t count, rows, is_packed;
};
static const char MAGIC[8] = "dtrows2\n";

static struct index_head head_of(const struct row_index *x, uint64_t key)
{
    struct index_head head = {.key = key,
                              .state = x->state,
                              .count = x->count,
                              .rows = x->rows,
                              .is_packed = x->is_packed};
    memcpy(head.magic, MAGIC, sizeof head.magic);
    return head;
}

static uint32_t sum_of(const struct index_head *head, const struct row_block *blocks)
{
    const uint32_t sum = crc32c(head, sizeof *head);
    return crc32c_extend(sum, blocks, (size_t)head->count * sizeof *blocks);
}

static bool name_file(const char *folder, uint64_t key, char *ret)
{
    const int length =
        snprintf(ret, PATH_TEXT_MAX, "%s/rows-%016llx", folder, (unsigned long long)key);
    return length < PATH_TEXT_MAX;
}

/* Whether blocks are in ascending order */
static bool is_in_order(const struct row_index *x)
{
    bool is_so = x->blocks[0].first == 0;
    for (int64_t i = 1; i < x->count; i++)
        is_so = is_so && x->blocks[i].first > x->blocks[i - 1].first &&
                x->blocks[i].place.byte > x->blocks[i - 1].place.byte;
    return is_so && x->blocks[x->count - 1].first < x->rows;
}

static bool read_blocks(FILE *file, const struct index_head *head, struct row_index *ret)
{
    const size_t count = (size_t)head->count;
    uint32_t sum;
    struct row_block *blocks = malloc(count * sizeof *blocks);
    *ret = (struct row_index){
        .state = head->state,
        .blocks = blocks,
        .count = head->count,
        .rows = head->rows,
        .is_packed = head->is_packed,
    };
    if (blocks && fread(blocks, sizeof *blocks, count, file) == count &&
        fread(&sum, sizeof sum, 1, file) == 1 && sum == sum_of(head, blocks) && is_in_order(ret))
        return true;
    row_index_free(ret);
    return false;
}

/* Checks the file's size before allocating memory. */
static bool read_file(FILE *file, struct index_head *head, struct row_index *ret)
{
    struct stat status;
    if (fread(head, sizeof *head, 1, file) != 1 || memcmp(head->magic, MAGIC, sizeof MAGIC) ||
        fstat(fileno(file), &status) || head->count < 1 || head->count > status.st_size)
        return false;
    const uint64_t wanted =
        sizeof *head + (uint64_t)head->count * sizeof(struct row_block) + sizeof(uint32_t);
    return (uint64_t)status.st_size == wanted && read_blocks(file, head, ret);
}

bool row_index_load(const char *folder, uint64_t key, const struct row_reader *reader,
                    struct row_index *ret)
{
    char path[PATH_TEXT_MAX];
    struct index_head head;
    struct file_state now;
    FILE *file = name_file(folder, key, path) ? own_read(path) : NULL;
    if (!file) return false;
    const bool is_read = read_file(file, &head, ret);
    fclose(file);
    if (!is_read) return false;
    if (head.key == key && input_state(reader->input, &now) == OK &&
        memcmp(&now, &ret->state, sizeof now) == 0 &&
        ret->is_packed == input_is_packed(reader->input))
        return true;
    row_index_free(ret);
    return false;
}

/* Atomic, also if several tasks write it at once. */
void row_index_save(const char *folder, uint64_t key, const struct row_index *x)
{
    char path[PATH_TEXT_MAX];
    struct index_head head = head_of(x, key);
    uint32_t sum = sum_of(&head, x->blocks);
    const struct iovec pieces[] = {{&head, sizeof head},
                                   {x->blocks, (size_t)x->count * sizeof *x->blocks},
                                   {&sum, sizeof sum}};
    if (name_file(folder, key, path)) (void)file_replace_cached(path, pieces, 3);
}
