/* piecewise_constant: one rate after the other. A boundary belongs to the rate before it, as in
 * TensorFlow. */
#include <math.h>

#include "core/train/variables/schedule.h"

enum { PIECES_MAX = 1024 };

struct piecewise {
    struct ints boundaries;        /* last step of each piece but the last one */
    struct floats boundary_epochs; /* or the epoch with which it ends */
    struct floats values;          /* one more */
    double steps_per_epoch;        /* where they are epochs */
};

static const struct field fields[] = {
    FIELD_OF("boundaries", INTS, struct piecewise, boundaries, .fallback = "null", .min = 0,
             .max = STEPS_MAX, .count_min = 1, .count_max = PIECES_MAX - 1, .group = "boundaries",
             .group_is_required = true,
             .help = "last steps of the rates, ascending; none for the last rate"),
    FIELD_OF("boundary_epochs", FLOATS, struct piecewise, boundary_epochs, .fallback = "null",
             .min = 0, .max = EPOCHS_MAX, .count_min = 1, .count_max = PIECES_MAX - 1,
             .group = "boundaries", .group_is_required = true,
             .help = "boundaries in epochs of the training data: the steps that these take"),
    FIELD_OF("values", FLOATS, struct piecewise, values, .min = 0, .max = RATE_MAX, .count_min = 2,
             .count_max = PIECES_MAX, .help = "the rates, one more than boundaries"),
    {0},
};

static err check_order(const struct piecewise *a, const char *path)
{
    for (int i = 1; i < a->boundaries.count; i++) {
        if (a->boundaries.at[i] > a->boundaries.at[i - 1]) continue;
        return fail(ERR_INPUT, "%s.boundaries[%d]: expected more than the %lld before it, got %lld",
                    path, i, (long long)a->boundaries.at[i - 1], (long long)a->boundaries.at[i]);
    }
    for (int i = 1; i < a->boundary_epochs.count; i++) {
        if (a->boundary_epochs.at[i] > a->boundary_epochs.at[i - 1]) continue;
        return fail(ERR_INPUT,
                    "%s.boundary_epochs[%d]: expected more than the %g before it, got %g", path, i,
                    a->boundary_epochs.at[i - 1], a->boundary_epochs.at[i]);
    }
    return OK;
}

static err check(const void *attributes, const char *path)
{
    const struct piecewise *a = attributes;
    const bool has_steps = a->boundaries.count, has_epochs = a->boundary_epochs.count;
    const int count = a->boundaries.count + a->boundary_epochs.count;
    if (has_steps == has_epochs)
        return fail(ERR_INPUT, "%s: expected one of boundaries and boundary_epochs, got %s", path,
                    has_steps ? "both" : "none");
    if (a->values.count != count + 1)
        return fail(ERR_INPUT, "%s.values: expected %d numbers, one more than %s, got %d", path,
                    count + 1, has_steps ? "boundaries" : "boundary_epochs", a->values.count);
    return check_order(a, path);
}

static bool count_epochs(void *attributes, double steps_per_epoch)
{
    struct piecewise *a = attributes;
    if (steps_per_epoch > 0) a->steps_per_epoch = steps_per_epoch;
    return a->boundary_epochs.count > 0;
}

static double rate(const void *attributes, int64_t step)
{
    const struct piecewise *a = attributes;
    int piece = 0;
    while (piece < a->boundaries.count && step > a->boundaries.at[piece]) piece++;
    while (piece < a->boundary_epochs.count &&
           (double)step > round(a->boundary_epochs.at[piece] * a->steps_per_epoch))
        piece++;
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
    .count_epochs = count_epochs,
};
