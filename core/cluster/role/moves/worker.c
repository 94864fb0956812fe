/* worker.c - the chief moves the job to another roster (worker.h, "Moving"). */
#include <stdio.h>

#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_inside.h"

static bool is_to_lead(const struct worker_role *w)
{
    return worker_chief(w) == w->options.task;
}

static void refuse(struct worker_role *w, uint64_t generation, int code, const char *why,
                   struct outbox *out)
{
    if (w->servers[0].contact == GONE || !is_to_lead(w)) return; /* it knows by itself */
    struct message *m = worker_send(w, 0, MESSAGE_SCALED, out);
    m->generation = generation;
    m->code = (uint32_t)code;
    message_say(m, why, out);
}

static bool is_ending(const struct worker_role *w)
{
    return w->ending != GOES_ON || w->phase >= FINISHING;
}

static const char *why_not(const struct worker_role *w, const struct roster *wanted)
{
    const int *now = w->options.roster.count;
    if (w->scale_refusal) return w->scale_refusal;
    if (w->saving.moves) return "it is about to be moved already";
    if (wanted->count[JOB_PS] == now[JOB_PS] && wanted->count[JOB_WORKER] == now[JOB_WORKER])
        return "there are so many already";
    return NULL;
}

void worker_role_refuse_scale(struct role *role, const char *why)
{
    ((struct worker_role *)role)->scale_refusal = why;
}

/* ps/0 asks for one at a time. A chief that is back may not have joined yet, nor lead before it has
 * found all ps. */
void worker_scale(struct worker_role *w, const struct message *m, struct outbox *out)
{
    struct roster wanted;
    if (!is_to_lead(w) || !roster_unpack(m, &wanted)) return;
    const char *why = why_not(w, &wanted);
    if (why) {
        refuse(w, m->generation, EXIT_INPUT, why, out);
        return;
    }
    wanted.moves = w->options.roster.moves + 1;
    w->moving = (struct moving){true, wanted, m->generation, w->patience.now_ms};
    worker_watch_move(w, out);
}

void worker_forget_move(struct worker_role *w)
{
    w->moving.is_asked = false;
}

void worker_move_failed(struct worker_role *w, const char *why, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    if (!w->moving.is_asked) return;
    worker_forget_move(w);
    snprintf(text, sizeof text, "no checkpoint could be made to move with: %.200s", why);
    refuse(w, w->moving.generation, EXIT_FAILED, text, out);
}

/* Begins when a checkpoint that is being made is there, and every ps. */
void worker_watch_move(struct worker_role *w, struct outbox *out)
{
    struct moving *m = &w->moving;
    if (!m->is_asked || w->saving.moves) return;
    const bool has_joined = w->phase >= JOINING;
    const bool is_old = has_joined && m->generation != w->generation;
    if (is_old || !is_to_lead(w)) {
        worker_forget_move(w);
    } else if (is_ending(w)) {
        worker_forget_move(w);
        refuse(w, m->generation, EXIT_LOST_PEER, "it is about to end", out);
    } else if (w->patience.now_ms - m->since_ms >= w->options.limits.save_ms) {
        worker_move_failed(w, "not all ps are here, within --save_timeout", out);
    } else {
        worker_save_to_move(w, out);
    }
}

static void end(struct worker_role *w, const struct roster *roster, uint64_t step,
                struct outbox *out)
{
    worker_set_life(w, ENDED);
    outbox_add_move(out, (struct action_move){*roster, step});
}

bool worker_move(struct worker_role *w, struct outbox *out)
{
    const struct roster roster = w->moving.roster;
    if (!w->moving.is_asked || is_ending(w)) return false;
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        if (w->servers[ps].contact == GONE) continue;
        struct message *m = worker_send(w, ps, MESSAGE_MOVE, out);
        m->sequence = 1 + w->term;
        m->step = w->saving.step;
        message_say_roster(m, &roster, out);
    }
    end(w, &roster, w->saving.step, out);
    return true;
}

void worker_moved(struct worker_role *w, const struct roster *roster, uint64_t step,
                  struct outbox *out)
{
    if (w->phase == ENDED || roster->moves <= w->options.roster.moves) return;
    end(w, roster, step, out);
}
