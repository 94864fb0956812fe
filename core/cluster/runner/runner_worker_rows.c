/* runner_worker_rows.c - rows of tables as a worker asks for them, gets them and pushes their
 * gradients.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/cluster/runner/runner_worker_inside.h"

/* ---- asking ---- */

static err send_asking(struct runner_worker *w, int ps, size_t bytes, bool trains)
{
    struct link *link = w->task.peers[ps].link;
    const struct message m = {
        .type = MESSAGE_ROWS,
        .job = JOB_WORKER,
        .task = (uint32_t)w->task.index,
        .generation = worker_role_generation(w->task.role),
        .rows = {ROWS_ASKED | (trains ? 0 : ROWS_MADE),
                 .asking = rows_ask(&w->incoming.rows[ps].asked)},
        .length = bytes,
    };
    if (!link) return fail(ERR_PEER, "ps/%d is gone", ps);
    link_unpatch(link);
    return link_send(link, &m);
}

static err await_answer(struct runner_worker *w, int ps)
{
    const struct rows_asked *asked = &w->incoming.rows[ps].asked;
    for (int i = 0; i < AWAIT_LOOKS_MAX && !asked->is_answered; i++)
        TRY(runner_worker_await_link(w, ps));
    if (asked->is_answered && !asked->is_refused) return OK;
    return fail(ERR_PEER, "ps/%d has no rows for this worker", ps);
}

/* Of all ps that are asked. The role asks for all values again where some rows do not come. */
static err ask_all(struct runner_worker *w, const size_t bytes[], bool trains)
{
    for (int ps = 0; ps < w->task.peer_count; ps++)
        if (bytes[ps]) TRY(send_asking(w, ps, bytes[ps], trains));
    for (int ps = 0; ps < w->task.peer_count; ps++)
        if (bytes[ps]) TRY(await_answer(w, ps));
    return OK;
}

static err over(struct runner_worker *w, err e)
{
    runner_worker_lend_loop(w);
    if (!e) return OK;
    runner_worker_lack_values(w, "rows");
    return ERR_PEER;
}

static err ask(void *context, const size_t bytes[], bool trains)
{
    struct runner_worker *w = context;
    runner_worker_reclaim_loop(w);
    return over(w, ask_all(w, bytes, trains));
}

/* An asking ends amid where one ps says something else first: others may read theirs later, also
 * behind values that were on their way before. Whether the answer is one does not count. */
static err settle(void *context)
{
    struct runner_worker *w = context;
    err e = OK;
    bool is_any = false;
    for (int ps = 0; ps < w->task.peer_count; ps++)
        is_any |= w->task.peers[ps].link && rows_are_open(&w->incoming.rows[ps].asked);
    if (!is_any) return OK;
    runner_worker_reclaim_loop(w);
    for (int ps = 0; ps < w->task.peer_count && !e; ps++) {
        const struct rows_asked *asked = &w->incoming.rows[ps].asked;
        if (!w->task.peers[ps].link || !rows_are_open(asked)) continue;
        e = await_answer(w, ps);
        if (asked->is_answered) e = OK;
    }
    return over(w, e);
}

const struct row_source *runner_worker_open_rows(struct runner_worker *w)
{
    w->rows_from = (struct row_source){ask, w, settle};
    return &w->rows_from;
}

/* ---- getting ---- */

/* As many as the front has named last */
static bool are_those(const struct runner_worker *w, int ps, const struct message *m)
{
    if (!rows_window_bytes(&w->session.rows, ps)) return false;
    const struct rows_link *link = &w->session.rows.links[ps];
    return m->offset == link->area.front &&
           m->length == (uint64_t)link->counts.wanted_floats * sizeof(float);
}

void runner_worker_rows_heard(struct runner_worker *w, int ps, const struct message *m)
{
    rows_arrived(&w->incoming.rows[ps].asked, m, are_those(w, ps, m));
}

void runner_worker_rows_values(struct runner_worker *w, int ps)
{
    const uint64_t came = rows_with_values(&w->incoming.rows[ps].asked);
    if (came)
        rows_came(&w->session.rows, ps, came - 1);
    else
        rows_forget(&w->session.rows, ps);
}

/* ---- pushing ---- */

/* Gradients, and rows to come, that lie elsewhere than in the window */
static err patch(struct link *link, const struct rows_link *rows)
{
    link_unpatch(link);
    for (int i = 0; i < rows->patch_count; i++) {
        const struct area_patch *at = &rows->patches[i];
        TRY(link_patch(link, &(struct patch){at->offset, at->bytes, at->at}));
    }
    return OK;
}

void runner_worker_rows_push(struct runner_worker *w, int ps, const struct message *push)
{
    const struct rows *rows = &w->session.rows;
    struct link *link = w->task.peers[ps].link;
    if (!link || !rows_window_bytes(rows, ps)) return;
    const struct message m = {
        .type = MESSAGE_ROWS,
        .job = JOB_WORKER,
        .task = (uint32_t)w->task.index,
        .generation = push->generation,
        .rows = {(rows->names_next ? ROWS_AND_NEXT : 0) |
                     (rows->links[ps].was_brought ? ROWS_BROUGHT : 0),
                 .push = push->push.push},
        .length = rows_push_bytes(&rows->links[ps]),
    };
    err e = patch(link, &rows->links[ps]);
    if (!e) e = link_send(link, &m);
    if (e) log_line(LOG_DEBUG, "%s", error_text()); /* the link closes */
}

/* ---- windows ---- */

/* A push that was not answered may have to be sent again. */
void runner_worker_rows_keep(struct runner_worker *w, int ps)
{
    struct rows_link *link =
        rows_window_bytes(&w->session.rows, ps) ? &w->session.rows.links[ps] : NULL;
    struct rows_there *rows = &w->incoming.rows[ps];
    free(rows->kept);
    rows->kept = NULL;
    rows_asked_forget(&rows->asked);
    if (!link || !link->window) return;
    rows->kept = malloc(link->front + 1);
    if (rows->kept)
        rows_copy_front(&w->session.rows, ps, rows->kept);
    else
        task_end(&w->task, fail(ERR_MEMORY, "no memory to keep %zu bytes of rows", link->front));
}

void runner_worker_rows_bind(struct runner_worker *w, int ps, void *window, bool is_apart)
{
    struct rows_there *rows = &w->incoming.rows[ps];
    session_bind_rows(&w->session, ps, window, is_apart);
    rows_asked_forget(&rows->asked);
    if (!rows->kept) return;
    memcpy(window, rows->kept, w->session.rows.links[ps].front);
    free(rows->kept);
    rows->kept = NULL;
}
