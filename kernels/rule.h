/* rule.h - the formula of an optimizer, written once for all devices.
 *
 * The file of an optimizer, in core/train/variables/optimizers/, begins with
 *
 *     struct NAME_constants {
 *         float rate, ...; // the same for all elements of an update
 *     };
 *     RULE(NAME, slots)
 *     {
 *         ...
 *     }
 *
 * The body changes *value and slot[0] .. slot[slots - 1] of one element by its gradient g and the
 * constants *k. RULE_OF_TWO(NAME, slots, slots_1) is a rule of two forms: `form`, 0 or 1, is a
 * compile-time constant in each loop, so branching on it costs nothing. Code that the kernels do
 * not need comes last, where RULE_ONLY is not defined.
 *
 * The build generates rules.h, which includes the rules of all optimizers for kernels and their
 * tests, and defines RULES(ROW), which expands to ROW(NAME) for each.
 */
#ifndef KERNELS_RULE_H
#define KERNELS_RULE_H

#include "kernels/elements.h"

#define RULE(name, slots) RULE_FORMS(name, 1, slots, slots)
#define RULE_OF_TWO(name, slots, slots_1) RULE_FORMS(name, 2, slots, slots_1)
#define RULE_FORMS(name, forms, slots, slots_1)                                                    \
    extern const struct rule rule_##name;                                                          \
    enum { name##_forms = forms, name##_slots = slots, name##_slots_1 = slots_1 };                 \
    [[maybe_unused]] ELEMENT void formula_##name(const struct name##_constants *k, float g,        \
                                                 float *value, float *slot, int form)

#endif
