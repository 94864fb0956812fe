/* value.h - numbers that visitors send and get: a scalar or nested lists, as JSON. */
#ifndef CORE_CLUSTER_VISIT_VALUE_H
#define CORE_CLUSTER_VISIT_VALUE_H

#include <jansson.h>

#include "core/graph/tensor.h"

/* The most elements of a value that is sent, by either side. Larger ones are summarized. */
enum { VISIT_ELEMENTS_MAX = 65536 };

struct value {
    struct shape shape; /* rank 0: a scalar */
    int64_t count;
    double *at; /* [count], row-major; owned */
};

/* ERR_INPUT: not numbers, lists of unequal lengths, too deep, too many; ERR_MEMORY. */
err value_read(json_t *, struct value *ret);
void value_free(struct value *); /* a zeroed one is fine */

/* New references. JSON has no numbers that are not finite: they become "nan", "inf" or "-inf". */
json_t *value_number(double);
json_t *value_shape(const struct shape *);

#endif
