/* checkpoint.h - what the verbs of `dtrain checkpoint` share: the arguments of a call, and access
 * to the tensors of a checkpoint. A verb is a row in checkpoint.c and a file of its own. */
#ifndef CMD_CHECKPOINT_CHECKPOINT_H
#define CMD_CHECKPOINT_CHECKPOINT_H

#include <jansson.h>
#include <stdbool.h>

#include "core/base/arena.h"
#include "core/train/checkpoint/bundle/bundle.h"

enum { CALL_WORDS_MAX = 3 };

struct checkpoint_call {
    const char *words[CALL_WORDS_MAX]; /* NULL: not given */
    int64_t ps;                        /* --ps of reshard */
    bool json;                         /* --json of those that only look */
    const char *vocabulary;            /* --vocabulary of rows; NULL: none */
    bool delta;                        /* --delta of rows */
    struct arena *arena;
};

/* Each prints to standard output; ret_code: the exit code if OK is returned. */
err checkpoint_ls(const struct checkpoint_call *, int *ret_code);
err checkpoint_show(const struct checkpoint_call *, int *ret_code);
err checkpoint_verify(const struct checkpoint_call *, int *ret_code);
err checkpoint_diff(const struct checkpoint_call *, int *ret_code);
err checkpoint_reshard(const struct checkpoint_call *, int *ret_code);
err checkpoint_export(const struct checkpoint_call *, int *ret_code);
err checkpoint_rows(const struct checkpoint_call *, int *ret_code);

/* path: a folder (its newest checkpoint), a prefix, or an .index file. */
err checkpoint_open(const char *path, struct bundle **ret);
const char *checkpoint_folder(const struct bundle *, struct arena *); /* where it lies */

/* The role of a tensor in a run's checkpoint, inferred from its name and the other names. */
enum checkpoint_part {
    PART_VARIABLE, /* or any other tensor */
    PART_SLOT,     /* <variable>/Adam: of the variable's type and shape */
    PART_POWER,    /* beta1_power, beta2_power */
    PART_STEP,     /* global_step */
    PART_LEDGER,   /* dtrain/ledger/ps_00000 */
    PART_COVERAGE, /* dtrain/ledger/rows, and data */
};
enum checkpoint_part checkpoint_part(const struct bundle *, const struct bundle_entry *);
/* The variable that a slot belongs to; NULL: not a slot. */
const struct bundle_entry *checkpoint_owner(const struct bundle *, const struct bundle_entry *);
/* K of dtrain/ledger/ps_K; -1: not a ledger. */
int checkpoint_ledger_ps(const char *name);

/* Stored as int64, or int32 by old programs. */
err checkpoint_global_step(struct bundle *, int64_t *ret);

/* ERR_INPUT: no such tensor; suggests the nearest name. */
err checkpoint_find_tensor(const struct bundle *, const char *name,
                           const struct bundle_entry **ret);

struct elements {
    void *at; /* row-major; freed by the caller */
    size_t bytes;
    int64_t count;
};
/* Reads a box of a tensor (NULL: all of it). ERR_INPUT: its type is not supported. */
err checkpoint_elements(struct bundle *, const struct bundle_entry *, const struct bundle_box *,
                        struct elements *ret);
/* Element i as a number; integers beyond 2^53 are rounded. */
double checkpoint_number(const struct elements *, int dtype, int64_t i);

/* Bytes of all elements; -1: unknown type. */
int64_t checkpoint_tensor_bytes(const struct bundle_entry *);

enum { TENSOR_SHAPE_TEXT_MAX = BUNDLE_RANK_MAX * 22 + 4 };
json_t *checkpoint_shape_json(const struct bundle_shape *);
/* "[784, 10]" into text, returned */
const char *checkpoint_shape_text(const struct bundle_shape *, char text[TENSOR_SHAPE_TEXT_MAX]);
bool checkpoint_same_shape(const struct bundle_shape *, const struct bundle_shape *);

#endif
