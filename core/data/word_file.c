/* word_file.c - see word_file.h. */
#include "core/data/word_file.h"

#include <string.h>

#include "core/base/printable.h"
#include "core/data/input.h"
#include "core/data/not_utf8.h"

enum { FILE_GROW = 1 << 16 };

static err read_all(struct input *in, struct block *ret, size_t *ret_bytes)
{
    size_t got = 1;
    for (*ret_bytes = 0; got > 0; *ret_bytes += got) {
        if (*ret_bytes > WORD_FILE_BYTES_MAX)
            return fail(ERR_INPUT, "%s: more than 1 GiB of words", input_path(in));
        TRY(block_grow(ret, *ret_bytes + FILE_GROW));
        TRY(input_some(in, (char *)ret->at + *ret_bytes, FILE_GROW, &got));
    }
    return OK;
}

static size_t count_lines(const char *text, size_t bytes)
{
    size_t count = 1;
    for (size_t i = 0; i < bytes; i++) count += text[i] == '\n';
    return count;
}

/* Skips a byte order mark */
static struct word_file of_text(const char *text, size_t bytes)
{
    const size_t mark = bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    return (struct word_file){
        .lines = count_lines(text, bytes), .at = text + mark, .end = text + bytes};
}

err word_file_read(const struct format_context *context, const char *path, struct arena *arena,
                   struct word_file *ret)
{
    struct input *in = NULL;
    struct block block = {0};
    size_t bytes = 0;
    TRY(input_open(context, path, &in));
    err e = input_is_text(in);
    if (!e) e = read_all(in, &block, &bytes);
    if (!e) {
        char *text = arena_new(arena, bytes + 1);
        memcpy(text, block.at, bytes);
        *ret = of_text(text, bytes);
        ret->path = arena_string(arena, input_path(in));
        e = input_is_table(in, ret->at, (size_t)(ret->end - ret->at));
        const size_t sound = e ? bytes : utf8_prefix(text, bytes);
        if (sound < bytes) not_utf8_warn(ret->path, 1, text, sound, bytes);
    }
    block_drop(&block);
    input_close(in);
    return e;
}

bool word_file_next(struct word_file *f, struct item *ret)
{
    while (f->at < f->end) {
        const char *from = f->at, *to = memchr(from, '\n', (size_t)(f->end - from));
        f->at = to ? to + 1 : f->end;
        if (!to) to = f->end;
        if (to > from && to[-1] == '\r') to--;
        *ret = item_trimmed(from, to);
        if (ret->length > 0) return true;
    }
    return false;
}
