/* test_bundle_damage.c - a damaged checkpoint gives an error that names file and tensor, or the
 * right numbers where the damage touches none; never wrong numbers.
 */
#include "tests/core/train/checkpoint/bundle_made.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/crc32c.h"
#include "core/base/random.h"

enum { FILES = 3, GARBAGE_FILES = 2000, GARBAGE_BYTES = 400 };
enum { MADE_UP_FILES = 10000, BLOCK_BYTES = 172 }; /* the data block of the index */
static const char *const names[FILES] = {"model.ckpt-7.index", "model.ckpt-7.data-00000-of-00002",
                                         "model.ckpt-7.data-00001-of-00002"};

struct taken {
    uint8_t at[24]; /* the largest tensor */
    size_t bytes, row_bytes;
};

static err take(void *context, int64_t first_row, int64_t rows, const void *elements)
{
    struct taken *t = context;
    memcpy(t->at + (size_t)first_row * t->row_bytes, elements, (size_t)rows * t->row_bytes);
    t->bytes += (size_t)rows * t->row_bytes;
    return OK;
}

/* By rows a tensor is as right or as damaged as in one. */
static void assert_same_by_rows(struct bundle *b, const struct bundle_entry *entry, err wanted,
                                const void *values, size_t bytes)
{
    struct taken taken = {.row_bytes = bytes / (entry->shape.rank ? entry->shape.dim[0] : 1)};
    const struct bundle_taker taker = {&taken, take};
    assert_int_equal(bundle_read_rows(b, entry, NULL, &taker), wanted);
    if (wanted) return;
    assert_int_equal(taken.bytes, bytes);
    assert_memory_equal(taken.at, values, bytes);
}

/* OK only with the right numbers. Of an error it is checked that its text says where. */
static err read_one(struct bundle *b, const char *name, void *ret, size_t bytes, const char *file)
{
    const struct bundle_entry *entry = bundle_find(b, name);
    assert_non_null(entry);
    memset(ret, 0xaa, bytes);
    const err e = bundle_read(b, entry, NULL, ret, bytes);
    if (e) assert_refused(e, ERR_INPUT, file);
    if (e) assert_refused(e, ERR_INPUT, name);
    assert_same_by_rows(b, entry, e, ret, bytes);
    return e;
}

static bool read_all(struct bundle *b, const char *file)
{
    static const float emb[] = {1, 2, 3, 4, 5, 6}, bias[] = {0.5f};
    float got_emb[6], got_bias[1];
    int64_t step;
    bool is_whole = true;
    assert_int_equal(bundle_entries(b), 3);
    if (read_one(b, "emb", got_emb, sizeof emb, file) == OK)
        assert_memory_equal(got_emb, emb, sizeof emb);
    else
        is_whole = false;
    if (read_one(b, "bias", got_bias, sizeof bias, file) == OK)
        assert_memory_equal(got_bias, bias, sizeof bias);
    else
        is_whole = false;
    if (read_one(b, "global_step", &step, sizeof step, file) == OK)
        assert_int_equal(step, 7);
    else
        is_whole = false;
    return is_whole;
}

/* Whether everything could be read; verify says the same. */
static bool is_whole(const char *folder, const char *file)
{
    struct bundle *b;
    const err e = bundle_open(folder_path(folder, "model.ckpt-7"), &b);
    if (e) {
        assert_refused(e, ERR_INPUT, file);
        return false;
    }
    const bool is = read_all(b, file);
    assert_int_equal(bundle_verify(b), is ? OK : ERR_INPUT);
    bundle_close(b);
    return is;
}

static void a_turned_bit_never_gives_wrong_numbers(void **folder)
{
    static struct bytes file;
    write_both(*folder);
    for (int f = 0; f < FILES; f++) {
        const struct path path = path_of(*folder, names[f]);
        int harmless = 0;
        bytes_load(path.at, &file);
        for (size_t i = 0; i < file.count; i++) {
            for (int bit = 0; bit < 8; bit++) {
                file.at[i] ^= (uint8_t)(1 << bit);
                bytes_store(path.at, file.at, file.count);
                harmless += is_whole(*folder, names[f]);
                file.at[i] ^= (uint8_t)(1 << bit);
            }
        }
        bytes_store(path.at, file.at, file.count);
        assert_true(is_whole(*folder, names[f]));
        /* only the zeros that fill up the footer stand for nothing: 34 bytes behind its handles;
         * and the last handle may go on into them, which is the same number in two bytes */
        assert_int_equal(harmless, f == 0 ? 34 * 8 + 1 : 0);
    }
}

