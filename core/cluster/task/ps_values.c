/* ps_values.c - how values travel to a worker.
 *
 * What has gone ahead of a round leaves from the front of the block on, and no faster than the link
 * carries it away. So when the round is whole little lies before its VALUES, and all that is left
 * follows in the order in which the next forward pass wants it: from the end of the block down.
 *
 * Memory that is still queued may change when a worker asks for all values again, or has none to
 * compute any more, or a generation begins: whole VALUES follow on the same link before anybody
 * computes.
 */
#include "core/cluster/task/ps_inside.h"

static uint64_t part_bytes(const struct ps_task *p)
{
    return task_part_bytes(ps_block_bytes(p));
}

/* ---- ahead of the round ---- */

static err send_ahead(struct ps_task *p, int worker)
{
    struct ahead_values *a = &p->windows[worker].ahead;
    const uint64_t left = a->end - a->sent, part = part_bytes(p);
    const struct message m = {
        .type = MESSAGE_AHEAD,
        .job = JOB_PS,
        .task = (uint32_t)p->task.index,
        .generation = p->share->setup.config.generation,
        .offset = a->sent,
        .length = left < part ? left : part,
    };
    a->sent += m.length;
    return link_send(p->task.peers[worker].link, &m);
}

static bool may_send_ahead(const struct ps_task *p, int worker)
{
    const struct ahead_values *a = &p->windows[worker].ahead;
    const struct link *link = p->task.peers[worker].link;
    return link && a->sent < a->end && link_is_idle(link);
}

/* Ends: where a link takes all at once, with the block. */
static err send_while_free(struct ps_task *p, int worker)
{
    while (may_send_ahead(p, worker)) TRY(send_ahead(p, worker));
    return OK;
}

/* A worker that sees the memory itself is told by VALUES. */
static err take_ahead(struct ps_task *p, int worker, const struct message *m)
{
    struct ahead_values *a = &p->windows[worker].ahead;
    struct link *link = p->task.peers[worker].link;
    if (link_shares_memory(link)) return OK;
    if (m->offset == 0) {
        a->sent = 0;
        link_keep_short(link);
    }
    a->end = m->offset + m->length;
    return send_while_free(p, worker);
}

void ps_task_values_pump(struct ps_task *p)
{
    for (int w = 0; w < p->task.peer_count; w++)
        if (send_while_free(p, w)) log_line(LOG_DEBUG, "%s", error_text()); /* the link closes */
}

void ps_task_values_hold(struct ps_task *p)
{
    for (int w = 0; w < p->task.peer_count; w++) p->windows[w].ahead.end = p->windows[w].ahead.sent;
}

void ps_task_values_forget(struct ps_task *p, int worker)
{
    p->windows[worker].ahead = (struct ahead_values){0};
}

void ps_task_values_heard(struct ps_task *p, int worker, const struct message *m)
{
    if (m->type == MESSAGE_PUSH || m->type == MESSAGE_JOIN)
        p->windows[worker].takes_rest = m->type == MESSAGE_PUSH;
    if (m->type == MESSAGE_JOIN) ps_tables_forget(p, worker);
}

/* ---- with the round ---- */

/* Asynchronous, and all workers are on other hosts: values that all of them wait for in pieces
 * would come to all of them late, where they come to one after another as a whole. */
static bool would_delay_others(const struct ps_task *p)
{
    if (p->share->setup.config.is_sync) return false;
    for (int w = 0; w < p->task.peer_count; w++) {
        const struct link *link = p->task.peers[w].link;
        if (link && link_is_near(link)) return false;
    }
    return true;
}

static bool has_rest(const struct ps_task *p, int worker, const struct message *m)
{
    if (would_delay_others(p)) return false;
    return m->length > part_bytes(p) && !(m->code & VALUES_FINAL) &&
           p->windows[worker].takes_rest && task_sends_parts(&p->task, p->task.peers[worker].link);
}

static err send_in_parts(struct link *link, const struct message *all, uint64_t part)
{
    struct message m = *all;
    m.code |= VALUES_HAS_REST;
    m.offset = all->offset + all->length - part;
    m.length = part;
    err e = link_send(link, &m);
    m.type = MESSAGE_REST;
    for (uint64_t left = all->length - part; left > 0 && !e; left -= m.length) {
        m.length = left < part ? left : part;
        m.offset = all->offset + left - m.length;
        m.code = m.length == left;
        e = link_send(link, &m);
    }
    return e;
}

/* What has been given to go ahead and has not left goes with the rest. */
static err send_values(struct ps_task *p, int worker, const struct message *values)
{
    struct link *link = p->task.peers[worker].link;
    struct ahead_values *a = &p->windows[worker].ahead;
    struct message m = *values;
    if (m.code & VALUES_HELD) return link_send(link, &m);
    ps_tables_answer(p, worker);
    if (!link_shares_memory(link) && a->sent < m.offset) {
        m.length += m.offset - a->sent;
        m.offset = a->sent;
    }
    *a = (struct ahead_values){0};
    return has_rest(p, worker, &m) ? send_in_parts(link, &m, part_bytes(p)) : link_send(link, &m);
}

err ps_task_values_send(struct task *t, int worker, const struct message *m)
{
    struct ps_task *p = (struct ps_task *)t;
    if (m->type == MESSAGE_AHEAD) return take_ahead(p, worker, m);
    if (m->type == MESSAGE_VALUES) return send_values(p, worker, m);
    return link_send(t->peers[worker].link, m);
}
