/* frames.h - records of a TFRecord file: length, its checksum, that many bytes, their checksum.
 *
 * Plain or packed, told by the first bytes.
 */
#ifndef CORE_DATA_FORMATS_FRAMES_H
#define CORE_DATA_FORMATS_FRAMES_H

#include "core/base/proto.h"
#include "core/data/input.h"

enum { FRAME_BYTES_MAX = 16 << 20 };

struct frames {
    struct input *input;
    int64_t number; /* of the record given out last, from 1 */
    uint64_t begin; /* its first byte in what is unpacked, from 0 */

    uint8_t *buffer;
    size_t room, at, end; /* at, end: of what is in the buffer and not yet given out */
    bool is_cut;          /* the file ended within the last record */
};

err frames_open(const struct format_context *, const char *path, struct frames *ret);
void frames_close(struct frames *); /* a zeroed one is fine */

/* The record stays until the next call. ERR_INPUT: what is wrong, with file, record and byte; with
 * *ret_is_whole set where only this record's own bytes are, or the file ends within it, so that the
 * next may be asked for. */
err frames_next(struct frames *, struct view *ret, bool *ret_found, bool *ret_is_whole);

/* Passes over the next record, whose bytes are not looked at. takes_cut: within which the file may
 * end. */
err frames_skip(struct frames *, bool takes_cut, bool *ret_found);
/* The next record is this one, which begins there. */
err frames_seek(struct frames *, uint64_t begin, int64_t number);

/* Puts file, record and byte before the error's text. */
err frames_fail(const struct frames *, err);

#endif
