/* sorted.h - LevelDB's sorted table of keys and values in one file, as TensorFlow uses it for the
 * index of a checkpoint: blocks with a checksum each, an index of the blocks, and a footer that
 * locates the index. */
#ifndef CORE_TRAIN_CHECKPOINT_BUNDLE_SORTED_H
#define CORE_TRAIN_CHECKPOINT_BUNDLE_SORTED_H

#include "core/base/error.h"
#include "core/base/proto.h"

enum {
    TABLE_KEY_MAX = 10240,         /* bytes: a name with every byte doubled, and its slice */
    TABLE_BYTES_MAX = 64 << 20,    /* of a file that is read: about a million tensors */
    TABLE_RESTART = 16,            /* a key is written in full every this many entries */
    TABLE_BLOCK_BYTES = 256 << 10, /* a block ends when it reaches this size */
    TABLE_PLAIN = 0,               /* kinds of blocks */
    TABLE_SNAPPY = 1,
    TABLE_TRAILER_BYTES = 5,  /* per block: its kind, and the masked checksum of block and kind */
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
    struct buffer handle; /* of the last block, until its key in the index is known */
};

void sorted_begin(struct sorted_writer *);
/* Keys must ascend strictly. */
void sorted_add(struct sorted_writer *, const struct sorted_item *);
/* Returns the file, which the caller drops; ERR_MEMORY. Drops the writer in any case. */
err sorted_end(struct sorted_writer *, struct buffer *ret);

/* ---- reading ---- */

/* The entries of one block; assembles each key here, because keys omit the prefix shared with the
 * one before. */
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

/* Reads the file and checks its footer and index. Call sorted_close in any case. */
err sorted_open(const char *path, struct sorted_reader *);
void sorted_close(struct sorted_reader *);
/* The next entry, or a NULL key at the end; valid until the next call. */
err sorted_next(struct sorted_reader *, struct sorted_item *ret);

#endif
