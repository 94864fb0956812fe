/* worker_change.c - the chief changes what values depend on while the job runs (worker_role.h,
 * "Changing"). */
#include <stdio.h>

#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_role_inside.h"

const char *worker_role_change(struct role *role, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    if (!worker_is_chief(w) || w->phase < JOINING || w->participation != IN_CURRENT)
        return "the job does not take steps yet: try again later";
    if (w->changing.is_asked) return "another change is being made: try again later";
    if (w->resizing.is_asked) return "the job is being resized: try again later";
    if (worker_is_ending(w)) return "the job is about to end";
    w->changing = (struct changing){true, w->generation, w->patience.now_ms};
    worker_watch_change(w, out);
    return NULL;
}

static void answer(struct worker_role *w, int code, const char *why, struct outbox *out)
{
    if (!w->changing.is_asked) return;
    w->changing.is_asked = false;
    outbox_add_changed(out, (struct action_changed){code, outbox_text(out, why)});
}

void worker_change_failed(struct worker_role *w, const char *why, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    snprintf(text, sizeof text, "no checkpoint could be made to change it at: %.200s", why);
    answer(w, EXIT_FAILED, text, out);
}

/* Begins when no checkpoint is being made, and every ps is connected. */
void worker_watch_change(struct worker_role *w, struct outbox *out)
{
    const struct changing *c = &w->changing;
    if (!c->is_asked || w->saving.held_for == HELD_TO_CHANGE) return;
    if (c->generation != w->generation || !worker_is_chief(w))
        answer(w, EXIT_LOST_PEER, "all began again, or another worker leads, before it", out);
    else if (worker_is_ending(w))
        answer(w, EXIT_LOST_PEER, "the job is about to end", out);
    else if (w->patience.now_ms - c->since_ms >= w->options.limits.save_ms)
        worker_change_failed(w, "not all ps are here, within --save_timeout", out);
    else
        worker_save_held(w, HELD_TO_CHANGE, out);
}

void worker_forget_change(struct worker_role *w, struct outbox *out)
{
    answer(w, EXIT_LOST_PEER, "another worker leads: ask again", out);
}

/* The change is stored with the checkpoint, and this generation ends. If the job is ending, it ends
 * without the change. */
bool worker_change(struct worker_role *w, struct outbox *out)
{
    if (!w->changing.is_asked) return false;
    if (worker_is_ending(w)) {
        answer(w, EXIT_LOST_PEER, CHANGE_TOO_LATE, out);
        return false;
    }
    answer(w, EXIT_DONE, "", out);
    worker_outlive(w, w->generation, out);
    return true;
}

void worker_role_drop_change(struct role *role)
{
    ((struct worker_role *)role)->changing.is_asked = false;
}

void worker_outlive(struct worker_role *w, uint64_t generation, struct outbox *out)
{
    w->outlived = generation;
    worker_settle(w, out);
}

bool worker_role_outlive(struct role *role, uint64_t generation, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    if (!generation || !w->lead.is_ours || w->phase >= FINISHING) return false;
    w->lead.gone.take_part_again = false;
    worker_outlive(w, generation, out);
    return true;
}
