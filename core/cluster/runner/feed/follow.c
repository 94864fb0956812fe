/* follow.c - see follow.h. */
#include "core/cluster/runner/feed/follow.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/runner/counting.h"
#include "core/data/batch_ring.h"

enum { LOOKS = 20, LOOK_MS = 50, ABSENT_MS = 30000 }; /* ABSENT_MS: before it is reported */

static err await(struct runner_worker *w, int lacks)
{
    struct batch_source *data = w->session.data.train;
    err e = ERR_PEER;
    for (int i = 0; i < LOOKS && e == ERR_PEER; i++) {
        e = data->calls->await(data, lacks, LOOK_MS);
        if (e == ERR_PEER) loop_move(w->options.task.loop);
    }
    const bool is_over = e == ERR_PEER && worker_role_is_stopping(w->task.role);
    return is_over ? fail(ERR_STOPPED, "the job ended before a batch came") : e;
}

/* Reports the end of the data, if batches are handed out. */
static void note_end(struct runner_worker *w)
{
    struct batch_source *data = w->session.data.train;
    int64_t came, used;
    if (data->calls->has_ended(data, &came, &used))
        worker_role_note_end(w->task.role, (uint64_t)(used / w->options.spec->data.batch_size));
}

/* Followed files have a limit of their own (silent_secs). */
static err note_absent(struct runner_worker *w, const struct batch_source *data)
{
    struct absent_batches *a = &w->lack.batches;
    const uint64_t now_ms = clock_ms();
    if (!a->since_ms) *a = (struct absent_batches){.since_ms = now_ms};
    w->task.counting.absent_ms = now_ms;
    if (!data->rows) return OK;
    const uint64_t waited_ms = now_ms - a->since_ms;
    if (waited_ms >= BATCH_WAIT_S_MAX * UINT64_C(1000))
        return fail(ERR_TIMEOUT, "%s: no batch for %d s", data->name, (int)BATCH_WAIT_S_MAX);
    if (waited_ms < ABSENT_MS || a->is_told) return OK;
    a->is_told = true;
    log_line(LOG_WARNING,
             "%s: no batch for %llu s: the storage of its files does not answer, or is slow; waits "
             "at most %d s",
             data->name, (unsigned long long)waited_ms / 1000, (int)BATCH_WAIT_S_MAX);
    return OK;
}

static void note_present(struct runner_worker *w)
{
    w->lack.batches.since_ms = 0;
    w->task.counting.absent_ms = 0;
}

err follow_await(struct runner_worker *w)
{
    const int lacks = session_lacks_batches(&w->session);
    if (!lacks) {
        note_present(w);
        return OK;
    }
    TRY(runner_worker_await_all(w));
    const uint64_t begin_ns = trace_begin(w->session.trace);
    const err e = await(w, lacks);
    trace_end(w->session.trace, SPAN_DATA, 0, begin_ns);
    if (!e) note_present(w);
    if (e == ERR_STOPPED) note_end(w);
    if (e == ERR_PEER && note_absent(w, w->session.data.train)) return ERR_TIMEOUT;
    return e;
}

/* ---- amid an evaluation ---- */

static bool is_as_before(const struct runner_worker *w, int ps)
{
    const struct link *link = w->task.peers[ps].link;
    return worker_role_is_without(w->task.role, ps) || (link && !link_has_ended(link));
}

/* Messages of ps are handled after the evaluation; the loss of a ps ends it. */
static err look_for_losses(struct runner_worker *w)
{
    int ps = 0;
    while (ps < w->task.peer_count && is_as_before(w, ps)) ps++;
    if (ps == w->task.peer_count) return OK;
    w->lack.is_now = true;
    return fail(ERR_PEER, "ps/%d is gone", ps);
}

err follow_evaluation(void *context, bool is_absent)
{
    struct runner_worker *w = context;
    if (task_signal_waits()) return fail(ERR_PEER, "the evaluation is interrupted by a signal");
    if (!is_absent) {
        note_present(w);
        return OK;
    }
    TRY(note_absent(w, w->session.data.evaluation));
    counting_tick(&w->task, clock_ms()); /* sending also detects the loss of a ps */
    loop_move(w->options.task.loop);
    return look_for_losses(w);
}
