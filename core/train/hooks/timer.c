/* timer.c - when is it time again? See hook.h. */
#include "core/train/hooks/hook.h"

bool hook_timer_is_due(const struct hook_timer *timer, uint64_t step, uint64_t now_ns)
{
    if (!timer->has_fired) return true;
    if (step == timer->fired_step) return false;
    if (step < timer->fired_step) return true; /* a recovery went back to before it */
    if (timer->every_steps > 0) return step - timer->fired_step >= (uint64_t)timer->every_steps;
    const double passed_s = (double)(now_ns - timer->fired_ns) / 1e9;
    return timer->every_secs > 0 && passed_s >= timer->every_secs;
}

void hook_timer_fired(struct hook_timer *timer, uint64_t step, uint64_t now_ns)
{
    timer->has_fired = true;
    timer->fired_step = step;
    timer->fired_ns = now_ns;
}
