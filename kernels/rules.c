/* rules.c - what is known of a rule where its formula is not. */
#include "kernels/rules.h"

#define NUMBER(name) NUMBER_##name,
enum { RULES(NUMBER) };

#define OBJECT(name)                                                                               \
    _Static_assert(sizeof(struct name##_constants) <= CONSTANTS_BYTES_MAX);                        \
    _Static_assert(name##_slots_max <= (int)SLOTS_MAX);                                            \
    const struct rule rule_##name = {"update_" #name, NUMBER_##name, name##_slots_min,             \
                                     name##_slots_max};
RULES(OBJECT)
