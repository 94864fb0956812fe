/* update.cu - all optimizers: the formula on the numbers of one element, in registers. */
#include "kernels/cuda/product/packs.cuh"
#include "kernels/rules.h"

/* The written vectors come first among those read: value, slots, gradient. */
template <typename Rule, int FORM> struct rule_element {
    typename Rule::constants k;
    float decay;
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        const int slots = FORM ? Rule::SLOTS_1 : Rule::SLOTS;
        for (int i = 0; i <= slots; i++) to[i] = from[i];
        if (decay > 0) to[0] -= decay * to[0];
        Rule::formula(&k, from[slots + 1], to, to + 1, FORM);
    }
};

template <typename Rule, int FORM>
static void update_form(struct device *d, const struct update *u, int64_t n)
{
    enum { SLOTS = FORM ? (int)Rule::SLOTS_1 : (int)Rule::SLOTS };
    struct streams<SLOTS + 2, SLOTS + 1> s;
    s.from[0] = s.to[0] = u->value;
    for (int i = 0; i < SLOTS; i++) s.from[i + 1] = s.to[i + 1] = u->slot[i];
    s.from[SLOTS + 1] = u->gradient;
    const rule_element<Rule, FORM> element = {*(const typename Rule::constants *)u->constants,
                                              u->decay};
    each_number(d, u->rule->name, s, element, n);
}

template <typename Rule>
static void update_by(struct device *d, const struct update *u, int64_t n)
{
    if (u->form == 1)
        update_form<Rule, Rule::LAST_FORM>(d, u, n);
    else
        update_form<Rule, 0>(d, u, n);
}

/* One thread per number of a row: of the named rows, or of all. */
template <typename Rule, int FORM> struct row_body {
    struct row_update u;
    typename Rule::constants k;

    __device__ void operator()(int64_t index) const
    {
        const int slots = FORM ? Rule::SLOTS_1 : Rule::SLOTS;
        const int64_t row = quotient_of(index, u.width), column = index - row * u.width;
        const int64_t i = u.sweeps ? element_row(u.ids, u.count, u.start + row) : row;
        const bool is_named = i < u.count && (!u.sweeps || u.ids[i] == u.start + row);
        const int64_t at = (u.sweeps ? row : u.ids[i] - u.start) * u.width + column;
        float value = u.value[at], slot[::SLOTS_MAX + 1];
        for (int s = 0; s < slots; s++) slot[s] = u.slot[s][at];
        if (u.decay > 0) value -= u.decay * value;
        Rule::formula(&k, is_named ? u.gradient[i * u.width + column] : 0.0f, &value, slot, FORM);
        u.value[at] = value;
        for (int s = 0; s < slots; s++) u.slot[s][at] = slot[s];
    }
};

template <typename Rule, int FORM> static void rows_of_form(struct device *d, const struct row_update *u)
{
    const row_body<Rule, FORM> body = {*u, *(const typename Rule::constants *)u->constants};
    each(d, u->rule->name, body, (u->sweeps ? u->rows : u->count) * u->width);
}

template <typename Rule> static void rows_by(struct device *d, const struct row_update *u)
{
    if (u->form == 1)
        rows_of_form<Rule, Rule::LAST_FORM>(d, u);
    else
        rows_of_form<Rule, 0>(d, u);
}

#define TYPE(name)                                                                                 \
    struct name##_rule {                                                                           \
        typedef struct name##_constants constants;                                                 \
        enum { LAST_FORM = name##_forms - 1, SLOTS = name##_slots, SLOTS_1 = name##_slots_1 };     \
        static __device__ void formula(const constants *k, float g, float *value, float *slot,     \
                                       int form)                                                   \
        {                                                                                          \
            formula_##name(k, g, value, slot, form);                                               \
        }                                                                                          \
    };
RULES(TYPE)

#define ROW(name) update_by<name##_rule>,
static void (*const updates[])(struct device *, const struct update *, int64_t) = {RULES(ROW)};

void cuda_update(struct device *d, const struct update *u, int64_t n)
{
    updates[u->rule->index](d, u, n);
}

#define ROWS(name) rows_by<name##_rule>,
static void (*const row_updates[])(struct device *, const struct row_update *) = {RULES(ROWS)};

void cuda_update_rows(struct device *d, const struct row_update *u)
{
    row_updates[u->rule->index](d, u);
}
