/* runner_worker_missed.c - finds out that the job ended while this worker was away.
 *
 * It was stopped or disconnected while the others reached the last step or were told to end, saved
 * and ended. All ps are gone then, and it would wait for them to return. So while no ps is
 * connected a thread reads the checkpoint folder now and then, where the end is noted.
 */
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/runner/runner_worker_inside.h"

enum {
    GONE_MS = 3000, /* a restarted ps may be back sooner */
    AGAIN_MS = 5000,
};

/* All ps were connected before, and none is now. */
static bool all_are_gone(const struct runner_worker *w, uint64_t now_ms)
{
    for (int ps = 0; ps < w->task.peer_count; ps++) {
        const struct peer *peer = &w->task.peers[ps];
        if (peer->is_up || !peer->was_up || now_ms - peer->lost_ms < GONE_MS) return false;
    }
    return true;
}

/* The last lines and --result are those of the job, whose chief this worker may have been. */
static err tell_what_is_there(struct runner_worker *w)
{
    const struct missed_end *m = &w->attempts.missed;
    if (!m->is_counted) return OK;
    w->hooks.view.global_step = m->step;
    return m->covered.rows ? runner_worker_tell_covered(w, m->step, &m->covered, true) : OK;
}

/* On failure the folder is read again later, also if only the checkpoint's counts, for --result,
 * cannot be read. */
static err read_counted(struct runner_worker *w)
{
    struct missed_end *m = &w->attempts.missed;
    const err e = runner_worker_read_covered(w, m->prefix, &m->step, &m->covered);
    m->is_counted = !e;
    m->is_over = e != ERR_IO;
    if (!m->is_over) return e;
    if (e) log_line(LOG_WARNING, "%s: what it counts is not known: %s", m->prefix, error_text());
    return OK;
}

/* A checkpoint of the last step means that the job is over, unless this task saved it and its token
 * is still in the folder: a chief that ends in order removes that, and a later chief replaces it.
 */
static err look_for_last_step(struct runner_worker *w)
{
    struct missed_end *m = &w->attempts.missed;
    bool is_ours = false;
    if (!m->last_step || checkpoint_step(m->prefix) < (int64_t)m->last_step) return OK;
    if (m->has_saved)
        TRY(checkpoints_token_find(w->hooks.view.checkpoint_dir, w->folder.token, &is_ours));
    return is_ours ? OK : read_counted(w);
}

/* The note of an earlier job's end was removed by the chief of the job in which this worker took
 * part. */
static err look(void *context)
{
    struct runner_worker *w = context;
    struct missed_end *m = &w->attempts.missed;
    const char *folder = w->hooks.view.checkpoint_dir;
    m->is_over = m->is_counted = false;
    TRY(m->takes_part ? ended_find(folder, w->folder.token, &m->ended) : OK);
    const err e = checkpoint_find(folder, m->prefix);
    m->is_over = m->ended.token && e == ERR_INPUT; /* which has ended without a checkpoint */
    if (e || m->is_over) return m->is_over ? OK : e;
    return m->ended.token ? read_counted(w) : look_for_last_step(w);
}

static void on_looked(void *context, err result)
{
    struct runner_worker *w = context;
    struct missed_end *m = &w->attempts.missed;
    const uint64_t now_ms = clock_ms();
    m->looked_ms = now_ms;
    if (result || !m->is_over || w->task.has_ended || !all_are_gone(w, now_ms)) return;
    if (m->ended.token)
        log_line(LOG_INFO, "no other task answers, and %s says how the job ended",
                 w->hooks.view.checkpoint_dir);
    else
        log_line(LOG_INFO, "no other task answers, and %s is of the last step: the job is done",
                 m->prefix);
    const err e = tell_what_is_there(w);
    if (e)
        task_end_alone(&w->task, e);
    else
        task_end_as_they(&w->task, m->ended.code, m->ended.text);
}

void runner_worker_look_for_end(struct runner_worker *w, uint64_t now_ms)
{
    struct missed_end *m = &w->attempts.missed;
    const uint64_t planned = runner_worker_last_step(w);
    const uint64_t last_step = planned ? planned : worker_role_end_step(w->task.role);
    if (m->looking.is_running || !w->hooks.view.checkpoint_dir ||
        w->folder.jobs.opening.is_running || !all_are_gone(w, now_ms) ||
        now_ms - m->looked_ms < AGAIN_MS)
        return;
    m->looked_ms = now_ms;
    m->last_step = last_step;
    m->takes_part = w->has_adopted;
    m->has_saved = last_step && w->saving.own_step >= last_step;
    m->looking = (struct task_job){
        .run = look, .done = on_looked, .context = w, .loop = w->options.task.loop};
    if (task_job_start(&m->looking)) log_line(LOG_DEBUG, "%s", error_text());
}

void runner_worker_stop_looking(struct runner_worker *w)
{
    task_job_close(&w->attempts.missed.looking);
}