static void a_file_that_is_cut_off_anywhere_is_refused(void **folder)
{
    static struct bytes file;
    write_both(*folder);
    for (int f = 0; f < FILES; f++) {
        const struct path path = path_of(*folder, names[f]);
        bytes_load(path.at, &file);
        for (size_t count = 0; count < file.count; count++) {
            bytes_store(path.at, file.at, count);
            assert_false(is_whole(*folder, names[f]));
        }
        bytes_store(path.at, file.at, file.count);
        assert_true(is_whole(*folder, names[f]));
    }
}

/* As long as it was opened, a file that shrinks is seen when it is read. */
static void a_data_file_that_shrinks_while_it_is_open_is_an_error(void **folder)
{
    write_both(*folder);
    struct bundle *b = opened(folder_path(*folder, "model.ckpt-7"));
    assert_int_equal(truncate(folder_path(*folder, names[1]), 20), 0);
    assert_false(read_all(b, names[1]));
    assert_refused(bundle_verify(b), ERR_INPUT, "truncated");
    assert_int_equal(unlink(folder_path(*folder, names[1])), 0);
    assert_false(read_all(b, names[1]));
    bundle_close(b);
}

static void bytes_between_the_blocks_exchanged_are_refused(void **folder)
{
    static struct bytes file;
    write_both(*folder);
    const struct path path = path_of(*folder, names[0]);
    bytes_load(path.at, &file);
    for (size_t i = 0; i + 1 < file.count; i++) {
        if (file.at[i] == file.at[i + 1]) continue;
        const uint8_t first = file.at[i];
        file.at[i] = file.at[i + 1];
        file.at[i + 1] = first;
        bytes_store(path.at, file.at, file.count);
        assert_false(is_whole(*folder, names[0]));
        file.at[i + 1] = file.at[i];
        file.at[i] = first;
    }
}

/* With the right end, so that it is taken for an index; handles of all kinds. */
static void garbage_is_refused(void **folder)
{
    uint8_t bytes[GARBAGE_BYTES];
    struct bundle *b;
    write_both(*folder);
    const struct path prefix = path_of(*folder, "model.ckpt-7");
    const struct path path = path_of(*folder, names[0]);
    for (uint64_t i = 0; i < GARBAGE_FILES; i++) {
        const size_t count = random_u64(1, i) % GARBAGE_BYTES;
        for (size_t j = 0; j < count; j++) bytes[j] = (uint8_t)random_u64(i, j);
        const uint64_t magic = TABLE_MAGIC;
        if (count >= sizeof magic && i % 2) memcpy(bytes + count - sizeof magic, &magic, 8);
        bytes_store(path.at, bytes, count);
        assert_refused(bundle_open(prefix.at, &b), ERR_INPUT, names[0]);
    }
}

/* Reads whatever a made-up index says is there, as long as it is short. */
static void read_made_up(struct bundle *b)
{
    uint8_t values[64];
    for (int i = 0; i < bundle_entries(b); i++) {
        const struct bundle_entry *entry = bundle_at(b, i);
        const uint64_t count = (uint64_t)bundle_count(&entry->shape);
        const size_t size = bundle_dtype_size(entry->dtype);
        if (size == 0 || count > sizeof values / size) continue;
        const err e = bundle_read(b, entry, NULL, values, (size_t)count * size);
        assert_true(e == OK || e == ERR_INPUT);
    }
    const err e = bundle_verify(b);
    assert_true(e == OK || e == ERR_INPUT);
}

/* Bytes of the only data block exchanged for others, with a checksum that fits. */
static void an_index_with_good_checksums_is_not_believed_either(void **folder)
{
    static struct bytes good, bad;
    int opened_count = 0;
    write_both(*folder);
    const struct path prefix = path_of(*folder, "model.ckpt-7");
    const struct path path = path_of(*folder, names[0]);
    bytes_load(path.at, &good);
    for (uint64_t i = 0; i < MADE_UP_FILES; i++) {
        struct bundle *b;
        bad = good;
        for (uint64_t j = 0; j <= i % 3; j++)
            bad.at[random_u64(2 * i, j) % BLOCK_BYTES] = (uint8_t)random_u64(2 * i + 1, j);
        const uint32_t crc = crc32c_mask(crc32c(bad.at, BLOCK_BYTES + 1));
        memcpy(bad.at + BLOCK_BYTES + 1, &crc, sizeof crc);
        bytes_store(path.at, bad.at, bad.count);
        const err e = bundle_open(prefix.at, &b);
        assert_true(e == OK || e == ERR_INPUT);
        if (e) continue;
        opened_count++;
        read_made_up(b);
        bundle_close(b);
    }
    assert_in_range(opened_count, 1, MADE_UP_FILES - 1);
}

