/* shared.h - the variables that visitors make on a ps: doubles, by name, for as long as the
 * ps lives. */
#ifndef CORE_CLUSTER_VISIT_SHARED_H
#define CORE_CLUSTER_VISIT_SHARED_H

#include "core/cluster/visit/target.h"

enum {
    SHARED_VARIABLES_MAX = 4096,   /* on one ps */
    SHARED_ELEMENTS_MAX = 4 << 20, /* of all together; a single one: VISIT_ELEMENTS_MAX */
    SHARED_NAME_MAX = 255,
};

struct shared_variable {
    char *name;
    struct value value;
    uint64_t version;
};

struct shared_variables {
    struct shared_variable *at; /* [count], sorted by name */
    int count, capacity;
    int64_t elements;
};
void shared_free(struct shared_variables *); /* a zeroed one is fine */

struct shared_variable *shared_find(const struct shared_variables *,
                                    const char *name); /* NULL: none */

/* Makes a variable, or replaces its value, also by one of another shape. On OK takes ownership of
 * the value's memory, and zeroes *value. ERR_INPUT: invalid name, not finite; ERR_MEMORY: a limit.
 */
err shared_set(struct shared_variables *, const char *name, struct value *,
               struct shared_variable **ret);

/* Which ps keeps a variable of this name: the same on every host. */
int shared_home(const char *name, int ps_count);

#endif
