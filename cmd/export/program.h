/* program.h - a model as a list of values, each made of earlier ones by one of a few primitives:
 * what every format of an export is written from.
 *
 * Axis 0 of a value that is no constant is the batch, here of 1 row; no primitive mixes rows.
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
    PRIMITIVE_ADD,      /* this and the next ones: of two, broadcast as in numpy */
    PRIMITIVE_SUBTRACT,
    PRIMITIVE_MULTIPLY,
    PRIMITIVE_DIVIDE,
    PRIMITIVE_MAXIMUM,
    PRIMITIVE_MINIMUM,
    PRIMITIVE_EXP, /* this and the next ones: of single numbers */
    PRIMITIVE_LOG,
    PRIMITIVE_SQRT,
    PRIMITIVE_TANH,
    PRIMITIVE_SIGMOID,
    PRIMITIVE_SOFTPLUS,
    PRIMITIVE_ERF,
    PRIMITIVE_ABS,
    PRIMITIVE_POSITIVE, /* 1 above 0, else 0 */
    PRIMITIVE_PRESENT,  /* of ids: 1, or 0 where there is none */
    PRIMITIVE_GATHER,   /* a table [rows, width] and ids: their rows, row 0 where there is no id */
    PRIMITIVE_SUM,      /* this and the next ones: over axes, which stay with one place */
    PRIMITIVE_MEAN,
    PRIMITIVE_LARGEST,
    PRIMITIVE_SOFTMAX, /* over the last axis */
    PRIMITIVE_RESHAPE,
    PRIMITIVE_TRANSPOSE, /* axes: which one of the input each is */
    PRIMITIVE_CONCAT,    /* axis */
    PRIMITIVE_SLICE,     /* axes: first place of each */
    PRIMITIVE_PAD,       /* axes: places before each; number: what they are */
    PRIMITIVE_CONV2D,    /* of an image and a kernel [y, x, in / groups, out] */
    PRIMITIVE_MAX_POOL,
    PRIMITIVE_AVG_POOL, /* of what is in the image */
    PRIMITIVE_COUNT
};
extern const char *const primitive_names[];

struct program_value {
    enum primitive primitive;
    int inputs[PROGRAM_INPUTS_MAX]; /* earlier values */
    int input_count;
    struct shape shape;
    bool is_ids;      /* int64; below 0: none */
    bool is_weights;  /* of an input: what each id of the column counts */
    const char *name; /* of an input: the column; of a constant: the variable, or "" */
    int64_t axes[RANK_MAX];
    bool goes[RANK_MAX];    /* of SUM, MEAN, LARGEST */
    int axis;               /* of CONCAT */
    float number;           /* of PAD */
    struct window2d window; /* of CONV2D and pools */
    int64_t groups;         /* of CONV2D */
    const float *data;      /* of a constant; NULL: a table, which stays in the checkpoint */
    bool is_looked_up;      /* a constant: rows of it are read by their ids */
    bool grows;             /* such a table: its rows are named by keys, in any order */
    const int64_t *keys;    /* of such a table that is data: ascending, as its rows are */
    int parts;    /* such a table: ids went to this many by turns, which lie one behind the
                     other; 0: ids are places */
    int64_t uses; /* set by program_count_uses */
};

/* Numbers of all constants that are written as text: a compiler takes minutes for more. */
enum { PROGRAM_FLOATS_MAX = 8 << 20 };
/* Those of a table that is read into memory */
static const int64_t PROGRAM_TABLE_FLOATS_MAX = INT64_C(1) << 34;

/* What a head or a node says, named as predict names it */
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
    struct newest *newest;           /* laid over it; NULL: nothing is */
    const struct name_map *averages; /* [average_count] variables that are read from them */
    int average_count;
    bool leaves_tables;               /* in the checkpoint: their rows are not read yet */
    int64_t constant_floats, dropped; /* numbers in constants; nodes that were for training only */
};

/* The value that is made of these; its shape is the primitive's own where that is said. */
int program_add(struct program *, const struct program_value *);
int program_constant(struct program *, const char *name, const struct shape *, const float *data);
int program_number(struct program *, float);                     /* of rank 0 */
int program_two(struct program *, enum primitive, int a, int b); /* broadcast */
int program_one(struct program *, enum primitive, int x);
int program_reduce(struct program *, enum primitive, int x, const bool goes[RANK_MAX]);
int program_reshape(struct program *, int x, const struct shape *);
int program_matmul(struct program *, int a, int b);
int program_transpose(struct program *, int x, const int64_t axes[RANK_MAX]);
int program_concat(struct program *, const int *inputs, int count, int axis);

/* Of a table whose ids went to parts by turns */
int64_t program_part_rows(const struct program_value *, int part);

/* Of a table that grows: the key of a row, and where that row lies */
struct row_key {
    int64_t id, place;
};
void program_sort_keys(struct row_key *, int64_t count); /* ids ascending */

/* Its output for a row depends on the other rows of the batch. */
bool program_compares_rows(const struct node_spec *);
/* Of the spec, before its graph is made for one row: of products with other rows of the batch their
 * two inputs are said, whatever the blocks are in which these are compared. */
void program_leave_blocks(const struct node_spec *, int count);
/* What is named as --outputs names it, or all heads, at the values of the checkpoint. ERR_INPUT
 * names the node that cannot be exported, and why. */
err program_lower(struct program *, const struct graph *, const struct strings *outputs);
/* Multiplications and additions of constants go into the kernel before them. Returns how many. */
int program_fold(struct program *);
/* A table of the checkpoint, with what is laid over it */
err program_find_table(const struct program *, const char *name, struct stored_table *ret);
/* How often each value is read; 0: by nobody, and nothing of it is written. */
void program_count_uses(struct program *);

#endif
