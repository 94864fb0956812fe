/* frames.c - see frames.h. */
#include "core/data/formats/frames.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/crc32c.h"

enum { HEAD_BYTES = 12, TAIL_BYTES = 4, BUFFER_BYTES_MIN = 1 << 18 };

static uint64_t length_of(const uint8_t *head)
{
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | head[i];
    return length;
}

static bool is_sum(const uint8_t *stored, const uint8_t *bytes, size_t count)
{
    const uint32_t sum = (uint32_t)stored[0] | (uint32_t)stored[1] << 8 |
                         (uint32_t)stored[2] << 16 | (uint32_t)stored[3] << 24;
    return sum == crc32c_mask(crc32c(bytes, count));
}

/* A length may look like a zlib header, such as 30840; a valid checksum shows that it is a length.
 */
static err find_packing(struct frames *f)
{
    uint8_t head[HEAD_BYTES];
    const size_t got = input_head(f->input, head, sizeof head);
    if (got == HEAD_BYTES && is_sum(head + 8, head, 8)) return OK;
    const bool is_zlib = got >= 2 && (head[0] & 0x0f) == 8 && head[0] >> 4 <= 7 &&
                         (head[0] << 8 | head[1]) % 31 == 0;
    return is_zlib ? input_is_zlib(f->input) : OK;
}

err frames_open(const struct format_context *context, const char *path, struct frames *ret)
{
    *ret = (struct frames){0};
    TRY(input_open(context, path, &ret->input));
    TRY(input_is_known(ret->input));
    TRY(find_packing(ret));
    ret->room = BUFFER_BYTES_MIN;
    ret->buffer = malloc(ret->room);
    return ret->buffer ? OK : fail(ERR_MEMORY, "no memory to read %s", input_path(ret->input));
}

void frames_close(struct frames *f)
{
    free(f->buffer);
    input_close(f->input);
    *f = (struct frames){0};
}

err frames_fail(const struct frames *f, err e)
{
    return fail_prefix(e, "%s: record %lld at byte %llu", input_path(f->input),
                       (long long)f->number, (unsigned long long)f->begin);
}

static err make_room(struct frames *f, size_t bytes)
{
    if (f->at > 0) memmove(f->buffer, f->buffer + f->at, f->end - f->at);
    f->end -= f->at;
    f->at = 0;
    if (bytes <= f->room) return OK;
    uint8_t *buffer = realloc(f->buffer, bytes);
    if (!buffer) return fail(ERR_MEMORY, "no memory for a record of %zu bytes", bytes);
    f->buffer = buffer;
    f->room = bytes;
    return OK;
}

/* Has that many bytes in the buffer, or all that are left. */
static err fill(struct frames *f, size_t bytes)
{
    size_t got = 1;
    if (f->end - f->at >= bytes) return OK;
    TRY(make_room(f, bytes));
    while (f->end < bytes && got > 0) {
        TRY(input_some(f->input, f->buffer + f->end, f->room - f->end, &got));
        f->end += got;
    }
    return OK;
}

static size_t have(const struct frames *f)
{
    return f->end - f->at;
}

/* *ret_bytes 0: the end of the file */
static err read_head(struct frames *f, size_t *ret_bytes)
{
    TRY(fill(f, HEAD_BYTES));
    const uint8_t *head = f->buffer + f->at;
    *ret_bytes = 0;
    if (have(f) == 0) return OK;
    f->is_cut = have(f) < HEAD_BYTES;
    if (f->is_cut)
        return fail(ERR_INPUT, "expected %d bytes of a record's head, the file ends after %zu",
                    (int)HEAD_BYTES, have(f));
    if (!is_sum(head + 8, head, 8))
        return fail(ERR_INPUT, "the checksum of its length is wrong: no TFRecord file, or broken");
    const uint64_t length = length_of(head);
    if (length > FRAME_BYTES_MAX)
        return fail(ERR_INPUT, "longer than %d bytes (%llu)", (int)FRAME_BYTES_MAX,
                    (unsigned long long)length);
    *ret_bytes = (size_t)length + HEAD_BYTES + TAIL_BYTES;
    return OK;
}

static err read_frame(struct frames *f, size_t bytes)
{
    if (have(f) < bytes && input_announce(f->input, bytes - have(f), "a record")) {
        f->is_cut = true;
        return ERR_INPUT;
    }
    TRY(fill(f, bytes));
    f->is_cut = have(f) < bytes;
    if (!f->is_cut) return OK;
    return fail(ERR_INPUT, "expected a record of %zu bytes, the file ends after %zu",
                bytes - HEAD_BYTES - TAIL_BYTES, have(f));
}

/* Takes the next record; ret->at NULL: none */
static err take_frame(struct frames *f, struct view *ret)
{
    size_t bytes;
    f->number++;
    f->begin = input_offset(f->input) - have(f);
    *ret = (struct view){0};
    if (f->is_cut) return OK; /* the last, incomplete record has been read */
    TRY(read_head(f, &bytes));
    if (bytes == 0) return OK;
    TRY(read_frame(f, bytes));
    *ret = (struct view){f->buffer + f->at + HEAD_BYTES, f->buffer + f->at + bytes - TAIL_BYTES};
    f->at += bytes;
    return OK;
}

err frames_next(struct frames *f, struct view *ret, bool *ret_found, bool *ret_is_whole)
{
    err e = take_frame(f, ret);
    *ret_found = ret->at;
    *ret_is_whole = ret->at || (e && f->is_cut);
    if (!e && ret->at && !is_sum(ret->end, ret->at, view_bytes(*ret)))
        e = fail(ERR_INPUT, "the checksum of its bytes is wrong");
    return e == ERR_INPUT ? frames_fail(f, e) : e;
}

err frames_skip(struct frames *f, bool takes_cut, bool *ret_found)
{
    struct view frame;
    const err e = take_frame(f, &frame);
    *ret_found = frame.at || (e && f->is_cut);
    if (e && f->is_cut && takes_cut) return OK;
    return e == ERR_INPUT ? frames_fail(f, e) : e;
}

err frames_seek(struct frames *f, uint64_t begin, int64_t number)
{
    f->at = f->end = 0;
    f->is_cut = false;
    f->number = number - 1;
    return input_seek(f->input, begin);
}
