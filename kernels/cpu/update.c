/* update.c - any optimizer: one pass over a stretch of values and their slots.
 *
 * They are bound by memory: every value, slot and gradient is read once and written once. Arguments
 * are copied to the stack, where the compiler knows that no store through a float pointer changes
 * them.
 */
#include "kernels/cpu/isa.h"
#include "kernels/rules.h"

enum { UPDATE_GRAIN = SPREAD_GRAIN / 2 }; /* floats; three to nine streams each */

/* The element is a function of its own: what it keeps of one stays in registers. */
#define LOOP(name)                                                                                 \
    ELEMENT void element_##name(const struct update *u, const struct name##_constants *k,          \
                                int form, int64_t i)                                               \
    {                                                                                              \
        const int slots = form ? name##_slots_1 : name##_slots;                                    \
        float value = u->value[i], slot[SLOTS_MAX];                                                \
        for (int s = 0; s < slots; s++) slot[s] = u->slot[s][i];                                   \
        formula_##name(k, u->gradient[i], &value, slot, form);                                     \
        u->value[i] = value;                                                                       \
        for (int s = 0; s < slots; s++) u->slot[s][i] = slot[s];                                   \
    }                                                                                              \
    ELEMENT void stretch_##name(const struct update *of, int form, int64_t begin, int64_t end)     \
    {                                                                                              \
        const struct update u = *of;                                                               \
        const struct name##_constants k = *(const struct name##_constants *)u.constants;           \
        _Pragma("omp simd") for (int64_t i = begin; i < end; i++) element_##name(&u, &k, form, i); \
    }                                                                                              \
    static void update_##name(const void *arguments, int64_t begin, int64_t end)                   \
    {                                                                                              \
        const struct update *u = arguments;                                                        \
        if (name##_forms == 2 && u->form == 1)                                                     \
            stretch_##name(u, 1, begin, end);                                                      \
        else                                                                                       \
            stretch_##name(u, 0, begin, end);                                                      \
    }
RULES(LOOP)

#define ROW(name) update_##name,
static range_body *const loops[] = {RULES(ROW)};

void ISA(update)(struct device *d, const struct update *u, int64_t n)
{
    spread(d, n, UPDATE_GRAIN, loops[u->rule->index], u);
}
