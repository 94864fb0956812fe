/* index.h - the contents of an index file: one record per key, sorted by key.
 *
 * Keys are names of tensors, or identify one slice of a tensor: those begin with a zero byte. The
 * record of a sliced tensor itself has no data, but the list of its slices.
 */
#ifndef CORE_TRAIN_CHECKPOINT_BUNDLE_INDEX_H
#define CORE_TRAIN_CHECKPOINT_BUNDLE_INDEX_H

#include "core/train/checkpoint/bundle/bundle.h"
#include "core/base/proto.h"

/* In a stored box this length means the whole axis; its start is 0. */
enum { LENGTH_WHOLE = -1 };

/* TensorFlow's BundleEntryProto. */
struct index_record {
    size_t key, key_bytes; /* offset in the index' keys, zero-terminated */
    int order;             /* position in the order of index_add */
    int dtype, shard;
    struct bundle_shape shape;
    int64_t offset, bytes;
    uint32_t crc; /* masked */
    int slice_count;
    size_t first_slice; /* in the index' slices */
};

struct index {
    struct buffer keys;
    struct index_record *records;
    int count, room;
    struct bundle_box *slices; /* as stored: LENGTH_WHOLE is possible */
    size_t slice_count, slice_room;
    int shards;
};

void index_drop(struct index *);
const char *index_key(const struct index *, const struct index_record *);
bool index_is_slice(const struct index *, const struct index_record *);
/* The name of the tensor that the key belongs to, truncated for messages. */
enum { KEY_TEXT_MAX = 256 };
const char *index_key_text(const struct index *, const struct index_record *,
                           char ret[KEY_TEXT_MAX]);

/* Copies key and record; the slices are a separate argument. */
err index_add(struct index *, struct view key, const struct index_record *,
              const struct bundle_box *);
/* The key of a slice as stored. */
void index_slice_key(struct buffer *, const char *name, int rank, const struct bundle_box *);
/* Finds a record in a sorted index; NULL: not found. */
const struct index_record *index_find(const struct index *, struct view key);

/* Sorts; joins records of the same name if all are slices of one tensor, else ERR_INPUT. `where`
 * begins the message. */
err index_join(struct index *, const char *where);
/* Serializes the index, which must be sorted; the caller drops the buffer. */
err index_write(const struct index *, struct buffer *ret);
/* Reads a file. Checks each record, but not whether records are consistent with each other. */
err index_read(const char *path, struct index *ret);

/* ---- messages.c ---- */

void index_put_header(struct buffer *, int shards);
void index_put_record(struct buffer *, const struct index *, const struct index_record *);
/* ERR_INPUT; the text does not name the file. */
err index_get_header(struct view, int *ret_shards);
/* Appends the record's slices to those of the index. */
err index_get_record(struct view, struct index *, struct index_record *ret);
err index_add_slice(struct index *, const struct bundle_box *);

#endif
