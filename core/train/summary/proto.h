/* proto.h - messages in protocol buffer encoding, written into a buffer that grows.
 *
 * A field is a key (number and kind) and its content; fields are written in the order of the calls.
 * Numbers are written even where they are 0: who writes a field of proto3 leaves out defaults
 * itself. A buffer that cannot grow has failed: it stays as it is, whatever is written after that,
 * and the caller looks once, at the end.
 */
#ifndef CORE_TRAIN_SUMMARY_PROTO_H
#define CORE_TRAIN_SUMMARY_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROTO_BYTES_MAX = 1 << 28 }; /* readers refuse messages of 2^31 bytes */

struct proto { /* zeroed: empty */
    unsigned char *at;
    size_t bytes, capacity;
    bool failed; /* no memory, or more than PROTO_BYTES_MAX */
};

void proto_clear(struct proto *); /* empty and not failed; keeps its memory for the next message */
void proto_free(struct proto *);

void proto_raw(struct proto *, const void *data, size_t bytes); /* no key */
void proto_varint(struct proto *, int field, uint64_t value);
void proto_double(struct proto *, int field, double value);
void proto_float(struct proto *, int field, float value);
void proto_bytes(struct proto *, int field, const void *data, size_t bytes);
/* What is not UTF-8 becomes question marks: a reader refuses the whole message for one bad byte. */
void proto_string(struct proto *, int field, const char *text);
void proto_packed_doubles(struct proto *, int field, const double *values, int count);
void proto_packed_floats(struct proto *, int field, const double *values, int count);
void proto_packed_varints(struct proto *, int field, const int64_t *values, int count);

/* What is written between the two is a field: a message, or bytes. Returns where it begins. */
size_t proto_open(struct proto *, int field);
void proto_close(struct proto *, size_t begin);

#endif
