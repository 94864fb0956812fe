/* save.h - shards of tables as a checkpoint, for the tests of this folder. */
#ifndef TESTS_CHECKPOINT_TABLES_SAVE_H
#define TESTS_CHECKPOINT_TABLES_SAVE_H

#include "core/train/checkpoint/shard.h"
#include "tests/checkpoint/folder.h"

enum { SHARDS_MAX = 16 };

/* Writes each with its table as they are now, and joins them; ret_prefix: of the whole. */
void save_shards(const struct shard *, const struct shard_table *tables, int count,
                 const char *folder, char ret_prefix[FOLDER_PATH_MAX]);

#endif
