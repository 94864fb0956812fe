/* checkpoints_inside.h - private parts of checkpoints.h: names, the folder, the state file, leases.
 */
#ifndef CORE_TRAIN_CHECKPOINT_CHECKPOINTS_INSIDE_H
#define CORE_TRAIN_CHECKPOINT_CHECKPOINTS_INSIDE_H

#include "core/train/checkpoint/checkpoints.h"

#define CHECKPOINT_NAME "model.ckpt-"
#define CHECKPOINT_STATE "checkpoint"
#define CHECKPOINT_INDEX ".index"
#define CHECKPOINT_DATA ".data-"
#define LEASE_NAME ".lease-"
#define TOKEN_NAME ".token"
#define ENDED_NAME ".ended"

enum {
    FOLDER_NAMES_MAX = 1 << 22, /* a search of a folder stops after this many names */
    STATE_BYTES_MAX = 32 << 20,
    STALE_S = 24 * 60 * 60, /* files that a running task writes or renews are younger */
    SPARE_ZEROS_MAX = 8,
};

/* ---- folders (folder.c) ---- */

err folder_make(const char *path);                                /* with its parents */
err folder_copy(const char *path, char ret[CHECKPOINT_PATH_MAX]); /* ERR_INPUT: too long */
/* ret: the part before the last slash, "." if there is none; returns the part after it */
const char *folder_split(const char *path, char ret[CHECKPOINT_PATH_MAX]);
/* Calls visit for every name, in no order; it may remove the file. */
typedef void folder_visitor(void *context, const char *name);
err folder_visit(const char *path, folder_visitor *visit, void *context);
void folder_unlink(const char *path); /* removes a file; errors are ignored */
/* Removes the folder's files whose names begin with `begin`, then the folder if it is empty */
void folder_remove_named(const char *folder, const char *begin);
#define CHECKPOINT_PART "part-" /* all shards' */
/* A run's files beside its checkpoints: the state file, the token, how it ended, statistics of the
 * data, the spec, settings, the position in followed files */
enum { RUN_FILES = 7 };
extern const char *const run_file_names[RUN_FILES];
/* Whether prefix.index exists. On failure that is unknown. */
err folder_find_index(const char *prefix, bool *ret_is_there);
bool has_index(const char *prefix);    /* prefix.index exists, or that is unknown */
bool is_data_ending(const char *text); /* ".data-00000-of-00002" */
/* Time of the last change, unix time; -1: no such file. Fails if a server or a disk does not answer
 */
err file_time(const char *path, double *ret_s);
double file_time_s(const char *path); /* -1 also after a failure */
/* Whether the last change is that long ago; FILE_RECENT if unknown. */
enum file_age { FILE_GONE, FILE_RECENT, FILE_OLD };
enum file_age file_age(const char *path, double limit_s, double now_s);

/* ---- the state file (state.c, text.c) ---- */

struct checkpoint_record {
    char *prefix;  /* owned */
    double time_s; /* -1: not known */
    bool is_found; /* found by a search instead of the state file: resumed from, but never removed
                    */
};

struct checkpoint_state {
    struct checkpoint_record *records; /* oldest first */
    int count, capacity;
    double preserved_s; /* last_preserved_timestamp; 0: not known */
};

err state_add(struct checkpoint_state *, const char *prefix, double time_s);
void state_forget(struct checkpoint_state *, int index);
void state_fini(struct checkpoint_state *);

/* Joins prefixes to the directory. A missing file gives no records. ERR_INPUT: invalid. */
err state_read(const char *directory, struct checkpoint_state *ret);
/* Lists records[first ..]; prefixes in the directory are written relative to it. */
err state_write(const char *directory, const struct checkpoint_state *, int first);

/* Parses the text only; prefixes are returned as written. A valid text lists at least one. */
err state_parse(const char *text, size_t length, struct checkpoint_state *ret);

/* ---- the run (checkpoints.c) ---- */

struct checkpoints {
    char directory[CHECKPOINT_PATH_MAX]; /* absolute, links resolved */
    struct retention retention;
    struct checkpoint_state state;  /* oldest first */
    uint64_t token;                 /* of checkpoints_own; 0: ownership is not checked */
    uint64_t resizes;               /* of the job, counted by the folder's owners */
    char held[CHECKPOINT_PATH_MAX]; /* checkpoints_hold(); "": none */
};
/* Whether the checkpoint is in this folder; a state file may list others. */
bool checkpoints_is_ours(const struct checkpoints *, const char *path);

/* ---- what comes (publish.c) ---- */

/* Joins the shards in a temporary folder into the bundle of that prefix. */
err checkpoints_merge(const char *folder, int shards, const char *prefix);

/* ---- leases (lease.c) ---- */

/* Whether the checkpoint is leased; also removes its expired leases. */
bool lease_is_held(const char *prefix, double now_s);
/* Whether the lease marks a copy into the folder of the best checkpoints, by which an incomplete
 * copy of a killed task is found: only best_checkpoints_sweep removes it. */
bool lease_is_of_best(const char *name);

/* ---- what may go (publish.c) ---- */

/* Whether retention removes records[index] with the next checkpoint, or its files are missing
 * because a removal was interrupted. */
bool checkpoints_lets_go(const struct checkpoints *, int index);

/* ---- what is left of dead runs (sweep.c) ---- */

/* <file>.tempstate<number>: the temporary name of one of RUN_FILES or of the index of a checkpoint
 * or a delta */
bool is_temporary_file(const char *name);
/* Adds the folder's checkpoints of steps below `below`, sorted by step. */
err checkpoints_search(const char *directory, int64_t below, struct checkpoint_state *);
/* Called after a search and the sweep. If a newer step has data files but no index, as in a partly
 * copied folder, adds it as the newest checkpoint, and opening it will fail. Exception: data of a
 * single step in a folder without other checkpoints, which may be all that a power failure left of
 * a run's first checkpoint. */
err checkpoints_add_lost(struct checkpoints *);
/* model.ckpt-STEP, with this many zeros before the step. */
err checkpoint_name(const char *directory, uint64_t step, int zeros, char ret[CHECKPOINT_PATH_MAX]);
/* STEP of model.ckpt-STEP; ret_rest: the text after it. -1: not such a name. */
int64_t checkpoint_name_step(const char *name, const char **ret_rest);

#endif
