/* bundle.h - TensorFlow's checkpoint format V2, the "tensor bundle": an index file, which is a
 * sorted table from key to entry with a checksum on every block, and data files of raw tensors with
 * a checksum in each entry.
 *
 * A bundle is named by its prefix P: P.index and P.data-00000-of-00003 ... A variable that is cut
 * into slices is one entry of its full name and shape, and one entry per slice; readers see the
 * whole.
 *
 * Every function that reads takes files from anywhere: what is damaged, cut off or made up is
 * ERR_INPUT and names the file and the key; nothing read is believed before its checksum was
 * compared; memory asked for is bounded by the files' real sizes. What the system refuses is
 * ERR_IO.
 */
#ifndef CORE_TRAIN_CHECKPOINT_BUNDLE_BUNDLE_H
#define CORE_TRAIN_CHECKPOINT_BUNDLE_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/fields/fields.h"

enum {
    BUNDLE_RANK_MAX = 8,       /* an entry of a higher rank is refused when the index is read */
    BUNDLE_SHARDS_MAX = 99999, /* the file names have five digits */
    BUNDLE_NAME_MAX = 4096,
};

/* TensorFlow's numbers of types that can be read and written here. Entries of other types are
 * listed and cannot be read (strings too). */
enum bundle_dtype {
    BUNDLE_FLOAT = 1,
    BUNDLE_DOUBLE = 2,
    BUNDLE_INT32 = 3,
    BUNDLE_UINT8 = 4,
    BUNDLE_INT64 = 9,
};
size_t bundle_dtype_size(int dtype);      /* bytes of one element; 0: not known here */
const char *bundle_dtype_name(int dtype); /* TensorFlow's, or "unknown type": static */

struct bundle_shape {
    int rank;
    int64_t dim[BUNDLE_RANK_MAX];
};
int64_t bundle_count(const struct bundle_shape *); /* elements; -1: too many */

/* A box inside a tensor: along each axis elements start .. start + length - 1. */
struct bundle_box {
    int64_t start[BUNDLE_RANK_MAX], length[BUNDLE_RANK_MAX];
};
struct bundle_box bundle_whole(const struct bundle_shape *);

/* ---- writing one shard ---- */

struct bundle_piece {
    const char *name;             /* of the whole variable */
    int dtype;                    /* enum bundle_dtype */
    struct bundle_shape shape;    /* of the whole variable */
    const struct bundle_box *box; /* NULL, or the whole: an ordinary tensor */
};

struct bundle_writer;
/* Writes P.data-00000-of-00001 and P.index under temporary names beside them. */
err bundle_create(const char *prefix, struct bundle_writer **ret);
/* Appends the piece's elements, row-major. The same name may come again only with another box of
 * the same shape and type: bundle_finish sees to it. */
err bundle_add(struct bundle_writer *, const struct bundle_piece *, const void *elements);
/* The same in stretches, side by side: begin, any number of appends to each of the pieces, in its
 * row-major order, end. In the file they lie one behind the other; behind a URL, where nothing can
 * be written but at the end, all but the first wait in a file of this host. Pieces, names and boxes
 * stay as they are until the end; nothing else is written between. More or fewer bytes than a piece
 * holds are ERR_INPUT. Where an append or an end fails the writer is spoiled: every later call is
 * ERR_INPUT, and nothing is published. */
enum { BUNDLE_BESIDE_MAX = 8 };
err bundle_begin(struct bundle_writer *, const struct bundle_piece *, int count);
err bundle_append(struct bundle_writer *, int piece, const void *elements, size_t bytes);
err bundle_end(struct bundle_writer *);
/* Syncs both files and gives them their names, data first; frees the writer in any case. */
err bundle_finish(struct bundle_writer *);
void bundle_abandon(struct bundle_writer *); /* removes what was written; NULL is fine */

/* Joins shards into one bundle, as TensorFlow's MergeV2Checkpoints does: their data files are
 * renamed to prefix.data-KKKKK-of-NNNNN in the order given, the joined index is written under a
 * temporary name, synced, renamed to prefix.index, and the folder synced. ERR_INPUT where two
 * shards hold the same key, ERR_PEER where there is a bundle of this prefix already. On success the
 * shards' own index files, which stay, are the caller's to remove; on failure the shards are as
 * they were, and nothing of the prefix is left by it.
 */
