/* rule.h - how the formula of an optimizer is written: once, for every device.
 *
 * The file of an optimizer, in core/train/variables/optimizers/, begins with
 *
 *     struct NAME_constants {
 *         float rate, ...; // the same for all elements of an update
 *     };
 *     RULE(NAME, slots_min, slots_max)
 *     {
 *         ...
 *     }
 *
 * The body changes *value and slot[0] .. slot[slots - 1] of one element by its gradient g and the
 * constants *k. `slots` is a constant where a loop is compiled, so what depends on it costs
 * nothing. What the kernels have no use for comes behind, where RULE_ONLY is not defined.
 *
 * The build makes rules.h, in which kernels and their tests see the rules of all optimizers, and
 * RULES(ROW), which is ROW(NAME) for each.
 */
#ifndef KERNELS_RULE_H
#define KERNELS_RULE_H

#include "kernels/elements.h"

#define RULE(name, least, most)                                                                    \
    extern const struct rule rule_##name;                                                          \
    enum { name##_slots_min = least, name##_slots_max = most };                                    \
    [[maybe_unused]] ELEMENT void formula_##name(const struct name##_constants *k, float g,        \
                                                 float *value, float *slot, int slots)

#endif
