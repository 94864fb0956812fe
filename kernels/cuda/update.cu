/* update.cu - any optimizer: its formula on the numbers of one element, which are in registers. */
#include "kernels/cuda/product/packs.cuh"
#include "kernels/rules.h"

/* What is written comes first among what is read: value, slots, gradient. */
template <typename Rule, int FORM> struct rule_element {
    typename Rule::constants k;
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        const int slots = FORM ? Rule::SLOTS_1 : Rule::SLOTS;
        for (int i = 0; i <= slots; i++) to[i] = from[i];
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
    const rule_element<Rule, FORM> element = {*(const typename Rule::constants *)u->constants};
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
