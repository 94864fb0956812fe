/* program.h - a model as a list of values, each computed from earlier ones by one of a few
 * primitives: the intermediate form that every export format is written from.
 *
 * Axis 0 of every value but a constant is the batch, here of 1 row; no primitive mixes rows.
 */
#ifndef CMD_EXPORT_PROGRAM_H
#define CMD_EXPORT_PROGRAM_H

#include "core/base/arena.h"
#include "core/graph/graph.h"
#include "core/train/checkpoint/bundle/bundle.h"

enum { PROGRAM_INPUTS_MAX = 64, PROGRAM_OUTPUTS_MAX = 2 * HEADS_MAX };

enum primitive {
    PRIMITIVE_INPUT,    /* numbers, or ids */
    PRIMITIVE_CONSTANT, /* data */
    PRIMITIVE_MATMUL,   /* [..., m, k] [k, n], or [..., m, k] [..., k, n] */
    PRIMITIVE_ADD,      /* this and the next five: of two values, broadcast as in numpy */
    PRIMITIVE_SUBTRACT,
    PRIMITIVE_MULTIPLY,
    PRIMITIVE_DIVIDE,
    PRIMITIVE_MAXIMUM,
    PRIMITIVE_MINIMUM,
    PRIMITIVE_EXP, /* this and the next eight: element by element */
    PRIMITIVE_LOG,
    PRIMITIVE_SQRT,
    PRIMITIVE_TANH,
    PRIMITIVE_SIGMOID,
    PRIMITIVE_SOFTPLUS,
    PRIMITIVE_ERF,
    PRIMITIVE_ABS,
    PRIMITIVE_POSITIVE, /* 1 if above 0, else 0 */
    PRIMITIVE_PRESENT,  /* of ids: 1, or 0 for a missing id */
    PRIMITIVE_GATHER,   /* a table [rows, width] and ids: their rows; row 0 for a missing id */
    PRIMITIVE_SUM,      /* this and the next two: reduce axes to size 1 */
    PRIMITIVE_MEAN,
    PRIMITIVE_LARGEST,
    PRIMITIVE_SOFTMAX, /* over the last axis */
    PRIMITIVE_RESHAPE,
    PRIMITIVE_TRANSPOSE, /* axes: of the input, in the order of the result */
    PRIMITIVE_CONCAT,    /* axis */
    PRIMITIVE_SLICE,     /* axes: the first index of each */
    PRIMITIVE_PAD,       /* axes: padding before each; number: its value */
    PRIMITIVE_CONV2D,    /* of an image and a kernel [y, x, in / groups, out] */
    PRIMITIVE_MAX_POOL,
    PRIMITIVE_AVG_POOL, /* padding does not count */
    PRIMITIVE_COUNT
};
extern const char *const primitive_names[];

struct program_value {
    enum primitive primitive;
    int inputs[PROGRAM_INPUTS_MAX]; /* earlier values */
    int input_count;
    struct shape shape;
    bool is_ids;      /* int64; below 0: missing */
    bool is_weights;  /* of an input: the weights of the column's ids */
    const char *name; /* of an input: the column; of a constant: the variable, or "" */
    int64_t axes[RANK_MAX];
    bool goes[RANK_MAX];    /* of SUM, MEAN, LARGEST: which axes are reduced */
    int axis;               /* of CONCAT */
    float number;           /* of PAD */
    struct window2d window; /* of CONV2D and pools */
    int64_t groups;         /* of CONV2D */
    const float *data;      /* of a constant; NULL: a table, which stays in the checkpoint */
    bool is_looked_up;      /* a constant: a table whose rows are looked up by ids */
    bool grows;             /* such a table: its rows have keys, in any order */
    const int64_t *keys;    /* of such a table with data: ascending; rows in their order */
    int parts;              /* of a table: shards (id % parts), concatenated; 0: ids are rows */
    int64_t uses;           /* set by program_count_uses */
};

/* Floats of all constants that are written as C text: compiling more takes minutes. */
enum { PROGRAM_FLOATS_MAX = 8 << 20 };
/* Floats of a table that can be read into memory */
static const int64_t PROGRAM_TABLE_FLOATS_MAX = INT64_C(1) << 34;

/* An output of a head or a node, named as in `dtrain predict` */
struct said_value {
    const char *name; /* "probabilities", "click/probability", "user_vector" */
    int value;
};

struct name_map;
struct newest;
struct stored_table;
struct program {
    struct arena *arena;
    struct program_value *values;
    int count, room;
    struct said_value outputs[PROGRAM_OUTPUTS_MAX];
    int output_count;
    struct bundle *bundle;           /* constants come from it */
    struct newest *newest;           /* newer values that replace those; NULL: none */
    const struct name_map *averages; /* [average_count] variables whose averages are used */
    int average_count;
    bool leaves_tables;               /* their rows are not read, but left to the writer */
    int64_t constant_floats, dropped; /* floats in used constants; nodes that only training needs */
};

/* Each adds a value and returns its index; those without a shape argument derive it. */
int program_add(struct program *, const struct program_value *);
int program_constant(struct program *, const char *name, const struct shape *, const float *data);
int program_number(struct program *, float);                     /* a scalar */
int program_two(struct program *, enum primitive, int a, int b); /* broadcast */
int program_one(struct program *, enum primitive, int x);
int program_reduce(struct program *, enum primitive, int x, const bool goes[RANK_MAX]);
int program_reshape(struct program *, int x, const struct shape *);
int program_matmul(struct program *, int a, int b);
int program_transpose(struct program *, int x, const int64_t axes[RANK_MAX]);
int program_concat(struct program *, const int *inputs, int count, int axis);

/* Rows of one shard of a table with `parts` shards */
int64_t program_part_rows(const struct program_value *, int part);

/* Of a table that grows: the key of a row, and the row's number */
struct row_key {
    int64_t id, place;
};
void program_sort_keys(struct row_key *, int64_t count); /* ids ascending */

/* Whether its output for a row depends on other rows of the batch */
bool program_compares_rows(const struct node_spec *);
/* To be called before the graph is built for one row: clears "block" of nodes that compare rows,
 * since the batch of 1 is no multiple of it; their inputs are exported instead. */
void program_leave_blocks(const struct node_spec *, int count);
/* Adds what computes these outputs (as in --outputs), or all heads, with the values of the
 * checkpoint. ERR_INPUT names a node that cannot be exported, and why. */
err program_lower(struct program *, const struct graph *, const struct strings *outputs);
/* Folds multiplications and additions of constants into kernels before them. Returns how many. */
int program_fold(struct program *);
/* A table of the checkpoint, with its newer rows if there are any */
err program_find_table(const struct program *, const char *name, struct stored_table *ret);
/* Sets how often each value is read; unused ones (0) are not written. */
void program_count_uses(struct program *);

#endif
