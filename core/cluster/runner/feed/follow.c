/* follow.c - see follow.h. */
#include "core/cluster/runner/feed/follow.h"

enum { LOOKS = 20, LOOK_MS = 50 };

static err await(struct runner_worker *w, int lacks)
{
    struct batch_source *data = w->session.data.train;
    err e = ERR_PEER;
    for (int i = 0; i < LOOKS && e == ERR_PEER; i++) {
        e = data->calls->await(data, lacks, LOOK_MS);
        if (e == ERR_PEER) loop_move(w->options.task.loop);
    }
    const bool is_over = e == ERR_PEER && worker_role_is_stopping(w->task.role);
    return is_over ? fail(ERR_STOPPED, "no batch came before the end") : e;
}

/* Which batches there are none of, where they are handed out. */
static void note_end(struct runner_worker *w)
{
    struct batch_source *data = w->session.data.train;
    int64_t came, used;
    if (data->calls->has_ended(data, &came, &used))
        worker_role_note_end(w->task.role, (uint64_t)(used / w->options.spec->data.batch_size));
}

err follow_await(struct runner_worker *w)
{
    const int lacks = session_lacks_batches(&w->session);
    if (!lacks) return OK;
    TRY(runner_worker_await_all(w));
    const uint64_t begin_ns = trace_begin(w->session.trace);
    const err e = await(w, lacks);
    trace_end(w->session.trace, SPAN_DATA, 0, begin_ns);
    if (e == ERR_STOPPED) note_end(w);
    return e;
}
