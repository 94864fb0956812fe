/* checkpoints.h - the checkpoint folder of a run: which checkpoints exist, which is the newest,
 * which may be removed.
 *
 * Files are TensorFlow's: model.ckpt-STEP.index and .data-..., and `checkpoint`, the state file,
 * which lists all kept checkpoints, oldest first, and is replaced last, by rename. A checkpoint
 * exists once the state file lists it. Shards are first written to model.ckpt-STEP_temp_<16
 * hex>/part-KKKKK-of-NNNNN; what a killed chief left there is removed at open.
 *
 * A slow reader (an evaluator) takes a lease: a file .lease-model.ckpt-STEP.<name> whose
 * modification time it renews. A checkpoint with a lease younger than LEASE_MAX_S is not removed.
 */
#ifndef CORE_TRAIN_CHECKPOINT_CHECKPOINTS_H
#define CORE_TRAIN_CHECKPOINT_CHECKPOINTS_H

#include "core/train/checkpoint/bundle/bundle.h"

/* Files beside the checkpoints: statistics of the training data (core/train/spec/measured.c), */
#define MEASURED_NAME "measured.json"
#define LAST_SPEC_NAME "last_spec.json"
/* the position in followed files (core/train/spec/day.h), */
#define DAY_NAME "day.json"
/* and settings changed while the job ran (core/train/spec/settings.h). */
#define SETTINGS_NAME "settings.json"
/* In the folder of the best checkpoints: the metric of each (best_checkpoints.h) */
#define BEST_NAME "best.json"

enum { CHECKPOINT_PATH_MAX = 4096, CHECKPOINTS_MAX = 100000, LEASE_MAX_S = 600 };

struct retention {
    int64_t keep_max; /* 0: keeps all (and the state file lists only the newest, as in TensorFlow)
                       */
    double keep_every_hours; /* keeps one checkpoint per this many hours forever; 0: none */
};

struct checkpoints;
/* Creates the folder (with its parents) if it does not exist, and reads the state file. If that is
 * missing or invalid, searches the folder for model.ckpt-*.index and logs a warning. Only
 * checkpoints that the state file lists are ever removed or replaced; those found by the search may
 * be resumed from. An absolute path in the state file that does not exist is looked for by its last
 * component beside the state file: the folder may have moved. now_s: unix time. ERR_IO: the folder
 * cannot be created or written (tested by writing). */
err checkpoints_open(const char *directory, const struct retention *, double now_s,
                     struct checkpoints **ret);
/* The folder's absolute path with symbolic links resolved. Creates a local folder; does not contact
 * a server. */
err checkpoints_place(const char *directory, char ret[CHECKPOINT_PATH_MAX]);
/* Checks, as checkpoints_open does, whether the folder can be created and written; leaves it
 * unchanged. */
err checkpoints_prove(const char *directory);
/* Whether an earlier run has written to the folder; of a local folder, judged by its files. */
bool checkpoints_has_begun(const char *directory);
void checkpoints_close(struct checkpoints *);                  /* NULL is fine */
const char *checkpoints_directory(const struct checkpoints *); /* absolute */

/* The prefix of the newest checkpoint, with index 1 of the one before it, ...; NULL past the
 * oldest. The newest is the last one in the state file, even if its files are missing, which
 * opening it will show; older ones are those that have an index file. */
const char *checkpoints_newest(const struct checkpoints *, int index);
/* Whether a run keeps a file of this name in its folder. */
bool checkpoints_keep(const char *name);
/* STEP of model.ckpt-STEP; -1: the name has no step. */
int64_t checkpoint_step(const char *prefix);

/* The folder for the shards of a new checkpoint: model.ckpt-STEP_temp_<tag>, in which shard k of n
 * is bundle part-KKKKK-of-NNNNN. A ps that is ready before the chief's checkpoints_begin creates
 * it. Each attempt has its own tag. ERR_INPUT: the path is too long. */
err checkpoint_temporary_folder(const char *directory, uint64_t step, uint64_t tag,
                                char ret_folder[CHECKPOINT_PATH_MAX]);
/* Creates that folder, and the run's own if it was removed meanwhile. ERR_IO. */
err checkpoint_make_folder(const char *folder);
err checkpoints_begin(struct checkpoints *, uint64_t step, uint64_t tag,
                      char ret_folder[CHECKPOINT_PATH_MAX]);
