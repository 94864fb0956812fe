/* piecewise_constant: one rate after the other. A boundary belongs to the rate before it, as in
 * TensorFlow. */
#include "core/train/variables/schedule.h"

enum { PIECES_MAX = 1024 };

struct piecewise {
    struct ints boundaries; /* last step of each piece but the last one */
    struct floats values;   /* one more */
};

static const struct field fields[] = {
    {.name = "boundaries",
     .type = FIELD_INTS,
     .offset = offsetof(struct piecewise, boundaries),
     .min = 0,
     .max = STEPS_MAX,
     .count_min = 1,
     .count_max = PIECES_MAX - 1,
     .help = "last steps of the rates, ascending; none for the last rate"},
    {.name = "values",
     .type = FIELD_FLOATS,
     .offset = offsetof(struct piecewise, values),
     .min = 0,
     .max = RATE_MAX,
     .count_min = 2,
     .count_max = PIECES_MAX,
     .help = "the rates, one more than boundaries"},
    {0},
};

static err check(const void *attributes, const char *path)
{
    const struct piecewise *a = attributes;
    if (a->values.count != a->boundaries.count + 1) {
        return fail(ERR_INPUT, "%s.values: expected %d numbers, one more than boundaries, got %d",
                    path, a->boundaries.count + 1, a->values.count);
    }
    for (int i = 1; i < a->boundaries.count; i++) {
        if (a->boundaries.at[i] > a->boundaries.at[i - 1]) continue;
        return fail(ERR_INPUT, "%s.boundaries[%d]: expected more than the %lld before it, got %lld",
                    path, i, (long long)a->boundaries.at[i - 1], (long long)a->boundaries.at[i]);
    }
    return OK;
}

static double rate(const void *attributes, int64_t step)
{
    const struct piecewise *a = attributes;
    int piece = 0;
    while (piece < a->boundaries.count && step > a->boundaries.at[piece]) piece++;
    return a->values.at[piece];
}

const struct schedule schedule_piecewise_constant = {
    .object = {.name = "piecewise_constant",
               .summary = "values[0] up to and with step boundaries[0], values[1] up to "
                          "boundaries[1], and so on",
               .fields = fields,
               .size = sizeof(struct piecewise)},
    .rate = rate,
    .check = check,
};
