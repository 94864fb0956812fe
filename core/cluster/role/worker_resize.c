/* worker_resize.c - the chief resizes the job to another membership (worker_role.h, "Resizing"),
 * and every worker hears of it (worker_heard_resize). */
#include <stdio.h>

#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_role_inside.h"

static bool is_to_lead(const struct worker_role *w)
{
    return worker_chief(w) == w->options.task;
}

static void refuse(struct worker_role *w, uint64_t generation, int code, const char *why,
                   struct outbox *out)
{
    if (w->servers[0].contact == GONE || !is_to_lead(w)) return; /* ps/0 learns it in other ways */
    struct message *m = worker_send(w, 0, MESSAGE_SCALED, out);
    m->generation = generation;
    m->scaled.exit_code = (uint32_t)code;
    message_say(m, why, out);
}

bool worker_is_ending(const struct worker_role *w)
{
    return w->ending != GOES_ON || w->phase >= FINISHING;
}

static const char *why_not(const struct worker_role *w, const struct membership *wanted)
{
    const int *now = w->options.membership.count;
    if (w->resizing.refusal) return w->resizing.refusal;
    if (w->saving.held_for == HELD_TO_RESIZE) return "it is being resized already";
    if (w->changing.is_asked) return "a change of its settings is being made: try again later";
    if (wanted->count[JOB_PS] == now[JOB_PS] && wanted->count[JOB_WORKER] == now[JOB_WORKER])
        return "there are so many already";
    return NULL;
}

void worker_role_refuse_scale(struct role *role, const char *why)
{
    ((struct worker_role *)role)->resizing.refusal = why;
}

/* ps/0 requests one resize at a time. A chief that is back may not have joined yet, and does not
 * lead before it has found all ps. */
void worker_scale(struct worker_role *w, const struct message *m, struct outbox *out)
{
    struct membership wanted;
    if (!is_to_lead(w) || !membership_unpack(m, &wanted)) return;
    const char *why = why_not(w, &wanted);
    if (why) {
        refuse(w, m->generation, EXIT_INPUT, why, out);
        return;
    }
    wanted.resizes = w->options.membership.resizes + 1;
    w->resizing = (struct resizing){true, wanted, m->generation, w->patience.now_ms};
    worker_watch_resize(w, out);
}

void worker_forget_resize(struct worker_role *w)
{
    w->resizing.is_asked = false;
}

void worker_resize_failed(struct worker_role *w, const char *why, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    if (!w->resizing.is_asked) return;
    worker_forget_resize(w);
    snprintf(text, sizeof text, "no checkpoint could be made to resize with: %.200s", why);
    refuse(w, w->resizing.generation, EXIT_FAILED, text, out);
}

/* Begins when no checkpoint is being made, and every ps is connected. */
void worker_watch_resize(struct worker_role *w, struct outbox *out)
{
    struct resizing *m = &w->resizing;
    if (!m->is_asked || w->saving.held_for == HELD_TO_RESIZE) return;
    const bool has_joined = w->phase >= JOINING;
    const bool is_old = has_joined && m->generation != w->generation;
    if (is_old || !is_to_lead(w)) {
        worker_forget_resize(w);
    } else if (worker_is_ending(w)) {
        worker_forget_resize(w);
        refuse(w, m->generation, EXIT_LOST_PEER, "it is about to end", out);
    } else if (w->patience.now_ms - m->since_ms >= w->options.limits.save_ms) {
        worker_resize_failed(w, "not all ps are here, within --save_timeout", out);
    } else {
        worker_save_held(w, HELD_TO_RESIZE, out);
    }
}

static void end(struct worker_role *w, const struct membership *membership, uint64_t step,
                struct outbox *out)
{
    worker_set_phase(w, ENDED);
    outbox_add_resize(out, (struct action_resize){*membership, step});
}

bool worker_resize_job(struct worker_role *w, struct outbox *out)
{
    const struct membership membership = w->resizing.membership;
    if (!w->resizing.is_asked || worker_is_ending(w)) return false;
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        if (w->servers[ps].contact == GONE) continue;
        struct message *m = worker_send(w, ps, MESSAGE_RESIZE, out);
        m->resize.claim = 1 + w->lead.term;
        m->resize.step = w->saving.step;
        message_say_membership(m, &membership, out);
    }
    end(w, &membership, w->saving.step, out);
    return true;
}

void worker_heard_resize(struct worker_role *w, const struct membership *membership, uint64_t step,
                         struct outbox *out)
{
    if (w->phase == ENDED || membership->resizes <= w->options.membership.resizes) return;
    end(w, membership, step, out);
}
