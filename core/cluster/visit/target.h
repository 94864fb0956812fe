/* target.h - one variable on one ps, for visitors: its parts here, whatever their storage, read and
 * changed by element.
 *
 * Elements of the whole are numbered row-major. A part holds positions start .. start + length - 1
 * along one axis, row-major itself.
 */
#ifndef CORE_CLUSTER_VISIT_TARGET_H
#define CORE_CLUSTER_VISIT_TARGET_H

#include "core/cluster/visit/value.h"

enum { VISIT_FIRST_MAX = 8 }; /* elements shown of a variable that is too large to be shown whole */

/* A table is a trained variable that is read by rows, and not changed. */
enum target_kind { TARGET_NONE, TARGET_TRAINED, TARGET_TABLE, TARGET_SHARED, TARGET_STEP };
const char *target_kind_name(enum target_kind);

struct part {
    int64_t start, length; /* along the target's axis; keys, if a table grows */
    int mod;               /* as in the slice of a table */
    float *floats;         /* of a trained variable; borrowed */
    const struct table *table;
    double *doubles; /* of other kinds */
};

struct target {
    enum target_kind kind;
    const char *name;
    struct shape shape; /* of the whole; of a table that grows, of one row */
    int axis;
    int part_count;
    struct part *parts; /* owned */
    float *row;         /* of a table: buffer for one row; owned */
    bool is_held_twice; /* another ps has it, too, to which changes would not be sent */
    uint64_t version;
};
void target_free(struct target *); /* a zeroed one is fine */

/* Which elements: one, or with index_count 0 all of them. Of a table one index is that of a row, or
 * of the first of several. */
struct selection {
    int index_count;
    int64_t index[RANK_MAX];
    int64_t rows; /* 0: not given */
};
/* ERR_INPUT: not an index of this shape, or more of a table than VISIT_ELEMENTS_MAX. */
err target_check_index(const struct target *, const struct selection *);

struct change {
    bool is_add; /* else it is set */
    struct selection selection;
    struct value value; /* a scalar goes to every element */
};
/* Checks everything before anything is changed, except whether the ps has the target at all. */
err target_check(const struct target *, const struct change *);
void target_change(const struct target *, const struct change *); /* after the check */

/* The answer: kind, shape, version, of a table the rows, and parts, whose numbers follow the JSON
 * (body.h); NULL: no memory. */
json_t *target_json(const struct target *, const struct selection *, int64_t *ret_count);
void target_write(const struct target *, const struct selection *, unsigned char *numbers);

/* The summary of a target with too many elements to send. It is computed in pieces, while elements
 * may change. */
struct scan {
    int part; /* where it continues */
    int64_t at;
    int64_t finite;
    double minimum, maximum, sum, sum_squares; /* of the finite ones */
};
bool target_is_large(const struct target *, const struct selection *);
bool target_scan(const struct target *, struct scan *, int64_t elements_max); /* true: all seen */
json_t *target_summary(const struct target *, const struct scan *);

#endif
