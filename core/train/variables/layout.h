/* layout.h - which ps holds which slice of a variable, and where.
 *
 * Placement follows TensorFlow's replica_device_setter exactly: variables in creation order, the
 * global step (8 bytes) before all others; round robin or greedy by bytes; each part of a
 * partitioned variable counts as a variable of its own. Pins override the strategy and do not
 * advance the round robin counter; their bytes count for greedy. Only "balanced" is not
 * TensorFlow's: if a ps would hold more than 1.5 times its share, and at least a megabyte, its
 * largest variables are cut.
 *
 * Slices of tables (variables of which a step uses few rows) are not in blocks: they are cut along
 * the rows, and a ps keeps them separately. Without a partitioner, tables of at least a megabyte,
 * and all growing ones, are cut over all ps, unless pinned. With the partition strategy "mod" ids
 * are dealt to the parts in turn (mod.h), and tables whose rows are named by the same column get as
 * many parts as the one with most, so that their rows are in the same order.
 *
 * All other slices on one ps form one block of floats, in the order in which backward completes
 * them: last created first. Each slice begins at a multiple of LAYOUT_ALIGN floats; the gaps are
 * zero in values and gradients. Frozen variables, which have no gradients, lie behind all
 * others.
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
    TABLE_NAMED_MAX = 1 << 26, /* limit on the rows of a table that a batch names */
};

enum placement_strategy { PLACE_ROUND_ROBIN, PLACE_GREEDY };
enum partition_strategy { PARTITION_DIV, PARTITION_MOD };

struct pin {
    const char *match;
    int64_t ps;
}; /* match: fnmatch pattern on the variable's name */

struct placement_spec {
    int strategy;        /* enum placement_strategy; round_robin by default, as TensorFlow */
    struct objects pins; /* of struct pin */
    struct variant
        partitioner;        /* kind NULL: balanced where that relieves network links, else none */
    int partition_strategy; /* enum partition_strategy, for tables that do not grow */
    bool is_held_twice;     /* train.ps_replicas: some ps follow others (replicas.h) */
};
extern const struct object placement_spec_object;
extern const struct kinds partitioner_kinds;

/* Properties of a table in addition to its shape, [rows, width]. */
struct table_spec {
    const struct initializer *initializer; /* one of initializer_kinds */
    const void *initializer_attributes;
    uint64_t key; /* of the random draws of initial values */
    int64_t most; /* the most rows that a batch names */
    int column; /* index of the column of its ids: tables with the same column are named by the same
                   ids */
    const struct growth *growth; /* NULL: it does not grow; else it is cut along its keys */
    struct regularizer penalty;  /* on all rows (of_all_rows of a param) */
};

struct variable {
    const char *name;
    struct shape shape;
    const struct table_spec *table; /* NULL: dense */
    float moving;                   /* param.moving (op.h); above 0: no optimizer updates it */
    bool is_frozen;                 /* its values never change */
};

/* Rows start .. start + length - 1 of one axis of a variable (all of them if it is not
 * partitioned), and where they lie in the block of a ps. */
struct slice {
    const char *name;      /* of the variable */
    struct shape shape;    /* of the whole variable */
    int axis;              /* 0 when not partitioned */
    int64_t start, length; /* along axis; for a table that grows, keys (growing/keys.h) */
    int64_t offset, count; /* in floats, in the ps' block (tables: not in a block); count without
                              padding, for a table that grows that of one row */
    float moving;          /* of the variable */
    int mod; /* of a table: number of parts to which its ids are dealt in turn (mod.h); 0: `start`
                is an id */
    /* only in a layout, which knows all ps and all parts: */
    int variable, part, parts, ps;
};

struct layout {
    int ps_count, variable_count;
    int all_ps; /* including the followers behind them, which hold copies of the same blocks */
    const struct variable *variables; /* creation order */
    /* Ordered by variable, then part: first the slice_count slices of dense variables, which lie in
     * blocks, then those of tables, up to all_count. */
    struct slice *slices;
    int slice_count, all_count;
    /* [all_ps], multiples of LAYOUT_ALIGN; above 0 on each ps with a slice */
    int64_t *block_floats;
    int64_t *moved_floats; /* [all_ps] floats at the front of the block that have gradients;
                              multiples of LAYOUT_ALIGN, and above 0 if the block is not empty */
    int64_t *ps_bytes; /* [all_ps] bytes of variables, without padding (global step not counted) */
    /* "balanced": how many variables are cut, and which ps would otherwise hold how many times its
     * share */
    int balanced_count, balanced_ps;
    double balanced_share;
};

/* A spec's partitioner of kind NULL counts as "none" here. ERR_INPUT */
err layout_make(const struct placement_spec *, const struct variable *, int count, int ps_count,
                struct arena *, struct layout **ret);

/* The ps whose slices this one holds: itself, or the one that it follows. */
int layout_home(const struct layout *, int ps);

/* Index of the first slice in blocks that belongs to this variable or a later one. */
int layout_first_slice(const struct layout *, int variable);

/* Copies between a whole variable and its slices in blocks. blocks: one pointer per ps; scatter
 * skips a ps whose block is NULL. layout_scatter_part copies only the elements of the range. */
void layout_gather(const struct layout *, int variable, const float *const blocks[], float *whole);
void layout_scatter(const struct layout *, int variable, const float *whole, float *const blocks[]);
void layout_scatter_part(const struct layout *, int variable, const float *whole,
                         float *const blocks[], struct range of_whole);

/* The same with blocks and whole in device memory. */
void layout_gather_on(struct device *, const struct layout *, int variable,
                      const float *const blocks[], float *whole);
void layout_scatter_on(struct device *, const struct layout *, int variable, const float *whole,
                       float *const blocks[]);

/* Whether the variable is a single slice of a block, so that its memory there can be used in place;
 * ret_slice may be NULL */
bool layout_is_whole(const struct layout *, int variable, const struct slice **ret_slice);

/* Prints the table that the chief shows before the first step: variable, shape, bytes, ps; and why
 * some are cut. */
void layout_print(const struct layout *, FILE *);

/* Index of the ps that holds the most, if that is more than 1.5 times its share of the bytes, and
 * at least a megabyte; else -1. */
enum { LAYOUT_LARGE_BYTES = 1 << 20 };
int layout_overloaded(const struct layout *, double *ret_times_share);

#endif
