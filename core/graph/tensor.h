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

static const int64_t ANY_ID = INT64_MAX; /* as buckets: every number below is an id */

/* Where any number of 64 bits is an id: itself below ANY_ID; those above, which a column of ids has
 * no room for, are spread over the upper half, far from what counts from 0. */
int64_t id_of_64_bits(uint64_t number);

struct tensor {
    const char *name; /* of the node that makes it */
    enum dtype dtype;
    struct shape shape;
    void *value;     /* set by the plan, or by the batch for the graph's inputs */
    float *gradient; /* NULL where none is wanted */
    bool is_shares;  /* all from 0 to 1, as a sigmoid or a softmax makes them */

    /* INT64, the ids of a column: they are below `buckets`, or negative, which is none; ANY_ID:
     * for tables that grow. Weights are of the ids, in the same shape; NULL: each counts once. */
    int64_t buckets;
    const struct tensor *weights;

    /* Of logits whose columns are not the classes that labels name: which column is right in each
     * row, INT32 [batch]; its op sets that. NULL: the label says it. And of how many classes, which
     * labels name, the logits are those of some; 0: with answers, nobody asks for labels. */
    const struct tensor *answers;
    int64_t classes;
};

int64_t shape_count(const struct shape *); /* product of the dimensions; 1 for a scalar */
int64_t shape_count_from(const struct shape *, int axis); /* product of dim[axis ..] */
struct shape shape_from(const struct shape *, int axis);  /* of dim[axis ..] */
bool shape_equal(const struct shape *, const struct shape *);
size_t dtype_size(enum dtype);
size_t tensor_bytes(const struct tensor *); /* of its value */
const char *dtype_name(enum dtype);

enum { SHAPE_TEXT_MAX = 96 };
/* "[100, 28, 28, 1]" into text, returned */
const char *shape_text(const struct shape *, char text[SHAPE_TEXT_MAX]);

/* ERR_INPUT when rank, a dimension or the product is out of range */
err shape_check(const struct shape *);

#endif
