/* runner_worker_rows.c - a worker requests rows of tables, receives them and pushes their
 * gradients. */
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/cluster/runner/runner_worker_inside.h"

/* ---- requests ---- */

/* The link to a ps of the layout; NULL: lost. */
static struct link *link_of(const struct runner_worker *w, int ps)
{
    return w->task.peers[runner_worker_source(w, ps)].link;
}

static err send_request(struct runner_worker *w, int ps, size_t bytes, bool trains)
{
    struct link *link = link_of(w, ps);
    const struct message m = {
        .type = MESSAGE_ROWS,
        .job = JOB_WORKER,
        .task = (uint32_t)w->task.index,
        .generation = worker_role_generation(w->task.role),
        .rows = {ROWS_ASKED | (trains ? 0 : ROWS_MADE),
                 .request_id = rows_ask(&w->incoming.rows[ps].asked)},
        .length = bytes,
    };
    if (!link) return fail(ERR_PEER, "ps/%d is gone", runner_worker_source(w, ps));
    link_unpatch(link);
    return link_send(link, &m);
}

static err await_answer(struct runner_worker *w, int ps)
{
    const struct rows_asked *asked = &w->incoming.rows[ps].asked;
    for (int i = 0; i < AWAIT_LOOKS_MAX && !asked->is_answered; i++)
        TRY(runner_worker_await_link(w, runner_worker_source(w, ps)));
    if (asked->is_answered && !asked->is_refused) return OK;
    return fail(ERR_PEER, "ps/%d has no rows for this worker", runner_worker_source(w, ps));
}

/* Requests rows from all ps concerned. If some do not come, the role requests all values again. */
static err ask_all(struct runner_worker *w, const size_t bytes[], bool trains)
{
    for (int ps = 0; ps < w->session.layout->ps_count; ps++)
        if (bytes[ps]) TRY(send_request(w, ps, bytes[ps], trains));
    for (int ps = 0; ps < w->session.layout->ps_count; ps++)
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

/* A request is aborted if one ps sends another message first: other ps may answer later, also after
 * values sent before. Whether the answer is valid does not matter. */
static err settle(void *context)
{
    struct runner_worker *w = context;
    err e = OK;
    bool is_any = false;
    for (int ps = 0; ps < w->session.layout->ps_count; ps++)
        is_any |= link_of(w, ps) && rows_are_open(&w->incoming.rows[ps].asked);
    if (!is_any) return OK;
    runner_worker_reclaim_loop(w);
    for (int ps = 0; ps < w->session.layout->ps_count && !e; ps++) {
        const struct rows_asked *asked = &w->incoming.rows[ps].asked;
        if (!link_of(w, ps) || !rows_are_open(asked)) continue;
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

/* Whether there are as many rows as the front has named last */
static bool are_those(const struct runner_worker *w, int ps, const struct message *m)
{
    if (!rows_window_bytes(&w->session.rows, ps)) return false;
    const struct rows_link *link = &w->session.rows.links[ps];
    return m->offset == link->area.front &&
           m->length == (uint64_t)link->counts.wanted_floats * sizeof(float);
}

void runner_worker_rows_heard(struct runner_worker *w, int from, const struct message *m)
{
    const int ps = runner_worker_bound(w, from);
    if (ps != NOBODY) rows_arrived(&w->incoming.rows[ps].asked, m, are_those(w, ps, m));
}

void runner_worker_rows_values(struct runner_worker *w, int from)
{
    const int ps = runner_worker_bound(w, from);
    if (ps == NOBODY) return;
    const uint64_t came = rows_with_values(&w->incoming.rows[ps].asked);
    if (came)
        rows_came(&w->session.rows, ps, came - 1);
    else
        rows_forget(&w->session.rows, ps);
}

/* ---- pushing ---- */

/* Patches for gradients, and for rows to come, that are not in the window of the ps that sends rows
 */
static err patch(struct link *link, const struct rows_link *rows)
{
    link_unpatch(link);
    for (int i = 0; i < rows->patch_count; i++) {
        const struct area_patch *at = &rows->patches[i];
        TRY(link_patch(link, &(struct patch){at->offset, at->bytes, at->at}));
    }
    return OK;
}

/* The other ps that holds the same gets all ids, in its own window, since it sends no rows back.
 * false: what is to be pushed is lost. */
static bool copy_front(struct runner_worker *w, int to, int ps)
{
    char *const window = w->incoming.windows[to].rows;
    const struct rows_link *rows = &w->session.rows.links[ps];
    const char *kept = w->incoming.rows[ps].kept;
    if (!window || (!rows->window && !kept)) return false;
    if (rows->window)
        rows_copy_front(&w->session.rows, ps, window);
    else
        memcpy(window, kept, rows->front);
    return true;
}

void runner_worker_rows_push(struct runner_worker *w, int to, const struct message *push)
{
    const struct rows *rows = &w->session.rows;
    const int ps = layout_home(w->session.layout, to);
    const bool brings = runner_worker_reads(w, to);
    struct link *link = w->task.peers[to].link;
    if (!link || !rows_window_bytes(rows, ps)) return;
    if (!brings && !copy_front(w, to, ps)) return;
    const struct rows_link *pushed = &rows->links[ps];
    const uint32_t names_next = rows->names_next ? ROWS_AND_NEXT : 0;
    const uint32_t was_brought = pushed->was_brought ? ROWS_BROUGHT : 0;
    const struct message m = {
        .type = MESSAGE_ROWS,
        .job = JOB_WORKER,
        .task = (uint32_t)w->task.index,
        .generation = push->generation,
        .rows = {brings ? names_next | was_brought : 0, .push = push->push.push},
        .length = brings ? rows_push_bytes(pushed) : pushed->front,
    };
    err e = brings ? patch(link, pushed) : OK;
    if (!e) e = link_send(link, &m);
    if (e) log_line(LOG_DEBUG, "%s", error_text()); /* the link closes */
}

/* ---- windows ---- */

void runner_worker_rows_drop(struct runner_worker *w, int ps)
{
    free(w->incoming.rows[ps].kept);
    w->incoming.rows[ps].kept = NULL;
}

/* Keeps a push without answer, since it may have to be sent again. */
void runner_worker_rows_keep(struct runner_worker *w, int ps)
{
    struct rows_link *link =
        rows_window_bytes(&w->session.rows, ps) ? &w->session.rows.links[ps] : NULL;
    struct rows_there *rows = &w->incoming.rows[ps];
    runner_worker_rows_drop(w, ps);
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
    runner_worker_rows_drop(w, ps);
}
