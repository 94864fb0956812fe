/* runner_worker_averages.c - averages of variables, requested from each ps when an evaluation
 * begins. */
#include "core/cluster/runner/runner_worker_inside.h"

static err send_request(struct runner_worker *w, int ps)
{
    struct link *link = w->task.peers[ps].link;
    struct averages_asked *asked = &w->incoming.averages;
    if (!link) return fail(ERR_PEER, "ps/%d is gone", ps);
    asked->request_id++;
    asked->ps = ps;
    asked->is_answered = asked->is_refused = false;
    const struct message m = {
        .type = MESSAGE_AVERAGES,
        .job = JOB_WORKER,
        .task = (uint32_t)w->task.index,
        .generation = worker_role_generation(w->task.role),
        .averages.request_id = asked->request_id,
    };
    return link_send(link, &m);
}

static err await_answer(struct runner_worker *w, int ps)
{
    const struct averages_asked *asked = &w->incoming.averages;
    for (int i = 0; i < AWAIT_LOOKS_MAX && !asked->is_answered; i++)
        TRY(runner_worker_await_link(w, ps));
    if (asked->is_answered && !asked->is_refused) return OK;
    return fail(ERR_PEER, "ps/%d has no averages for this worker", ps);
}

/* Answers to an earlier request, which was aborted, are ignored. */
static err bring(void *context, int ps)
{
    struct runner_worker *w = context;
    runner_worker_reclaim_loop(w);
    const int source = runner_worker_source(w, ps);
    err e = send_request(w, source);
    if (!e) e = await_answer(w, source);
    runner_worker_lend_loop(w);
    if (!e) return OK;
    runner_worker_lack_values(w, "averages");
    return ERR_PEER;
}

const struct average_source *runner_worker_open_averages(struct runner_worker *w)
{
    if (!(w->options.spec->train.average.decay > 0)) return NULL;
    w->incoming.averages.from = (struct average_source){bring, w};
    return &w->incoming.averages.from;
}

void runner_worker_averages_heard(struct runner_worker *w, int ps, const struct message *m)
{
    struct averages_asked *asked = &w->incoming.averages;
    if (ps != asked->ps || m->averages.request_id != asked->request_id) return;
    asked->is_refused = m->averages.flags & AVERAGES_NONE;
    asked->is_answered = asked->is_refused || m->averages.flags & AVERAGES_LAST;
}
