/* worker_wait.c - what a worker waits for, and how long. The runner handles a ps that is not
 * connected, and tries to reach it. */
#include <stdio.h>

#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_role_inside.h"

/* A ps that waits for another worker has the same limit and can name that: it goes first. */
enum { STEP_GRACE_MS = 1000 };

static bool is_awaited(const struct worker_role *w, int ps)
{
    const struct server *s = &w->servers[ps];
    switch (w->phase) {
    case HOLDING:
    case STARTING:
        return s->said.state != PS_SERVING;
    case DESCRIBING:
        return s->setup != IS_READY;
    default:
        return worker_is_asked(w, ps) && !s->push.has_answered;
    }
}

/* "ps/0, ps/3" */
static void name_awaited(const struct worker_role *w, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int ps = 0; ps < w->options.ps_count && used + TASK_NAME_MAX < size; ps++)
        if (is_awaited(w, ps))
            used += (size_t)snprintf(text + used, size - used, "%sps/%d", used ? ", " : "", ps);
    if (!used) snprintf(text, size, "the ps");
}

struct wait {
    const char *what, *flag; /* what: the chief's index follows where is_chiefs */
    uint64_t limit_ms;
    bool is_chiefs;
};

/* How long a ps may wait for a worker that is gone, in ms. */
static uint64_t absence_ms(const struct worker_options *o)
{
    return o->limits.start_ms > o->worker_timeout_ms ? o->limits.start_ms : o->worker_timeout_ms;
}

/* What the phase waits for; limit 0: nothing. */
static struct wait current_wait(const struct worker_role *w)
{
    const struct worker_options *o = &w->options;
    switch (w->phase) {
    case HOLDING:
        if (w->participation != IN_NONE)
            return (struct wait){"to be restored by the chief, worker/", "--restart_timeout",
                                 o->limits.restart_ms, true};
        return (struct wait){"to be initialised by the chief, worker/", "--start_timeout",
                             o->limits.start_ms, true};
    case DESCRIBING:
    case STARTING:
        return (struct wait){"to get ready", "--start_timeout", o->limits.start_ms};
    case JOINING:
    case ASKING:
    case WAITING:
        return (struct wait){"to answer", "--step_timeout, and the time for an absent worker",
                             o->limits.step_ms + absence_ms(o) + STEP_GRACE_MS};
    case FINISHING:
        return (struct wait){"to end the job", "--end_timeout", o->limits.end_ms};
    default:
        return (struct wait){0};
    }
}

static bool all_up(const struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (w->servers[ps].contact == GONE && !worker_is_without(w, ps)) return false;
    return true;
}

void worker_watch(struct worker_role *w, struct outbox *out)
{
    const struct wait wait = current_wait(w);
    if (!wait.limit_ms) return;
    const bool is_storage =
        w->lead.is_ours && w->saving.awaits_folder; /* waiting for storage has a limit of its own */
    if (!all_up(w) || is_storage) {
        patience_renew(&w->patience);
        return;
    }
    char awaited[TASKS_TEXT_MAX], what[ACTION_TEXT_MAX], text[ACTION_TEXT_MAX], chief[16] = "";
    name_awaited(w, awaited, sizeof awaited);
    if (wait.is_chiefs) snprintf(chief, sizeof chief, "%d", worker_chief(w));
    snprintf(what, sizeof what, "%s %s%s (%s)", awaited, wait.what, chief, wait.flag);
    const struct awaited a = {what, wait.limit_ms, w->phase == FINISHING};
    if (patience_is_over(&w->patience, &a, out, text)) worker_end(w, EXIT_TIMEOUT, text, out);
}

/* The verdict names the task that was waited for, but not why: a worker may itself have waited for
 * another ps. So each logs its own wait. */
void worker_tell_wait(const struct worker_role *w, struct outbox *out)
{
    char awaited[TASKS_TEXT_MAX];
    if (!current_wait(w).limit_ms) return;
    name_awaited(w, awaited, sizeof awaited);
    outbox_log(out, "waited for %s when the job ended", awaited);
}

void worker_state(const struct role *role, char ret[ACTION_TEXT_MAX])
{
    static const char *const phases[] = {
        [HOLDING] = "holds until all ps serve the same values",
        [DESCRIBING] = "sets the ps up",
        [STARTING] = "waits for the ps to serve",
        [JOINING] = "joins",
        [ASKING] = "waits for ps/0 to take its gradient",
        [WAITING] = "waits for values",
        [COMPUTING] = "computes",
        [DEPARTING] = "asks whether it may leave",
        [FINISHING] = "has finished, waits for the others",
        [SAVING_LAST] = "has the last checkpoint made",
        [EVALUATING] = "evaluates",
        [ENDED] = "has ended",
    };
    const struct worker_role *w = (const struct worker_role *)role;
    char awaited[TASKS_TEXT_MAX] = "";
    bool is_waiting = w->phase != COMPUTING && w->phase < SAVING_LAST;
    if (is_waiting) name_awaited(w, awaited, sizeof awaited);
    snprintf(ret, ACTION_TEXT_MAX, "%s%s%s%s", phases[w->phase], is_waiting ? ": " : "", awaited,
             w->saving.phase == SAVE_IDLE ? "" : ", a checkpoint is being made");
}

void worker_report(const struct role *role, struct outbox *out)
{
    const struct worker_role *w = (const struct worker_role *)role;
    char state[ACTION_TEXT_MAX];
    worker_state(role, state);
    outbox_log(out, "%s, step %llu, generation %016llx", state, (unsigned long long)w->global_step,
               (unsigned long long)w->generation);
}
