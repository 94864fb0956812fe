/* coding.h - the small encodings of TensorFlow's files: varints, fixed numbers, fields of protocol
 * buffers, and the keys of slices, which sort as the slices lie.
 */
#ifndef CORE_TRAIN_CHECKPOINT_BUNDLE_CODING_H
#define CORE_TRAIN_CHECKPOINT_BUNDLE_CODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of somebody else, read from the front. The functions return false, and the view is of no
 * more use, where it ends too early. */
struct view {
    const uint8_t *at, *end;
};
size_t view_bytes(struct view);
bool view_varint(struct view *, uint64_t *ret); /* at most 10 bytes */
bool view_fixed32(struct view *, uint32_t *ret);
bool view_fixed64(struct view *, uint64_t *ret);
bool view_cut(struct view *, uint64_t bytes, struct view *ret); /* the first so many bytes */

/* One field of a message: value holds varints and fixed numbers, bytes what has a length. */
enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
struct proto_field {
    uint64_t number; /* of the field */
    enum wire wire;
    uint64_t value;
    struct view bytes;
};
bool proto_next(struct view *, struct proto_field *ret);

/* Bytes that grow. Zeroed is empty. Where memory ran out the contents are of no use: whoever hands
 * the buffer on asks is_short once. */
struct buffer {
    uint8_t *at;
    size_t used, room;
    bool is_short;
};
void buffer_drop(struct buffer *); /* leaves it empty */
struct view buffer_view(const struct buffer *);
void buffer_put(struct buffer *, const void *, size_t bytes);
void buffer_byte(struct buffer *, int byte);
void buffer_varint(struct buffer *, uint64_t);
void buffer_fixed32(struct buffer *, uint32_t);
void buffer_fixed64(struct buffer *, uint64_t);

/* A field of a message; a number 0 is not written, as proto3 wants it. */
void buffer_number(struct buffer *, int field, uint64_t);
void buffer_bytes(struct buffer *, int field, struct view);

/* Numbers and text so that the bytes sort as the values do (TensorFlow's OrderedCode). */
void buffer_ordered_unsigned(struct buffer *, uint64_t);
void buffer_ordered_signed(struct buffer *, int64_t);
void buffer_ordered_text(struct buffer *, const char *);

#endif
