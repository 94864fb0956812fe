/* cluster.h - ps with their memory, whose shards are written and read. */
#ifndef TESTS_CORE_TRAIN_CHECKPOINT_CLUSTER_H
#define TESTS_CORE_TRAIN_CHECKPOINT_CLUSTER_H

#include "core/train/checkpoint/shard.h"
#include "tests/core/train/checkpoint/folder.h"
#include "tests/core/train/fixture.h"

enum {
    VARIABLES = 4,
    PS_SOME = 3,
    WORKERS = 3,
    BLOCK_FLOATS = 256,
    WHOLE_FLOATS = 64,
    ARRAYS = 3, /* values and two slots */
    SLICES_SOME = 64,
    POISON = -77,
};

extern const struct variable variables[VARIABLES];

/* The ps of a cluster, and all their memory. */
struct cluster {
    struct arena arena;
    struct layout *layout;
    int ps_count;
    struct shard shards[PS_SOME];
    struct slice slices[PS_SOME][SLICES_SOME];
    float blocks[PS_SOME][ARRAYS][BLOCK_FLOATS];
    int64_t ledgers[PS_SOME][WORKERS * LEDGER_COLUMNS];
};

/* The first `count` variables, over so many ps; axis and parts: of the partitioner, parts 0: none.
 * All memory is POISON. */
struct cluster *cluster_open(int count, int ps_count, int axis, int parts);
void cluster_close(struct cluster *);

/* What array `array` (0: values, 1 and 2: slots) of a variable holds in every checkpoint made here:
 * any bits, those of a NaN too. */
void cluster_whole(int variable, int array, float ret[WHOLE_FLOATS]);
void cluster_fill(struct cluster *);
/* What it holds in the cluster. */
void cluster_gather(const struct cluster *, int array, int variable, float *ret);
void cluster_check(const struct cluster *, int array);       /* all as cluster_whole */
int64_t cluster_poisoned(const struct cluster *, int array); /* floats never written */

/* All shards of the cluster, joined to one checkpoint in the folder. */
void cluster_save(const struct cluster *, const char *folder, char prefix[FOLDER_PATH_MAX]);
/* A checkpoint of all variables by two ps, the matrices and vectors cut in three. */
void cluster_save_some(const char *folder, char prefix[FOLDER_PATH_MAX]);
err cluster_restore(struct cluster *, const char *prefix, const struct warm_start *);

/* The text with which a checkpoint is refused. */
const char *cluster_refusal(const char *prefix, struct shard *);

void write_one(const char *prefix, const struct bundle_piece *, const void *elements);
void assert_says(const char *text, const char *what);

#endif
