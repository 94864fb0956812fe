/* bundle_made.h - bundles that the tests of bundles make, and files as bytes. */
#ifndef TESTS_CORE_TRAIN_CHECKPOINT_BUNDLE_MADE_H
#define TESTS_CORE_TRAIN_CHECKPOINT_BUNDLE_MADE_H

#include "core/train/checkpoint/bundle/bundle_inside.h"
#include "core/train/checkpoint/bundle/sorted.h"
#include "tests/core/train/checkpoint/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MADE_BYTES_MAX = 1 << 16 };

struct bytes {
    uint8_t at[MADE_BYTES_MAX];
    size_t count;
};
void bytes_load(const char *path, struct bytes *);
void bytes_store(const char *path, const void *at, size_t count);
void assert_file_holds(const char *path, const void *wanted, size_t count);

/* A piece with its elements. */
struct made {
    struct bundle_piece piece;
    const void *elements;
};
void write_bundle(const char *prefix, const struct made *, int count);

/* bundle_merge, which must succeed, and then the shards' own indexes go, as its caller's task is.
 */
void merge_shards(const char *const shards[], int count, const char *prefix);

/* The two shards of one checkpoint: emb [3, 2] in two slices, bias [1], global_step. */
enum { EMB_ROWS = 3, EMB_COLUMNS = 2 };
void write_ps_0(const char *prefix);
void write_ps_1(const char *prefix);
/* Both joined in the folder, as model.ckpt-7; returns the prefix, as folder_path does. */
const char *write_both(const char *folder);
/* folder/name in memory of the caller's, for a name that is used for long. */
struct path {
    char at[FOLDER_PATH_MAX];
};
struct path path_of(const char *folder, const char *name);

/* Opens what must be right. */
struct bundle *opened(const char *prefix);
void assert_refused(err e, err wanted, const char *text);

#endif
