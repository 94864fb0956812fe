/* run.h - a small run's folder: checkpoints of two shards that hold their own step. */
#ifndef TESTS_CORE_TRAIN_CHECKPOINT_RUN_H
#define TESTS_CORE_TRAIN_CHECKPOINT_RUN_H

/* Before cmocka, which calls a macro like the program's fail(). */
#include "core/train/checkpoint/checkpoints.h"
#include "tests/core/train/checkpoint/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RUN_SHARDS = 2, RUN_FLOATS = 64 };

/* keep_max as given, nothing stays for good. */
struct checkpoints *run_open(const char *folder, int64_t keep_max, double now_s);

/* The two bundles of a step, in the folder that checkpoints_begin made. */
err run_write_shards(const char *folder, float value);
/* Begins, writes, publishes. value: what the checkpoint holds. */
err run_try(struct checkpoints *, uint64_t step, float value, double now_s);
/* The same, which must succeed; value: the step. The prefix is in one of a few buffers. */
const char *run_publish(struct checkpoints *, uint64_t step, double now_s);

/* It opens, all checksums are right, and it holds this value in all its elements. */
void run_check(const char *prefix, float value);

/* The base names that the state file lists, oldest first, with blanks between: in one buffer. */
const char *run_list(const char *folder);

#endif
