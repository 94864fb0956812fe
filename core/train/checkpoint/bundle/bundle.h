/* bundle.h - TensorFlow's checkpoint format V2, the "tensor bundle": an index file, which is a
 * sorted table of key and entry with a checksum per block, and data files of raw tensors with a
 * checksum in each entry.
 *
 * A bundle is named by its prefix P: P.index and P.data-00000-of-00003 ... A variable that is cut
 * into slices is one entry of its full name and shape, and one entry per slice; readers see the
 * whole.
 *
 * All reading functions accept files of any origin: damaged, truncated or forged files are
 * ERR_INPUT, which names the file and the key; data are used only after their checksum was
 * compared; allocations are bounded by the files' real sizes. System errors are ERR_IO.
 */
#ifndef CORE_TRAIN_CHECKPOINT_BUNDLE_BUNDLE_H
#define CORE_TRAIN_CHECKPOINT_BUNDLE_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/fields/fields.h"

enum {
    BUNDLE_RANK_MAX = 8,       /* entries of a higher rank are refused when the index is read */
    BUNDLE_SHARDS_MAX = 99999, /* the file names have five digits */
    BUNDLE_NAME_MAX = 4096,
};

/* TensorFlow's numbers of the types that can be read and written here. Entries of other types,
 * strings too, are listed but cannot be read. */
enum bundle_dtype {
    BUNDLE_FLOAT = 1,
    BUNDLE_DOUBLE = 2,
    BUNDLE_INT32 = 3,
    BUNDLE_UINT8 = 4,
    BUNDLE_INT64 = 9,
};
size_t bundle_dtype_size(int dtype);      /* bytes of one element; 0: unknown type */
const char *bundle_dtype_name(int dtype); /* TensorFlow's, or "unknown type": static */

struct bundle_shape {
    int rank;
    int64_t dim[BUNDLE_RANK_MAX];
};
int64_t bundle_count(const struct bundle_shape *); /* elements; -1: too many */

/* A box within a tensor: elements start .. start + length - 1 along each axis. */
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
/* Appends the piece's elements, row-major. A name may come again only with another box of the same
 * shape and type: bundle_finish checks that. */
err bundle_add(struct bundle_writer *, const struct bundle_piece *, const void *elements);
/* The same in increments, for several pieces at once: begin, any number of appends to each piece in
 * its row-major order, end. In the file the pieces follow each other; behind a URL, where data can
 * only be appended, all but the first are buffered in a local file. Pieces, names and boxes must
 * stay valid until the end; no bundle_add in between. ERR_INPUT: more or fewer bytes than a piece
 * holds. If an append or an end fails the writer is unusable: every later call is ERR_INPUT, and
 * nothing is published. */
enum { BUNDLE_BESIDE_MAX = 8 };
err bundle_begin(struct bundle_writer *, const struct bundle_piece *, int count);
err bundle_append(struct bundle_writer *, int piece, const void *elements, size_t bytes);
err bundle_end(struct bundle_writer *);
/* Syncs both files and gives them their names, data first; frees the writer in any case. */
err bundle_finish(struct bundle_writer *);
void bundle_abandon(struct bundle_writer *); /* removes what was written; NULL is fine */

/* Joins shards into one bundle, as TensorFlow's MergeV2Checkpoints does: renames their data files
 * to prefix.data-KKKKK-of-NNNNN in the given order, writes the joined index under a temporary name,
 * syncs it, renames it to prefix.index, and syncs the folder. ERR_INPUT: two shards have the same
 * key; ERR_PEER: a bundle of this prefix exists. On success the caller removes the shards' index
 * files, which stay; on failure the shards are unchanged, and no file of the prefix is left behind.
 */
err bundle_merge(const char *const shards[], int count, const char *prefix);

/* Copies a bundle to another name, without the tensors that are not wanted (NULL: all are; slices
 * cannot be left out): data files are hard-linked where the file system supports it, else copied,
 * behind a URL through this host. Replaces a bundle of that name. */
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
/* Reads and checks the whole index, and checks that the data files exist and are long enough. */
err bundle_open(const char *prefix, struct bundle **ret);
void bundle_close(struct bundle *); /* NULL is fine */
const char *bundle_prefix(const struct bundle *);
int bundle_shards(const struct bundle *);  /* data files */
int bundle_entries(const struct bundle *); /* named tensors, a sliced one counts once */
const struct bundle_entry *bundle_at(const struct bundle *, int index); /* sorted by name */
const struct bundle_entry *bundle_find(const struct bundle *, const char *name); /* NULL: none */
/* For error messages about a missing tensor: the nearest of the wanted names (NULL: of all); "" if
 * out of memory. */
struct suggestion bundle_nearest(const struct bundle *, const char *name,
                                 bool (*is_wanted)(const struct bundle_entry *));

/* Reads a box of the tensor (NULL: all of it) into ret, row-major, from whatever slices hold it. To
 * compare checksums it reads every stored slice that the box touches completely, in pieces; ret is
 * overwritten even on errors. ret_bytes must be exactly the size of the box. ERR_INPUT also if the
 * slices do not cover the box. */
err bundle_read(struct bundle *, const struct bundle_entry *, const struct bundle_box *, void *ret,
                size_t ret_bytes);

/* The same in batches of rows (positions along axis 0; a scalar is one row), for tensors too large
 * to be in memory twice: take gets whole rows of the box, row-major, ascending, each once, at most
 * BUNDLE_STRETCH_BYTES at a time or one row; first_row counts within the tensor. Not called for a
 * box without elements. Returns take's error.
 *
 * If slices are cut along axis 0 only, each is read once. If one holds only parts of the box' rows,
 * bundle_read reads each batch, which is slow. A checksum is compared only at the end of its slice,
 * after its rows were passed on: on an error the caller must discard all rows. Memory: one batch
 * and a buffer.
 */
enum { BUNDLE_STRETCH_BYTES = 1 << 20 };
struct bundle_taker {
    void *context;
    err (*take)(void *context, int64_t first_row, int64_t rows, const void *elements);
};
err bundle_read_rows(struct bundle *, const struct bundle_entry *, const struct bundle_box *,
                     const struct bundle_taker *);

/* Reads rows of a matrix, by ascending numbers, into ret [count, width]. Reads nothing else, so
 * checksums are not compared; bundle_check does that. ERR_INPUT: not rows of a matrix of a known
 * type; rows that no slice holds are left unchanged in ret. */
err bundle_pick_rows(struct bundle *, const struct bundle_entry *, const int64_t *rows,
                     int64_t count, void *ret);
/* Checks that all of the tensor is stored, and its checksums. */
err bundle_check(struct bundle *, const struct bundle_entry *);

/* Reads everything and compares all checksums, including those of types that cannot be read. */
err bundle_verify(struct bundle *);
/* Where a stored slice of an entry is, sorted by start, for display: its box, data file and bytes.
 * An entry that is stored whole has one. */
struct bundle_place {
    struct bundle_box box;
    int shard;
    int64_t offset, bytes;
};
struct bundle_place bundle_place(const struct bundle *, const struct bundle_entry *, int index);

#endif
