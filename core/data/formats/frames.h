/* frames.h - reads records of a TFRecord file: length, its checksum, that many bytes, their
 * checksum.
 *
 * Plain or packed, detected by the first bytes.
 */
#ifndef CORE_DATA_FORMATS_FRAMES_H
#define CORE_DATA_FORMATS_FRAMES_H

#include "core/base/proto.h"
#include "core/data/input.h"

enum { FRAME_BYTES_MAX = 16 << 20 };

struct frames {
    struct input *input;
    int64_t number; /* of the record returned last, from 1 */
    uint64_t begin; /* its offset in the unpacked file */

    uint8_t *buffer;
    size_t room, at, end; /* at, end: the part of the buffer not yet returned */
    bool is_cut;          /* the file ended within the last record */
};

err frames_open(const struct format_context *, const char *path, struct frames *ret);
void frames_close(struct frames *); /* may be zeroed */

/* The record is valid until the next call. ERR_INPUT: what is wrong, with file, record and byte;
 * *ret_is_whole is then true if only this record's data is bad, or the file ends within it, so that
 * the next may be asked for. */
err frames_next(struct frames *, struct view *ret, bool *ret_found, bool *ret_is_whole);

/* Skips the next record without checking its data. takes_cut: a last record that is cut off counts
 * as one. */
err frames_skip(struct frames *, bool takes_cut, bool *ret_found);
/* Continues with the record of this number, which begins at this offset. */
err frames_seek(struct frames *, uint64_t begin, int64_t number);

/* Puts file, record and byte before the error's text. */
err frames_fail(const struct frames *, err);

#endif
