/* rules.c - what is known of a rule where its formula is not. */
#include "kernels/rules.h"

#define NUMBER(name) NUMBER_##name,
enum { RULES(NUMBER) };

#define OBJECT(name)                                                                               \
    _Static_assert(sizeof(struct name##_constants) <= CONSTANTS_BYTES_MAX);                        \
    _Static_assert((int)name##_slots <= (int)SLOTS_MAX && (int)name##_slots_1 <= (int)SLOTS_MAX);  \
    const struct rule rule_##name = {                                                              \
        "update_" #name, NUMBER_##name, name##_forms, {name##_slots, name##_slots_1}};
RULES(OBJECT)
