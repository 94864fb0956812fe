/* layout.h - which ps holds what, and where.
 *
 * Placement follows TensorFlow's replica_device_setter exactly: variables
 * in creation order, the global step (8 bytes) before all others; round robin or greedy by bytes;
 * each part of a partitioned variable counts as a variable of its own. Pins win over the strategy
 * and do not advance the round robin counter; their bytes count for greedy. Only "balanced" is
 * ours: a ps that would hold more than 1.5 times its share, and a megabyte, has its largest
 * variables cut.
 *
 * A table (rows of which a step touches few) has no place in blocks: its slices are cut
 * along its rows, which a ps keeps by themselves. Where no partitioner is named, a table of a
 * megabyte and more is cut over all ps, and one that grows always, unless it is pinned. With the
 * partition strategy "mod" ids go to the parts by turns (mod.h), and tables whose rows the same
 * column names have as many parts as the one that has most, so that their rows are in one order.
 *
 * All other slices on one ps form one block of floats. Their order is the order in which backward
 * finishes them: last created first. Each slice begins at a multiple of LAYOUT_ALIGN floats; the
 * gaps are zero in values and gradients. Frozen variables, of which there are no gradients, lie
 * behind all others.
 */
#ifndef CORE_TRAIN_VARIABLES_LAYOUT_H
#define CORE_TRAIN_VARIABLES_LAYOUT_H

#include "core/base/fields/fields.h"
#include "core/base/range.h"
#include "core/graph/op.h"
#include "kernels/kernels.h"

enum {
    LAYOUT_ALIGN = 16,
    PS_MAX = 1024,
    WORKERS_MAX = 4096,
    SLICES_MAX = 65536,
    TABLE_NAMED_MAX = 1 << 26, /* rows of a table that a batch names */
};

enum placement_strategy { PLACE_ROUND_ROBIN, PLACE_GREEDY };
enum partition_strategy { PARTITION_DIV, PARTITION_MOD };

struct pin {
    const char *match;
    int64_t ps;
}; /* fnmatch pattern on the variable's name */

struct placement_spec {
    int strategy;        /* enum placement_strategy; round_robin by default, as TensorFlow */
    struct objects pins; /* of struct pin */
    struct variant
        partitioner; /* kind NULL: balanced where that relieves the links of hosts, else none */
    int partition_strategy; /* enum partition_strategy: of tables that do not grow */
    bool is_held_twice;     /* train.ps_replicas: some ps follow others (replicas.h) */
};
extern const struct object placement_spec_object;
extern const struct kinds partitioner_kinds;

/* What a table has beside its shape, [rows, width]. */
struct table_spec {
    const struct initializer *initializer; /* one of initializer_kinds */
    const void *initializer_attributes;
    uint64_t key; /* of initial values */
    int64_t most; /* rows that a batch names */
    int column;   /* the column of its ids: tables with the same column are named by the same ids */
    const struct growth *growth; /* NULL: it does not grow; else it is cut along its keys */
    struct regularizer penalty;  /* on all rows (of_all_rows of a param) */
};

struct variable {
    const char *name;
    struct shape shape;
    const struct table_spec *table; /* NULL: dense */
    float moving;                   /* of a param (op.h); no optimizer updates it then */
    bool is_frozen;                 /* its values never change */
};

/* Rows start .. start + length - 1 of one axis of a variable (all of it when it is not
 * partitioned), and where they lie in the block of a ps. */
struct slice {
    const char *name;      /* of the variable */
    struct shape shape;    /* of the whole variable */
    int axis;              /* 0 when not partitioned */
    int64_t start, length; /* along axis; of a table that grows keys (growing/keys.h) */
    int64_t offset, count; /* floats in the ps' block (of a table none); count without padding, of
                              a table that grows those of one row */
    float moving;          /* of the variable */
    int mod; /* of a table: over how many parts its ids go by turns (mod.h); 0: `start` is an id */
    /* in a layout, which has all ps and all parts: */
    int variable, part, parts, ps;
};

struct layout {
    int ps_count, variable_count;
    int all_ps; /* together with the followers behind them, which hold the same blocks */
    const struct variable *variables; /* creation order */
    /* By variable, then part: first the slices of dense variables, which lie in blocks, then those
     * of tables, up to all_count. */
    struct slice *slices;
    int slice_count, all_count;
    /* [all_ps], multiples of LAYOUT_ALIGN; none is empty where there is a slice */
    int64_t *block_floats;
    int64_t *moved_floats; /* [all_ps] at the front of the blocks, of which there are gradients: a
                              multiple, too, and of no block that is not empty 0 */
    int64_t *ps_bytes; /* [all_ps] bytes of variables, without padding (global step not counted) */
    /* "balanced": how many variables are cut, and how much the ps of the first of them would hold
     * otherwise */
    int balanced_count, balanced_ps;
    double balanced_share;
};

/* The partitioner of a spec that names none is "none" here. */
err layout_make(const struct placement_spec *, const struct variable *, int count, int ps_count,
                struct arena *, struct layout **ret);

/* The ps whose slices this one holds: itself, or the one that it follows. */
int layout_home(const struct layout *, int ps);

/* The first slice in a block that belongs to this variable or a later one. */
int layout_first_slice(const struct layout *, int variable);

/* Copies between a whole variable and its slices in blocks (one pointer per ps; scatter skips the
 * slices of a ps whose block is NULL). */
void layout_gather(const struct layout *, int variable, const float *const blocks[], float *whole);
void layout_scatter(const struct layout *, int variable, const float *whole, float *const blocks[]);
void layout_scatter_part(const struct layout *, int variable, const float *whole,
                         float *const blocks[], struct range of_whole);

/* The same where blocks and whole lie in the memory of a device. */
void layout_gather_on(struct device *, const struct layout *, int variable,
                      const float *const blocks[], float *whole);
void layout_scatter_on(struct device *, const struct layout *, int variable, const float *whole,
                       float *const blocks[]);

/* true when the variable is one slice of a block, so that the block's memory can be used in place;
 * ret_slice: NULL where it is not wanted */
bool layout_is_whole(const struct layout *, int variable, const struct slice **ret_slice);

/* The table a chief prints before the first step: variable, shape, bytes, ps; and why some are cut.
 */
void layout_print(const struct layout *, FILE *);

/* The index of a ps that carries more than 1.5 times its share of the bytes, and a megabyte; or -1.
 */
enum { LAYOUT_LARGE_BYTES = 1 << 20 };
int layout_overloaded(const struct layout *, double *ret_times_share);

#endif
