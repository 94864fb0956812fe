/* finite.c - a loss that is no number: where it comes from. */
#include <math.h>

#include "core/train/session/session.h"

/* A value that is not finite came with an earlier update and spoils every gradient after it, so
 * values are looked at first. */
const char *session_not_finite(const struct session *s, bool *ret_is_gradient)
{
    struct device *d = s->options.device;
    const struct graph *g = s->graph;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < g->param_count; i++) {
            const struct param *p = g->params[i];
            const float *at = pass == 0 ? p->value : p->gradient;
            if (d->kernels->all_finite(d, at, shape_count(&p->shape))) continue;
            *ret_is_gradient = pass == 1;
            return p->name;
        }
    }
    return NULL;
}

err session_fail_loss(const struct session *s, double loss)
{
    bool is_gradient = false;
    const char *name = session_not_finite(s, &is_gradient),
               *noun = isnan(loss) ? "NaN" : "infinite";
    if (!name) return fail(ERR_NUMBER, "the loss is %s", noun);
    return fail(ERR_NUMBER, "the loss is %s; first that is not finite: the %s of %s", noun,
                is_gradient ? "gradient" : "value", name);
}
