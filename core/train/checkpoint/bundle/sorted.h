/* sorted.h - a sorted table from keys to values in one file, as LevelDB writes it and TensorFlow
 * uses it for the index of a checkpoint: blocks with a checksum each, an index of the blocks, and a
 * footer that says where that is.
 */
#ifndef CORE_TRAIN_CHECKPOINT_BUNDLE_SORTED_H
#define CORE_TRAIN_CHECKPOINT_BUNDLE_SORTED_H

#include "core/base/error.h"
#include "core/base/proto.h"

enum {
    TABLE_KEY_MAX = 10240,         /* bytes: a name with every byte doubled, and its slice */
    TABLE_BYTES_MAX = 64 << 20,    /* of a file that is read: about a million tensors */
    TABLE_RESTART = 16,            /* every so many entries a key is written in full */
    TABLE_BLOCK_BYTES = 256 << 10, /* a block ends when it has reached this */
    TABLE_PLAIN = 0,               /* kinds of blocks */
    TABLE_SNAPPY = 1,
    TABLE_TRAILER_BYTES = 5,  /* of a block: its kind, the masked checksum of both */
    TABLE_HANDLES_BYTES = 40, /* of the footer, before the magic number */
};
#define TABLE_MAGIC UINT64_C(0xdb4775248b80fb57)

struct sorted_item {
    struct view key, value;
};

/* ---- writing, in memory ---- */

struct block_writer {
    struct buffer bytes, restarts, last_key;
    int entries, interval;
};

struct sorted_writer {
    struct buffer file;
    struct block_writer data, index;
    struct buffer handle; /* of the last block, while its key in the index is not yet known */
};

void sorted_begin(struct sorted_writer *);
/* Keys come in their order, all different. */
void sorted_add(struct sorted_writer *, const struct sorted_item *);
/* Hands the file over to the caller, who drops it; ERR_MEMORY. The writer is dropped in any case.
 */
err sorted_end(struct sorted_writer *, struct buffer *ret);

/* ---- reading ---- */

/* The entries of one block; the key is put together here, for keys leave out what they share with
 * the one before. */
struct block_reader {
    struct view left;
    bool is_at_start;
    size_t key_bytes;
    uint8_t key[TABLE_KEY_MAX];
};

/* About 20 KiB. */
struct sorted_reader {
    const char *path; /* borrowed */
    uint8_t *file;
    size_t bytes;
    uint64_t keys_bytes; /* of all keys so far */
    struct block_reader index, data;
};

/* Reads the file and checks what does not belong to a single block. Always ended by sorted_close.
 */
err sorted_open(const char *path, struct sorted_reader *);
void sorted_close(struct sorted_reader *);
/* The next entry, or a NULL key at the end; valid until the next call. */
err sorted_next(struct sorted_reader *, struct sorted_item *ret);

#endif
