/* messages.c - the messages of an index: BundleHeaderProto and BundleEntryProto with their
 * submessages (TensorShapeProto, TensorSliceProto, VersionDef). */
#include <limits.h>

#include "core/train/checkpoint/bundle/index.h"

/* Field numbers, by message. */
enum { HEADER_SHARDS = 1, HEADER_ENDIANNESS = 2, HEADER_VERSION = 3 };
enum { VERSION_PRODUCER = 1, VERSION_MIN_CONSUMER = 2, VERSION_BAD_CONSUMERS = 3 };
enum {
    ENTRY_DTYPE = 1,
    ENTRY_SHAPE = 2,
    ENTRY_SHARD = 3,
    ENTRY_OFFSET = 4,
    ENTRY_SIZE = 5,
    ENTRY_CRC = 6,
    ENTRY_SLICE = 7,
};
enum { SHAPE_DIM = 2, SHAPE_UNKNOWN_RANK = 3, DIM_SIZE = 1 };
enum { SLICE_EXTENT = 1, EXTENT_START = 1, EXTENT_LENGTH = 2 };

enum { FORMAT_VERSION = 1 }; /* what this file reads and writes */

void index_put_header(struct buffer *b, int shards)
{
    proto_varint(b, HEADER_SHARDS, (uint64_t)shards);
    const size_t version = proto_open(b, HEADER_VERSION);
    proto_varint(b, VERSION_PRODUCER, FORMAT_VERSION);
    proto_close(b, version);
}

/* Written even if empty, as for a scalar. */
static void put_shape(struct buffer *b, const struct bundle_shape *shape)
{
    const size_t all = proto_open(b, ENTRY_SHAPE);
    for (int i = 0; i < shape->rank; i++) {
        const size_t dim = proto_open(b, SHAPE_DIM);
        proto_varint_unless_zero(b, DIM_SIZE, (uint64_t)shape->dim[i]);
        proto_close(b, dim);
    }
    proto_close(b, all);
}

/* A length is written even if it is 0, because a missing one means the whole axis. */
static void put_slice(struct buffer *b, const struct bundle_box *box, int rank)
{
    const size_t all = proto_open(b, ENTRY_SLICE);
    for (int i = 0; i < rank; i++) {
        const size_t extent = proto_open(b, SLICE_EXTENT);
        proto_varint_unless_zero(b, EXTENT_START, (uint64_t)box->start[i]);
        if (box->length[i] != LENGTH_WHOLE)
            proto_varint(b, EXTENT_LENGTH, (uint64_t)box->length[i]);
        proto_close(b, extent);
    }
    proto_close(b, all);
}

void index_put_record(struct buffer *b, const struct index *index, const struct index_record *r)
{
    proto_varint_unless_zero(b, ENTRY_DTYPE, (uint64_t)r->dtype);
    put_shape(b, &r->shape);
    proto_varint_unless_zero(b, ENTRY_SHARD, (uint64_t)r->shard);
    proto_varint_unless_zero(b, ENTRY_OFFSET, (uint64_t)r->offset);
    proto_varint_unless_zero(b, ENTRY_SIZE, (uint64_t)r->bytes);
    if (r->crc) proto_fixed32(b, ENTRY_CRC, r->crc);
    for (int i = 0; i < r->slice_count; i++)
        put_slice(b, &index->slices[r->first_slice + (size_t)i], r->shape.rank);
}

static err malformed(const char *what)
{
    return fail(ERR_INPUT, "%s is no message of the format", what);
}

/* A known field must have its wire type, otherwise this is something else. */
static bool is(const struct proto_field *f, uint64_t number, enum wire wire, bool *is_wrong)
{
    if (f->number != number) return false;
    if (f->wire != wire) *is_wrong = true;
    return f->wire == wire;
}

/* The writer may exclude readers that would misinterpret the file. */
static err get_version(struct view s)
{
    struct proto_field f;
    bool is_wrong = false, is_refused = false;
    while (s.at < s.end && !is_wrong) {
        if (!proto_next(&s, &f)) return malformed("its version");
        if (is(&f, VERSION_PRODUCER, WIRE_VARINT, &is_wrong)) is_refused |= (int64_t)f.value < 0;
        if (is(&f, VERSION_MIN_CONSUMER, WIRE_VARINT, &is_wrong))
            is_refused |= (int64_t)f.value > FORMAT_VERSION;
        if (f.number != VERSION_BAD_CONSUMERS) continue;
        is_refused |= f.wire == WIRE_VARINT && f.value == FORMAT_VERSION;
        while (f.bytes.at < f.bytes.end) { /* several in one field */
            if (!view_varint(&f.bytes, &f.value)) return malformed("its version");
            is_refused |= f.value == FORMAT_VERSION;
        }
    }
    if (is_wrong) return malformed("its version");
    return is_refused ? fail(ERR_INPUT, "it says that version %d must not read it", FORMAT_VERSION)
                      : OK;
}

err index_get_header(struct view s, int *ret_shards)
{
    struct proto_field f;
    uint64_t shards = 0, endianness = 0;
    bool is_wrong = false;
    while (s.at < s.end) {
        if (!proto_next(&s, &f)) return malformed("its header");
        if (is(&f, HEADER_SHARDS, WIRE_VARINT, &is_wrong)) shards = f.value;
        if (is(&f, HEADER_ENDIANNESS, WIRE_VARINT, &is_wrong)) endianness = f.value;
        if (is(&f, HEADER_VERSION, WIRE_BYTES, &is_wrong)) TRY(get_version(f.bytes));
        if (is_wrong) return malformed("its header");
    }
    if (endianness) return fail(ERR_INPUT, "its numbers are big-endian, which are not read here");
    if (shards < 1 || shards > BUNDLE_SHARDS_MAX)
        return fail(ERR_INPUT, "%llu data files, from 1 to %d are possible",
                    (unsigned long long)shards, (int)BUNDLE_SHARDS_MAX);
    *ret_shards = (int)shards;
    return OK;
}