/* Six bytes for each of more records than a checkpoint has: they would take gigabytes of memory. */
static void an_index_of_more_entries_than_any_has_is_refused(void **folder)
{
    enum { ENTRIES = (1 << 21) + 1 };
    static const uint8_t header[] = {0x08, 1, 0x1a, 2, 0x08, 1}, nothing[1];
    struct sorted_writer table;
    struct buffer file;
    struct bundle *b;
    const struct path prefix = path_of(*folder, "model.ckpt-7");
    sorted_begin(&table);
    sorted_add(&table, &(struct sorted_item){{nothing, nothing}, {header, header + sizeof header}});
    for (uint32_t i = 0; i < ENTRIES; i++) {
        uint8_t key[4];
        for (int k = 0; k < 4; k++) key[k] = (uint8_t)(1 + (i >> (3 - k) * 6 & 63));
        sorted_add(&table, &(struct sorted_item){{key, key + sizeof key}, {nothing, nothing}});
    }
    assert_int_equal(sorted_end(&table, &file), OK);
    bytes_store(path_of(*folder, names[0]).at, file.at, file.used);
    buffer_drop(&file);
    assert_refused(bundle_open(prefix.at, &b), ERR_INPUT, "more than 2097152 tensors");
    assert_refused(bundle_open(prefix.at, &b), ERR_INPUT, names[0]);
}

/* A few bytes of an index would be as many numbers as they like. */
static void tensors_that_have_bytes_in_common_are_refused(void **folder)
{
    enum { FLOATS = 4, BYTES = FLOATS * sizeof(float) };
    const struct path prefix = path_of(*folder, "twice"),
                      data = path_of(*folder, "twice.data-00000-of-00001");
    static const uint8_t bytes[2 * BYTES];
    for (int64_t apart = 0; apart <= BYTES; apart += BYTES) {
        struct index index = {.shards = 1};
        struct buffer file = {0};
        struct bundle *b;
        for (int i = 0; i < 2; i++) {
            const uint8_t name[] = {(uint8_t)('a' + i)};
            const struct index_record r = {
                .dtype = BUNDLE_FLOAT, .shape = {1, {FLOATS}}, .offset = i * apart, .bytes = BYTES};
            assert_int_equal(index_add(&index, (struct view){name, name + 1}, &r, NULL), OK);
        }
        assert_int_equal(index_write(&index, &file), OK);
        bytes_store(path_of(*folder, "twice.index").at, file.at, file.used);
        bytes_store(data.at, bytes, (size_t)apart + BYTES);
        const err e = bundle_open(prefix.at, &b);
        if (!apart) assert_refused(e, ERR_INPUT, "fewer bytes than its tensors together");
        if (apart) assert_int_equal(e, OK), bundle_close(b);
        buffer_drop(&file);
        index_drop(&index);
    }
}

static void files_that_are_absent_or_no_files_are_refused_by_name(void **folder)
{
    struct bundle *b;
    const struct path prefix = path_of(*folder, "model.ckpt-7");
    assert_refused(bundle_open(prefix.at, &b), ERR_INPUT, names[0]);
    bytes_store(prefix.at, "old", 3);
    assert_refused(bundle_open(prefix.at, &b), ERR_INPUT, "V1");
    write_both(*folder);
    for (int f = 0; f < FILES; f++) {
        const struct path path = path_of(*folder, names[f]);
        write_both(*folder);
        assert_int_equal(unlink(path.at), 0);
        assert_refused(bundle_open(prefix.at, &b), ERR_INPUT, names[f]);
        assert_int_equal(mkdir(path.at, 0777), 0);
        assert_refused(bundle_open(prefix.at, &b), ERR_INPUT, "regular file");
        assert_int_equal(rmdir(path.at), 0);
        assert_int_equal(mkfifo(path.at, 0666), 0); /* nobody writes: must not wait */
        assert_refused(bundle_open(prefix.at, &b), ERR_INPUT, "regular file");
        assert_int_equal(unlink(path.at), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_turned_bit_never_gives_wrong_numbers),
        IN_FOLDER(a_file_that_is_cut_off_anywhere_is_refused),
        IN_FOLDER(a_data_file_that_shrinks_while_it_is_open_is_an_error),
        IN_FOLDER(bytes_between_the_blocks_exchanged_are_refused),
        IN_FOLDER(garbage_is_refused),
        IN_FOLDER(an_index_with_good_checksums_is_not_believed_either),
        IN_FOLDER(an_index_of_more_entries_than_any_has_is_refused),
        IN_FOLDER(tensors_that_have_bytes_in_common_are_refused),
        IN_FOLDER(files_that_are_absent_or_no_files_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