void checkpoint_shard_prefix(const char *folder, int shard, int shards,
                             char ret_prefix[CHECKPOINT_PATH_MAX]);
/* Removes a shard of an abandoned checkpoint, and the folder after its last shard. Does nothing if
 * the prefix is not that of a shard. */
void checkpoint_remove_shard(const char *prefix);
/* When all shards are written: joins them, replaces the state file, and removes checkpoints that
 * retention does not keep. ret_prefix: of the new checkpoint. Replaces a checkpoint of the same
 * step, unless that is leased, or exists without being listed in the state file: then it stays, and
 * the new one is called model.ckpt-0STEP. Drops checkpoints from the list whose files somebody
 * removed. Removes the temporary folder in any case. ERR_PEER: another chief owns the folder. */
err checkpoints_publish(struct checkpoints *, const char *folder, int shards, uint64_t step,
                        double now_s, char ret_prefix[CHECKPOINT_PATH_MAX]);
/* Copies variables, slots and powers of another checkpoint, `from`, into the newest one, which
 * keeps its step and its counts of pushes and rows, and publishes the result as another checkpoint
 * of that step. Local files only. */
err checkpoints_take_values(struct checkpoints *, const char *from, uint64_t tag, double now_s,
                            char ret_prefix[CHECKPOINT_PATH_MAX]);
/* Publishes a checkpoint of another folder in this one, too: hard links where the file system
 * supports them, else copies. */
err checkpoints_copy(struct checkpoints *, const char *from, uint64_t tag, double now_s,
                     char ret_prefix[CHECKPOINT_PATH_MAX]);
/* Protects this checkpoint from removal while another thread of the process reads it, until the
 * next call. NULL: protects none. */
void checkpoints_hold(struct checkpoints *, const char *prefix);
void checkpoints_abandon(struct checkpoints *,
                         const char *folder); /* removes the temporary folder */
/* Removes what killed or abandoned attempts of any task left; call it only while no save is under
 * way. checkpoints_open does it, too. */
void checkpoints_sweep(struct checkpoints *, double now_s);

/* Writes a token file into the folder, by which other tasks find out whether they use the same
 * folder. The last writer owns the folder: earlier owners publish no more, but what they published
 * stays in the list. The token is checked right before the state file is replaced; if another task
 * writes its token in between, its next checkpoint corrects the state file. The file also counts
 * the job's resizes: `resizes`, or the earlier owner's count if that is larger. */
err checkpoints_own(struct checkpoints *, uint64_t token, uint64_t resizes, double now_s);
err checkpoints_still_own(const struct checkpoints *); /* ERR_PEER: another task owns it */
/* Writes the token again even if it is gone (removed by somebody, perhaps with everything else) or
 * another task's. ERR_PEER: another chief has published since, even if it has ended. */
err checkpoints_take_again(const struct checkpoints *);
uint64_t checkpoints_resizes(const struct checkpoints *); /* from the token file */
void checkpoints_token_remove(struct checkpoints *, uint64_t token);
bool checkpoints_token_is_seen(const char *directory, uint64_t token);
err checkpoints_token(const char *directory, uint64_t *ret); /* 0: no token; fails as the next
                                                                function */
/* ERR_IO: a disk or a server failed to answer. */
err checkpoints_token_find(const char *directory, uint64_t token, bool *ret_is_seen);

/* ERR_INPUT: the path is too long. */
err folder_join(const char *folder, const char *name, char ret[CHECKPOINT_PATH_MAX]);

/* For any run's folder, without joining the run: finds the newest checkpoint that the state file
 * lists (relative paths are joined to the folder), or the checkpoint that a path names: a folder, a
 * prefix, or an .index file. ERR_INPUT says what was looked for. */
err checkpoint_find(const char *path, char ret_prefix[CHECKPOINT_PATH_MAX]);
/* All checkpoints that the state file lists, oldest first, in one allocation that the caller frees
 * with free(). */
err checkpoint_list(const char *directory, char ***ret_prefixes, int *ret_count);

struct lease;
err lease_take(const char *prefix, const char *holder, struct lease **ret);
err lease_renew(struct lease *);
void lease_drop(struct lease *); /* NULL is fine */

/* A lease for a reader within the process that publishes, kept in memory only, because the disk may
 * not answer now. Ends when lease_let_go() was called as often as lease_hold(), or with the
 * process. ERR_MEMORY */
err lease_hold(const char *prefix);
void lease_let_go(const char *prefix);

#endif