static err get_dim(struct view s, int64_t *ret)
{
    struct proto_field f;
    bool is_wrong = false;
    uint64_t size = 0;
    while (s.at < s.end) {
        if (!proto_next(&s, &f)) return malformed("its shape");
        if (is(&f, DIM_SIZE, WIRE_VARINT, &is_wrong)) size = f.value;
        if (is_wrong) return malformed("its shape");
    }
    if (size > INT64_MAX) return fail(ERR_INPUT, "its shape is not known");
    *ret = (int64_t)size;
    return OK;
}

/* Skips names of dimensions, and everything unknown. */
static err get_shape(struct view s, struct bundle_shape *ret)
{
    struct bundle_shape shape = {0};
    struct proto_field f;
    bool is_wrong = false;
    while (s.at < s.end) {
        if (!proto_next(&s, &f)) return malformed("its shape");
        if (is(&f, SHAPE_UNKNOWN_RANK, WIRE_VARINT, &is_wrong) && f.value)
            return fail(ERR_INPUT, "its shape is not known");
        if (is(&f, SHAPE_DIM, WIRE_BYTES, &is_wrong)) {
            if (shape.rank == BUNDLE_RANK_MAX)
                return fail(ERR_INPUT, "more than %d dimensions", (int)BUNDLE_RANK_MAX);
            TRY(get_dim(f.bytes, &shape.dim[shape.rank++]));
        }
        if (is_wrong) return malformed("its shape");
    }
    if (bundle_count(&shape) < 0) return fail(ERR_INPUT, "its shape has too many elements");
    *ret = shape;
    return OK;
}

static err get_extent(struct view s, int64_t *ret_start, int64_t *ret_length)
{
    struct proto_field f;
    bool is_wrong = false, has_length = false;
    uint64_t start = 0, length = 0;
    while (s.at < s.end) {
        if (!proto_next(&s, &f)) return malformed("a slice");
        if (is(&f, EXTENT_START, WIRE_VARINT, &is_wrong)) start = f.value;
        if (is(&f, EXTENT_LENGTH, WIRE_VARINT, &is_wrong)) length = f.value, has_length = true;
        if (is_wrong) return malformed("a slice");
    }
    if (start > INT64_MAX || length > INT64_MAX || (!has_length && start > 0))
        return fail(ERR_INPUT, "a slice with a start or length that cannot be");
    *ret_start = (int64_t)start;
    *ret_length = has_length ? (int64_t)length : LENGTH_WHOLE;
    return OK;
}

/* As many extents as the tensor has axes. */
static err get_slice(struct view s, int rank, struct bundle_box *ret)
{
    struct bundle_box box = {0};
    struct proto_field f;
    int axes = 0;
    while (s.at < s.end) {
        if (!proto_next(&s, &f)) return malformed("a slice");
        if (f.number != SLICE_EXTENT) continue;
        if (f.wire != WIRE_BYTES) return malformed("a slice");
        if (axes == rank) return fail(ERR_INPUT, "a slice of more dimensions than the tensor has");
        TRY(get_extent(f.bytes, &box.start[axes], &box.length[axes]));
        axes++;
    }
    if (axes < rank || rank == 0)
        return fail(ERR_INPUT, "a slice of %d dimensions of a tensor of %d", axes, rank);
    *ret = box;
    return OK;
}

/* Slices come after the shape, as TensorFlow and protobuf write fields: by number. */
static err get_field(const struct proto_field *f, struct index *index, struct index_record *r)
{
    struct bundle_box box;
    bool is_wrong = false;
    uint64_t dtype = 0, shard = 0, offset = 0, bytes = 0;
    if (is(f, ENTRY_DTYPE, WIRE_VARINT, &is_wrong)) r->dtype = (int)(dtype = f->value);
    if (is(f, ENTRY_SHAPE, WIRE_BYTES, &is_wrong)) TRY(get_shape(f->bytes, &r->shape));
    if (is(f, ENTRY_SHARD, WIRE_VARINT, &is_wrong)) r->shard = (int)(shard = f->value);
    if (is(f, ENTRY_OFFSET, WIRE_VARINT, &is_wrong)) r->offset = (int64_t)(offset = f->value);
    if (is(f, ENTRY_SIZE, WIRE_VARINT, &is_wrong)) r->bytes = (int64_t)(bytes = f->value);
    if (is(f, ENTRY_CRC, WIRE_FIXED32, &is_wrong)) r->crc = (uint32_t)f->value;
    if (is(f, ENTRY_SLICE, WIRE_BYTES, &is_wrong)) {
        /* every slice has an entry of its own, and all of those came before */
        if (index->slice_count >= (size_t)index->count)
            return fail(ERR_INPUT, "more slices than entries of slices");
        TRY(get_slice(f->bytes, r->shape.rank, &box));
        TRY(index_add_slice(index, &box));
        r->slice_count++;
    }
    if (dtype > INT_MAX || shard > BUNDLE_SHARDS_MAX || offset > INT64_MAX || bytes > INT64_MAX)
        return fail(ERR_INPUT, "a number out of range");
    return is_wrong ? malformed("its entry") : OK;
}

err index_get_record(struct view s, struct index *index, struct index_record *ret)
{
    struct index_record r = {.first_slice = index->slice_count};
    struct proto_field f;
    while (s.at < s.end) {
        if (!proto_next(&s, &f)) return malformed("its entry");
        TRY(get_field(&f, index, &r));
    }
    *ret = r;
    return OK;
}
