/* checkpoints.h - the folder of a run: which checkpoints there are, which is the last, which may
 * go.
 *
 * Files are TensorFlow's: model.ckpt-STEP.index and .data-..., and `checkpoint`, the state file,
 * which names all that are kept, oldest first, and is replaced last, by rename. A checkpoint counts
 * from the moment it stands there. Shards are written to model.ckpt-STEP_temp_<16 hex>/part-KKKKK-
 * of-NNNNN first; what a dead chief left of that is removed at open.
 *
 * A reader that needs time (an evaluator) takes a lease: a file .lease-model.ckpt-STEP.<name>
 * whose time it renews. A checkpoint with a lease younger than LEASE_MAX_S is not removed.
 */
#ifndef CORE_TRAIN_CHECKPOINT_CHECKPOINTS_H
#define CORE_TRAIN_CHECKPOINT_CHECKPOINTS_H

#include "core/train/checkpoint/bundle/bundle.h"

/* Beside the checkpoints: what a run has measured of its data (core/train/spec/measured.c) */
#define MEASURED_NAME "measured.json"
#define LAST_SPEC_NAME "last_spec.json"
/* which files it is at (core/train/spec/day.h) */
#define DAY_NAME "day.json"
/* and what was set while it ran (core/train/spec/settings.h) */
#define SETTINGS_NAME "settings.json"
/* In the folder of the best ones: how good each is (best_checkpoints.h) */
#define BEST_NAME "best.json"

enum { CHECKPOINT_PATH_MAX = 4096, CHECKPOINTS_MAX = 100000, LEASE_MAX_S = 600 };

struct retention {
    int64_t keep_max; /* 0: all stay (and the state file names only the last, as TensorFlow) */
    double keep_every_hours; /* one per so many hours stays for good; 0: none does */
};

struct checkpoints;
/* Makes the folder where it is absent (with its parents), reads the state file. Where that is
 * absent or cannot be understood the folder is searched for model.ckpt-*.index, which is a warning
 * in the log. Retention removes what the state file names, and nothing else does; what was found by
 * the search is resumed from, and never removed or replaced. An absolute path in the state file
 * that leads nowhere is looked for by its last part beside the state file: the folder may have
 * moved. now_s: unix time. ERR_IO where the folder cannot be made or written (tested by writing).
 */
err checkpoints_open(const char *directory, const struct retention *, double now_s,
                     struct checkpoints **ret);
/* Its path, absolute and without links; makes the folder where it is one of this host, and asks no
 * server. */
err checkpoints_place(const char *directory, char ret[CHECKPOINT_PATH_MAX]);
/* Whether it could be opened, as there: makes the folder, and touches nothing in it. */
err checkpoints_prove(const char *directory);
/* A run could write into it once: of this host, by what lies there. */
bool checkpoints_has_begun(const char *directory);
void checkpoints_close(struct checkpoints *);                  /* NULL is fine */
const char *checkpoints_directory(const struct checkpoints *); /* absolute */

/* The newest, the one before it with index 1, ...: its prefix, or NULL past the oldest. The newest
 * is what the state file says, though files of it may be missing, which whoever opens it must
 * learn; older ones are those that have an index. */
const char *checkpoints_newest(const struct checkpoints *, int index);
/* Whether a run gives this name to files that it keeps in its folder. */
bool checkpoints_keep(const char *name);
/* STEP of model.ckpt-STEP; -1 where the name has none. */
int64_t checkpoint_step(const char *prefix);

/* Where the shards of a new checkpoint go: the folder model.ckpt-STEP_temp_<tag>, in which shard k
 * of n is bundle part-KKKKK-of-NNNNN. A ps makes it where it comes before the chief's
 * checkpoints_begin; no two attempts have the same tag. ERR_INPUT: the path is too long. */
err checkpoint_temporary_folder(const char *directory, uint64_t step, uint64_t tag,
                                char ret_folder[CHECKPOINT_PATH_MAX]);
/* That folder, and the run's own where it was removed meanwhile. ERR_IO. */
err checkpoint_make_folder(const char *folder);
err checkpoints_begin(struct checkpoints *, uint64_t step, uint64_t tag,
                      char ret_folder[CHECKPOINT_PATH_MAX]);
