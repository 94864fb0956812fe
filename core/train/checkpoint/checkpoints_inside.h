/* checkpoints_inside.h - what stands behind checkpoints.h: names, the folder, the state file,
 * leases. */
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
    FOLDER_NAMES_MAX = 1 << 22, /* a search of a folder ends after this many names */
    STATE_BYTES_MAX = 32 << 20,
    STALE_S = 24 * 60 * 60, /* what a living task has written or renewed is younger */
    SPARE_ZEROS_MAX = 8,
};

/* ---- folders (folder.c) ---- */

err folder_make(const char *path);                                /* with its parents */
err folder_copy(const char *path, char ret[CHECKPOINT_PATH_MAX]); /* ERR_INPUT: too long */
/* ret: what stands before the last slash, "." where there is none; returned: what comes after */
const char *folder_split(const char *path, char ret[CHECKPOINT_PATH_MAX]);
/* visit is told every name, in no order; it may remove the file. */
typedef void folder_visitor(void *context, const char *name);
err folder_visit(const char *path, folder_visitor *visit, void *context);
void folder_unlink(const char *path); /* a file; that it cannot be is no failure */
/* Removes the folder's files whose names begin so, then the folder if it is empty */
void folder_remove_named(const char *folder, const char *begin);
#define CHECKPOINT_PART "part-" /* all shards' */
/* What a run has beside its checkpoints: the state file, the token, how it ended, what was
 * measured, the spec, what was set, which files it is at */
enum { RUN_FILES = 7 };
extern const char *const run_file_names[RUN_FILES];
/* Whether there is a prefix.index. A failure: it is not known. */
err folder_find_index(const char *prefix, bool *ret_is_there);
bool has_index(const char *prefix);    /* there is a prefix.index, or it is not known */
bool is_data_ending(const char *text); /* ".data-00000-of-00002" */
/* The time of the last change, unix time; -1: there is no such file. A failure: it is not known, as
 * a server or a disk does not answer */
err file_time(const char *path, double *ret_s);
double file_time_s(const char *path); /* -1 also after a failure */
/* Whether the last change is that long ago; where it is not known, it is recent. */
enum file_age { FILE_GONE, FILE_RECENT, FILE_OLD };
enum file_age file_age(const char *path, double limit_s, double now_s);

/* ---- the state file (state.c, text.c) ---- */

struct checkpoint_record {
    char *prefix;  /* owned */
    double time_s; /* -1: not known */
    bool is_found; /* found by a search, without a state file: in the list, and never removed */
};

struct checkpoint_state {
    struct checkpoint_record *records; /* oldest first */
    int count, capacity;
    double preserved_s; /* last_preserved_timestamp; 0: not known */
};

err state_add(struct checkpoint_state *, const char *prefix, double time_s);
void state_forget(struct checkpoint_state *, int index);
void state_fini(struct checkpoint_state *);

/* Prefixes are joined to the directory. No file: no records. ERR_INPUT: it cannot be understood. */
err state_read(const char *directory, struct checkpoint_state *ret);
/* Names records[first ..], those in the directory without it. */
err state_write(const char *directory, const struct checkpoint_state *, int first);

/* The text alone; prefixes as they stand there. A text that is understood names one or more. */
err state_parse(const char *text, size_t length, struct checkpoint_state *ret);

/* ---- the run (checkpoints.c) ---- */

struct checkpoints {
    char directory[CHECKPOINT_PATH_MAX]; /* absolute, without links */
    struct retention retention;
    struct checkpoint_state state;  /* oldest first */
    uint64_t token;                 /* of checkpoints_own; 0: nobody else is expected */
    uint64_t resizes;               /* resizes of the job that owners of the folder know of */
    char held[CHECKPOINT_PATH_MAX]; /* held by a thread of the run; "": none */
};
/* Whether the checkpoint is in this folder: a state file may name others. */
bool checkpoints_is_ours(const struct checkpoints *, const char *path);

/* ---- what comes (publish.c) ---- */

/* The shards of a temporary folder become the bundle of that prefix. */
err checkpoints_merge(const char *folder, int shards, const char *prefix);

/* ---- leases (lease.c) ---- */

/* Whether the checkpoint is leased; also removes its leases that are over. */
bool lease_is_held(const char *prefix, double now_s);
/* Its holder brings a checkpoint to those that are the best, and this is how what it brought is
 * found when it was killed: only best_checkpoints_sweep removes it. */
bool lease_is_of_best(const char *name);

/* ---- what may go (publish.c) ---- */

/* Whether retention removes records[index] with the next checkpoint: where its files are missing, a
 * removal was cut short. */
bool checkpoints_lets_go(const struct checkpoints *, int index);

/* ---- what is left of dead runs (sweep.c) ---- */

/* <file>.tempstate<number>, of a file of RUN_FILES or of the index of a checkpoint or a delta: one
 * that did not get its name */
bool is_temporary_file(const char *name);
/* Adds the folder's checkpoints of smaller steps than `below`, by step. */
err checkpoints_search(const char *directory, int64_t below, struct checkpoint_state *);
/* Called after a search and the sweep. If data files of a newer step are there without their index,
 * as in a folder that was copied in part, that checkpoint becomes the newest of the list, and
 * whoever opens it will refuse it. Data of a single step with no other checkpoint may be all that a
 * power cut left of a run's first checkpoint, and do not count. */
err checkpoints_add_lost(struct checkpoints *);
/* model.ckpt-STEP, with this many zeros before the step. */
err checkpoint_name(const char *directory, uint64_t step, int zeros, char ret[CHECKPOINT_PATH_MAX]);
/* STEP of model.ckpt-STEP and what follows it, which is ret_rest; -1 where name is none. */
int64_t checkpoint_name_step(const char *name, const char **ret_rest);

#endif
