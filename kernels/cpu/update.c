/* update.c - all optimizers: one pass over a range of values and their slots.
 *
 * They are limited by memory bandwidth: every value, slot and gradient is read once and written
 * once. Arguments are copied to the stack, so that the compiler knows that no store through a float
 * pointer changes them.
 */
#include "kernels/cpu/isa.h"
#include "kernels/rules.h"

enum {
    UPDATE_GRAIN = SPREAD_GRAIN / 2, /* floats; three to nine streams each */
    ZEROS = 1024,
    /* Rows are scattered: each is prefetched this many rows ahead. */
    ROWS_AHEAD = 32,
    FETCHED_MAX = 128, /* floats of a row; the hardware prefetcher follows longer ones */
    LINE_FLOATS = 16,
    SECOND_CACHE = 2, /* locality of a prefetch: L2 */
};

/* Prefetches into L2, which allows more lines in flight than L1. Always inlined: the compiler
 * considers it a function without effect, and would remove calls. */
ELEMENT void fetch_row(const struct row_update *u, int slots, int64_t id)
{
    const int64_t begin = (id - u->start) * u->width;
    const int64_t n = u->width < FETCHED_MAX ? u->width : FETCHED_MAX;
    for (int64_t at = begin; at < begin + n; at += LINE_FLOATS) {
        __builtin_prefetch(u->value + at, 0, SECOND_CACHE);
        for (int s = 0; s < slots; s++) __builtin_prefetch(u->slot[s] + at, 0, SECOND_CACHE);
    }
}

ELEMENT struct update row_of(const struct row_update *u, int slots, int64_t i)
{
    const int64_t begin = (u->ids[i] - u->start) * u->width;
    struct update row = {.constants = u->constants,
                         .value = u->value + begin,
                         .gradient = u->gradient + i * u->width,
                         .decay = u->decay};
    for (int s = 0; s < slots; s++) row.slot[s] = u->slot[s] + begin;
    return row;
}

/* The element is a separate function, whose variables stay in registers. A row is too short for a
 * call of the loop. */
#define LOOP(name)                                                                                 \
    ELEMENT void element_##name(const struct update *u, const struct name##_constants *k,          \
                                int form, int64_t i)                                               \
    {                                                                                              \
        const int slots = form ? name##_slots_1 : name##_slots;                                    \
        float value = u->value[i], slot[SLOTS_MAX];                                                \
        for (int s = 0; s < slots; s++) slot[s] = u->slot[s][i];                                   \
        if (u->decay > 0) value -= u->decay * value;                                               \
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
    }                                                                                              \
    ELEMENT void rows_of_##name(const struct row_update *of, int form, int64_t begin, int64_t end) \
    {                                                                                              \
        const struct row_update u = *of;                                                           \
        const int slots = form ? name##_slots_1 : name##_slots;                                    \
        for (int64_t i = begin; i < end && i < begin + ROWS_AHEAD; i++)                            \
            fetch_row(&u, slots, u.ids[i]);                                                        \
        for (int64_t i = begin; i < end; i++) {                                                    \
            if (i + ROWS_AHEAD < end) fetch_row(&u, slots, u.ids[i + ROWS_AHEAD]);                 \
            const struct update row = row_of(&u, slots, i);                                        \
            stretch_##name(&row, form, 0, u.width);                                                \
        }                                                                                          \
    }                                                                                              \
    static void rows_##name(const void *arguments, int64_t begin, int64_t end)                     \
    {                                                                                              \
        const struct row_update *u = arguments;                                                    \
        if (name##_forms == 2 && u->form == 1)                                                     \
            rows_of_##name(u, 1, begin, end);                                                      \
        else                                                                                       \
            rows_of_##name(u, 0, begin, end);                                                      \
    }
RULES(LOOP)

#define STRETCH(name) update_##name,
static range_body *const loops[] = {RULES(STRETCH)};
#define ROWS(name) rows_##name,
static range_body *const row_loops[] = {RULES(ROWS)};

void ISA(update)(struct device *d, const struct update *u, int64_t n)
{
    spread(d, n, UPDATE_GRAIN, loops[u->rule->index], u);
}

/* Floats of a table, from `begin` on */
static void update_floats(const struct row_update *u, int64_t begin, int64_t n,
                          const float *gradient)
{
    struct update some = {.rule = u->rule,
                          .constants = u->constants,
                          .value = u->value + begin,
                          .gradient = gradient,
                          .form = u->form,
                          .decay = u->decay};
    for (int i = 0; i < u->rule->slots[u->form]; i++) some.slot[i] = u->slot[i] + begin;
    loops[u->rule->index](&some, 0, n);
}

/* Rows of the table that are not named */
static void update_others(const struct row_update *u, int64_t begin, int64_t end)
{
    static const float zeros[ZEROS];
    const int64_t last = end * u->width;
    for (int64_t at = begin * u->width; at < last; at += ZEROS)
        update_floats(u, at, last - at < ZEROS ? last - at : ZEROS, zeros);
}

static void update_swept(const void *arguments, int64_t begin, int64_t end)
{
    const struct row_update *u = arguments;
    int64_t next = element_row(u->ids, u->count, u->start + begin), row = begin;
    for (; next < u->count && u->ids[next] < u->start + end; next++) {
        update_others(u, row, u->ids[next] - u->start);
        row_loops[u->rule->index](u, next, next + 1);
        row = u->ids[next] - u->start + 1;
    }
    update_others(u, row, end);
}

void ISA(update_rows)(struct device *d, const struct row_update *u)
{
    const int64_t grain = UPDATE_GRAIN / u->width + 1;
    if (u->sweeps)
        spread(d, u->rows, grain, update_swept, u);
    else
        spread(d, u->count, grain, row_loops[u->rule->index], u);
}