void checkpoint_shard_prefix(const char *folder, int shard, int shards,
                             char ret_prefix[CHECKPOINT_PATH_MAX]);
/* Of a checkpoint that will not be; with the last one its folder goes. A prefix that is none of a
 * shard: nothing is removed. */
void checkpoint_remove_shard(const char *prefix);
/* ERR_PEER: another one owns the folder. Checkpoints that somebody removed are forgotten. All
 * shards are there: joins them, replaces the state file, removes what retention lets go.
 * ret_prefix: of the new checkpoint. The same step again replaces what was there; while that is
 * leased the new one is called model.ckpt-0STEP, and always where a checkpoint of this step is
 * there that the state file does not name, which stays. The temporary folder is gone in any case.
 */
err checkpoints_publish(struct checkpoints *, const char *folder, int shards, uint64_t step,
                        double now_s, char ret_prefix[CHECKPOINT_PATH_MAX]);
/* The newest gets variables, slots and powers of another checkpoint, `from`, and keeps its step and
 * what counts pushes and rows; it is published as another one of its step. Files of this host. */
err checkpoints_take_values(struct checkpoints *, const char *from, uint64_t tag, double now_s,
                            char ret_prefix[CHECKPOINT_PATH_MAX]);
/* A checkpoint of another folder is published here, too: linked where the file system can, else
 * copied. */
err checkpoints_copy(struct checkpoints *, const char *from, uint64_t tag, double now_s,
                     char ret_prefix[CHECKPOINT_PATH_MAX]);
/* Another thread of the run reads this checkpoint: it stays until another one is named. NULL: none.
 */
void checkpoints_hold(struct checkpoints *, const char *prefix);
void checkpoints_abandon(struct checkpoints *,
                         const char *folder); /* removes the temporary folder */
/* What dead or abandoned attempts left, whoever made it; while none is going on. At open, too. */
void checkpoints_sweep(struct checkpoints *, double now_s);

/* A file in the folder that others look for, to learn whether they see the same folder. Whoever
 * wrote it last owns the folder: an earlier owner publishes nothing any more, and what it has
 * published is in the list. Looked for right before the state file is replaced; between the two
 * another task may write it, and then the next checkpoint puts the state file right. It says, too,
 * how often the job was resized: so many times, or the more that an earlier owner knew of. */
err checkpoints_own(struct checkpoints *, uint64_t token, uint64_t resizes, double now_s);
err checkpoints_still_own(const struct checkpoints *); /* ERR_PEER: no more */
/* The token once more, though it is gone (somebody removed it, with all else perhaps) or another's.
 * ERR_PEER: another chief has published since, be it that it came to the end. */
err checkpoints_take_again(const struct checkpoints *);
uint64_t checkpoints_resizes(const struct checkpoints *); /* as it says there */
void checkpoints_token_remove(struct checkpoints *, uint64_t token);
bool checkpoints_token_is_seen(const char *directory, uint64_t token);
err checkpoints_token(const char *directory, uint64_t *ret); /* 0: there is none; as below */
/* ERR_IO: a disk or a server did not say. */
err checkpoints_token_find(const char *directory, uint64_t token, bool *ret_is_seen);

/* ERR_INPUT: too long a path. */
err folder_join(const char *folder, const char *name, char ret[CHECKPOINT_PATH_MAX]);

/* Of any run's folder, without taking part in it: the newest checkpoint that the state file names
 * (relative paths joined to the folder), or of a given path: a folder, a prefix, or an .index file.
 * ERR_INPUT says what was looked for. */
err checkpoint_find(const char *path, char ret_prefix[CHECKPOINT_PATH_MAX]);
/* All that the state file names, oldest first, in one allocation freed by the caller with free().
 */
err checkpoint_list(const char *directory, char ***ret_prefixes, int *ret_count);

struct lease;
err lease_take(const char *prefix, const char *holder, struct lease **ret);
err lease_renew(struct lease *);
void lease_drop(struct lease *); /* NULL is fine */

/* The same for who publishes in this very process, and without the disk, which may not answer now:
 * until it is let go as often as it was held. Not remembered by a restart. ERR_MEMORY */
err lease_hold(const char *prefix);
void lease_let_go(const char *prefix);

#endif
