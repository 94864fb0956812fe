/* save.h - a table over many ps, and its shards as a checkpoint, for the tests of this folder. */
#ifndef TESTS_CORE_TRAIN_CHECKPOINT_TABLES_SAVE_H
#define TESTS_CORE_TRAIN_CHECKPOINT_TABLES_SAVE_H

#include "core/train/checkpoint/shard.h"
#include "core/train/variables/store.h"
#include "tests/core/train/checkpoint/folder.h"

enum { SHARDS_MAX = 16 };

/* A table and its slot of Adagrad, on as many ps as it has parts. */
struct world {
    struct arena arena;
    struct device device;
    struct optimizer_spec spec;
    float *values;
    struct store dense; /* whose updater the parts have */
    int parts, mod;     /* mod: ids go to so many by turns; 0: they do not */
    struct slice slices[SHARDS_MAX];
    struct shard_table tables[SHARDS_MAX];
    struct shard shards[SHARDS_MAX];
    int64_t ledger[LEDGER_COLUMNS];
};

void world_open(struct world *, int parts, int mod); /* without its parts */
void world_open_part(struct world *, const struct slice *, const struct initializer *,
                     const struct growth *, uint64_t global_step); /* growth NULL: it does not */
void world_close(struct world *);

/* Writes each with its table as they are now, and joins them; ret_prefix: of the whole. */
void save_shards(const struct shard *, const struct shard_table *tables, int count,
                 const char *folder, char ret_prefix[FOLDER_PATH_MAX]);

#endif
