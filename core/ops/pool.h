/* pool.h - shared by max_pool and avg_pool: all but the arithmetic. */
#ifndef CORE_OPS_POOL_H
#define CORE_OPS_POOL_H

#include "core/ops/window.h"

/* The attributes of a pooling op are a struct window_spec. */
extern const struct field pool_fields[];
extern const struct op_case pool_cases[];

err pool_infer(struct node *, struct arena *);
struct pool2d pool_of(const struct node *); /* after infer */

#endif