err bundle_merge(const char *const shards[], int count, const char *prefix);

/* The bundle once more, under another name, without the tensors that are not wanted (NULL: with
 * all; slices cannot be left out): data files are linked where the file system can, else copied,
 * behind a URL by way of this host. What was under that name is gone. */
err bundle_link(const char *from, const char *to, bool (*is_wanted)(const char *name));

/* Removes prefix.index, then all prefix.data-*; absent files are no error. */
err bundle_remove(const char *prefix);

/* ---- reading ---- */

struct bundle_entry {
    const char *name;
    int dtype;
    struct bundle_shape shape;
    int slice_count; /* 0: stored whole */
};

struct bundle;
/* Reads and checks the whole index, and that the data files are there and long enough. */
err bundle_open(const char *prefix, struct bundle **ret);
void bundle_close(struct bundle *); /* NULL is fine */
const char *bundle_prefix(const struct bundle *);
int bundle_shards(const struct bundle *);  /* data files */
int bundle_entries(const struct bundle *); /* named tensors, a sliced one counts once */
const struct bundle_entry *bundle_at(const struct bundle *, int index); /* sorted by name */
const struct bundle_entry *bundle_find(const struct bundle *, const char *name); /* NULL: none */
/* For the message about one that is not there: the nearest of the names that are wanted (NULL: of
 * all); "" where there is no memory to look. */
struct suggestion bundle_nearest(const struct bundle *, const char *name,
                                 bool (*is_wanted)(const struct bundle_entry *));

/* The box of the tensor (NULL: all of it) into ret, row-major: from whatever slices hold it. Data
 * are checked by their checksums, which takes reading every stored slice that the box touches, in
 * pieces; ret is overwritten even where an error comes. ret_bytes must be exactly what the box
 * holds. ERR_INPUT too where the slices do not cover the box. */
err bundle_read(struct bundle *, const struct bundle_entry *, const struct bundle_box *, void *ret,
                size_t ret_bytes);

/* The same in stretches of rows (positions along axis 0; a scalar is one row), for tensors that are
 * too large to be in memory twice: take gets whole rows of the box, row-major, each row once, at
 * most BUNDLE_STRETCH_BYTES at a time or one row, and ascending; first_row counts in the tensor. A
 * box without elements gives nothing. What take returns is returned.
 *
 * Where slices are cut along axis 0 only, each is read once. Where one holds only parts of the
 * box' rows, all are read by bundle_read for each stretch: right and slow. A checksum is known to
 * hold only at the end of its slice, after rows were given: on an error the caller throws away what
 * it took. Memory: a stretch and a buffer. */
enum { BUNDLE_STRETCH_BYTES = 1 << 20 };
struct bundle_taker {
    void *context;
    err (*take)(void *context, int64_t first_row, int64_t rows, const void *elements);
};
err bundle_read_rows(struct bundle *, const struct bundle_entry *, const struct bundle_box *,
                     const struct bundle_taker *);

/* Rows of a matrix by their numbers, which ascend, into ret [count, width]: only they are read, and
 * no checksum can be compared; bundle_check did that for all. ERR_INPUT: not rows of a matrix of a
 * type that is known; rows that no slice holds are left as they are in ret. */
err bundle_pick_rows(struct bundle *, const struct bundle_entry *, const int64_t *rows,
                     int64_t count, void *ret);
/* Whether all of the tensor is there, and its checksums hold. */
err bundle_check(struct bundle *, const struct bundle_entry *);

/* Reads everything and compares all checksums, also of types that cannot be read. */
err bundle_verify(struct bundle *);
/* Stored slice `index` of an entry, sorted by where they begin, for people: its box, data file and
 * bytes. An entry that is stored whole has one. */
struct bundle_place {
    struct bundle_box box;
    int shard;
    int64_t offset, bytes;
};
struct bundle_place bundle_place(const struct bundle *, const struct bundle_entry *, int index);

#endif
