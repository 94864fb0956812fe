/* gradient_descent: w -= rate * g.
 *
 * It keeps nothing beside the values: no slots, no powers, nothing of it in a checkpoint.
 */
#include "core/train/variables/optimizer.h"

struct gradient_descent {
    struct schedule_spec learning_rate;
};

static const struct field fields[] = {
    {.name = "learning_rate",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct gradient_descent, learning_rate),
     .object = &schedule_spec_object,
     .kinds = &schedule_kinds,
     .help = "step size: a number, or a schedule"},
    {0},
};

static void apply(const void *attributes, struct device *device, const struct update *u)
{
    const struct update_sgd update = {.value = u->value, .gradient = u->gradient, .rate = u->rate};
    device->kernels->update_sgd(device, &update, u->n);
}

const struct optimizer optimizer_gradient_descent = {
    .object = {.name = "gradient_descent",
               .summary = "plain stochastic gradient descent: w -= rate * g",
               .fields = fields,
               .size = sizeof(struct gradient_descent)},
    .apply = apply,
};
