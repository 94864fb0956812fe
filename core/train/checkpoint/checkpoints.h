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

/* Files beside the checkpoints: what a run has measured of its data (core/train/spec/measured.c),
 */
#define MEASURED_NAME "measured.json"
#define LAST_SPEC_NAME "last_spec.json"
/* which files it is at (core/train/spec/day.h), */
#define DAY_NAME "day.json"
/* and what was set while it ran (core/train/spec/settings.h). */
#define SETTINGS_NAME "settings.json"
/* In the folder of the best ones: how good each is (best_checkpoints.h) */
#define BEST_NAME "best.json"

enum { CHECKPOINT_PATH_MAX = 4096, CHECKPOINTS_MAX = 100000, LEASE_MAX_S = 600 };

struct retention {
    int64_t keep_max; /* 0: all stay (and the state file names only the last, as TensorFlow) */
    double keep_every_hours; /* one checkpoint per this many hours stays for good; 0: none does */
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
/* The folder's absolute path without links; makes the folder if it is on this host, and asks no
 * server. */
err checkpoints_place(const char *directory, char ret[CHECKPOINT_PATH_MAX]);
/* Checks, as checkpoints_open, whether the folder can be made and written, and changes nothing in
 * it. */
err checkpoints_prove(const char *directory);
/* Whether a run has written into the folder before: for a folder of this host, by what is in it. */
bool checkpoints_has_begun(const char *directory);
void checkpoints_close(struct checkpoints *);                  /* NULL is fine */
const char *checkpoints_directory(const struct checkpoints *); /* absolute */

/* The prefix of the newest checkpoint, with index 1 of the one before it, ...; NULL past the
 * oldest. The newest is what the state file says, though files of it may be missing, which opening
 * it will show; older ones are those that have an index. */
const char *checkpoints_newest(const struct checkpoints *, int index);
/* Whether this is a name of a file that a run keeps in its folder. */
bool checkpoints_keep(const char *name);
/* STEP of model.ckpt-STEP; -1 where the name has none. */
int64_t checkpoint_step(const char *prefix);

/* Where the shards of a new checkpoint go: the folder model.ckpt-STEP_temp_<tag>, in which shard k
 * of n is bundle part-KKKKK-of-NNNNN. A ps makes it where it comes before the chief's
 * checkpoints_begin; no two attempts have the same tag. ERR_INPUT: the path is too long. */
err checkpoint_temporary_folder(const char *directory, uint64_t step, uint64_t tag,
                                char ret_folder[CHECKPOINT_PATH_MAX]);
/* Makes that folder, and the run's own if it was removed meanwhile. ERR_IO. */
err checkpoint_make_folder(const char *folder);
err checkpoints_begin(struct checkpoints *, uint64_t step, uint64_t tag,
                      char ret_folder[CHECKPOINT_PATH_MAX]);
void checkpoint_shard_prefix(const char *folder, int shard, int shards,
                             char ret_prefix[CHECKPOINT_PATH_MAX]);
/* Removes a shard of a checkpoint that is given up; with the last shard its folder goes. A prefix
 * that is not a shard's: nothing is removed. */
void checkpoint_remove_shard(const char *prefix);
/* All shards are there: joins them, replaces the state file, and removes what retention lets go.
 * ret_prefix: of the new checkpoint. A checkpoint of the same step is replaced; while that is
 * leased the new one is called model.ckpt-0STEP, and also where a checkpoint of this step exists
 * that the state file does not name, which stays. Checkpoints that somebody removed are forgotten.
 * The temporary folder is gone in any case. ERR_PEER: another chief owns the folder. */
err checkpoints_publish(struct checkpoints *, const char *folder, int shards, uint64_t step,
                        double now_s, char ret_prefix[CHECKPOINT_PATH_MAX]);
/* The newest checkpoint gets variables, slots and powers of another one, `from`, and keeps its step
 * and its counts of pushes and rows; it is published as another checkpoint of its step. Only for
 * files of this host. */
err checkpoints_take_values(struct checkpoints *, const char *from, uint64_t tag, double now_s,
                            char ret_prefix[CHECKPOINT_PATH_MAX]);
/* Publishes a checkpoint of another folder here, too: linked where the file system can, else
 * copied. */
err checkpoints_copy(struct checkpoints *, const char *from, uint64_t tag, double now_s,
                     char ret_prefix[CHECKPOINT_PATH_MAX]);
/* Keeps this checkpoint from removal while another thread of the run reads it, until another one is
 * named. NULL: none. */
void checkpoints_hold(struct checkpoints *, const char *prefix);
void checkpoints_abandon(struct checkpoints *,
                         const char *folder); /* removes the temporary folder */
/* Removes what dead or abandoned attempts of any task left; only while none is under way.
 * checkpoints_open does it, too. */
void checkpoints_sweep(struct checkpoints *, double now_s);

/* Writes a token file into the folder, by which other tasks learn whether they see the same folder.
 * Whoever wrote it last owns the folder: an earlier owner publishes nothing any more, and what it
 * has published is in the list. The token is checked right before the state file is replaced; if
 * another task writes one between the two, its next checkpoint puts the state file right. The file
 * also says how often the job was resized: `resizes`, or more if an earlier owner knew of more. */
err checkpoints_own(struct checkpoints *, uint64_t token, uint64_t resizes, double now_s);
err checkpoints_still_own(const struct checkpoints *); /* ERR_PEER: another task does */
/* Writes the token again, though it is gone (somebody removed it, perhaps with everything else) or
 * another's. ERR_PEER: another chief has published since, even if it has ended. */
err checkpoints_take_again(const struct checkpoints *);
uint64_t checkpoints_resizes(const struct checkpoints *); /* as the token file says */
void checkpoints_token_remove(struct checkpoints *, uint64_t token);
bool checkpoints_token_is_seen(const char *directory, uint64_t token);
err checkpoints_token(const char *directory, uint64_t *ret); /* 0: there is none; fails as below */
/* ERR_IO: a disk or a server did not say. */
err checkpoints_token_find(const char *directory, uint64_t token, bool *ret_is_seen);

/* ERR_INPUT: too long a path. */
err folder_join(const char *folder, const char *name, char ret[CHECKPOINT_PATH_MAX]);

/* For any run's folder, without taking part in it: finds the newest checkpoint that the state file
 * names (relative paths joined to the folder), or the checkpoint of a path: a folder, a prefix, or
 * an .index file. ERR_INPUT says what was looked for. */
err checkpoint_find(const char *path, char ret_prefix[CHECKPOINT_PATH_MAX]);
/* All checkpoints that the state file names, oldest first, in one allocation freed with free(). */
err checkpoint_list(const char *directory, char ***ret_prefixes, int *ret_count);

struct lease;
err lease_take(const char *prefix, const char *holder, struct lease **ret);
err lease_renew(struct lease *);
void lease_drop(struct lease *); /* NULL is fine */

/* The same for a reader within the process that publishes, in memory only, since the disk may not
 * answer now: it holds until it is let go as often as it was held, and not over a restart.
 * ERR_MEMORY */
err lease_hold(const char *prefix);
void lease_let_go(const char *prefix);

#endif
