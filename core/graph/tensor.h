/* tensor.h - shapes and tensors. Row-major, contiguous; a tensor owns nothing. */
#ifndef CORE_GRAPH_TENSOR_H
#define CORE_GRAPH_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum { RANK_MAX = 6 };
static const int64_t TENSOR_ELEMENTS_MAX = INT64_C(1) << 40;

enum dtype { FLOAT32, INT32, UINT8, INT64 };

struct shape {
    int rank; /* 0: a scalar */
    int64_t dim[RANK_MAX];
};

static const int64_t ANY_ID = INT64_MAX; /* as `buckets`: every number below it is an id */

/* The id for any 64-bit number, for columns of any ids: the number itself below ANY_ID; larger ones
 * are hashed into the upper half of the range, away from ids that count from 0. */
int64_t id_of_64_bits(uint64_t number);

struct tensor {
    const char *name; /* of the node or column that it comes from */
    enum dtype dtype;
    struct shape shape;
    void *value;     /* set by the plan, or by the batch for the graph's inputs */
    float *gradient; /* NULL: not wanted */
    bool is_shares;  /* all values are from 0 to 1, as from a sigmoid or a softmax */

    /* For INT64, the ids of a column: they are below `buckets` (ANY_ID: for tables that grow), or
     * negative: no id. weights: one for each id, in the same shape; NULL: all 1. */
    int64_t buckets;
    const struct tensor *weights;

    /* For logits whose columns are not the classes that labels name: INT32 [batch], the right
     * column of each row, set by their op; NULL: the label is the column. classes: how many classes
     * labels can name, of which the logits are a sample; 0: if answers are set, labels are not
     * used. */
    const struct tensor *answers;
    int64_t classes;
};

int64_t shape_count(const struct shape *); /* product of all dimensions; 1 for a scalar */
int64_t shape_count_from(const struct shape *, int axis); /* product of dim[axis ..] */
struct shape shape_from(const struct shape *, int axis);  /* the shape of dim[axis ..] */
bool shape_equal(const struct shape *, const struct shape *);
size_t dtype_size(enum dtype);
size_t tensor_bytes(const struct tensor *); /* of its value */
const char *dtype_name(enum dtype);

enum { SHAPE_TEXT_MAX = 96 };
/* Writes "[100, 28, 28, 1]" to text and returns it */
const char *shape_text(const struct shape *, char text[SHAPE_TEXT_MAX]);

/* ERR_INPUT: rank, a dimension or the product is out of range */
err shape_check(const struct shape *);

#endif
