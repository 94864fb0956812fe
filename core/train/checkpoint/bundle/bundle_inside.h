/* bundle_inside.h - shared by the files of this folder: boxes, writing an index, and an open
 * bundle. */
#ifndef CORE_TRAIN_CHECKPOINT_BUNDLE_BUNDLE_INSIDE_H
#define CORE_TRAIN_CHECKPOINT_BUNDLE_BUNDLE_INSIDE_H

#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/bundle/index.h"

/* ---- boxes: bundle.c ---- */

bool box_is_inside(const struct bundle_box *, const struct bundle_shape *);
bool box_is_equal(const struct bundle_box *, const struct bundle_box *, int rank);
struct bundle_shape box_shape(const struct bundle_box *, int rank);
/* The number of elements in both, and their box. */
int64_t box_common(const struct bundle_box *, const struct bundle_box *, int rank,
                   struct bundle_box *ret);

/* ---- index.c ---- */

/* Writes and syncs a sorted index under a temporary name beside `beside`; path is its final name.
 */
err index_save(const struct index *, const char *path, const char *beside, struct output *ret);

/* ---- an open bundle ---- */

/* Elements that are contiguous in a data file. */
struct stored {
    struct bundle_box box; /* in the tensor */
    const struct index_record *record;
};

/* Local files from which rows are picked stay open: each batch picks a few. */
enum { PICKED_FILES_MAX = 64 };
struct picked_file;

struct bundle {
    char *prefix;
    struct index index;
    struct bundle_entry *entries; /* sorted by name */
    int *first;                   /* stored slices of entry i: first[i] .. first[i + 1] - 1 */
    struct stored *stored;        /* per entry sorted by start; none overlap */
    int count;
    int overlap_checks;                                     /* so far, while it is opened */
    _Atomic(struct picked_file *) picked[PICKED_FILES_MAX]; /* by shard; NULL: not yet */
};
void bundle_close_picked(struct bundle *); /* pick.c */

struct stored_list {
    const struct stored *at;
    int count;
};
struct stored_list bundle_stored(const struct bundle *, const struct bundle_entry *);

/* The data file of a record; ret_path is freed by the caller. */
err bundle_open_data(const struct bundle *, const struct index_record *, struct file_reader *ret,
                     char **ret_path);
err bundle_crc_differs(const char *path); /* an ERR_INPUT for a wrong checksum */

#endif
