/* runner_ps_values.c - sends values to a worker.
 *
 * Between hosts each part of a block is sent as soon as it has the next step's values, and is
 * overtaken by parts that the next forward pass needs sooner, those towards the end of the block.
 * VALUES overtake all parts: the rest arrives while the worker computes.
 *
 * Memory that is still queued may change when a worker asks for all values again, has nothing more
 * to compute, or a generation begins: that does no harm, as whole VALUES follow on the same link.
 */
#include "core/cluster/role/parts.h"
#include "core/cluster/runner/runner_ps_inside.h"

static err send_stretch(struct runner_ps *p, int worker, const struct message *m)
{
    struct link *link = p->task.peers[worker].link;
    const struct value_copy *seen = p->windows[worker].seen;
    return seen ? link_send_from(link, m, seen->window.base) : link_send(link, m);
}

/* Sends each part as a message, from the last one down, so that later parts can overtake it. */
static err send_each(struct runner_ps *p, int worker, const struct message *like, uint64_t set)
{
    const struct parts block = parts_of(runner_ps_block_floats(p));
    struct message m = *like;
    err e = OK;
    while (set && !e) {
        uint64_t last = parts_last(set);
        set &= ~last;
        m.range = parts_take_last(&block, &last);
        task_set_stretch(&p->task, &m);
        e = send_stretch(p, worker, &m);
    }
    return e;
}

static uint64_t parts_of_message(const struct runner_ps *p, const struct message *m)
{
    const struct parts block = parts_of(runner_ps_block_floats(p));
    return parts_in(&block, m->range);
}

/* A worker that shares the memory is only notified. */
static err send_ahead(struct runner_ps *p, int worker, const struct message *m)
{
    struct link *link = p->task.peers[worker].link;
    if (!m->length || link_shares_memory(link)) return link_send(link, m);
    return send_each(p, worker, m, parts_of_message(p, m));
}

void runner_ps_values_heard(struct runner_ps *p, int worker, const struct message *m)
{
    if (m->type == MESSAGE_PUSH || m->type == MESSAGE_JOIN)
        p->windows[worker].takes_rest = m->type == MESSAGE_PUSH;
    if (m->type != MESSAGE_JOIN) return;
    rows_told_forget(&p->windows[worker].named.told);
    runner_ps_turns_joins(p, worker, m);
    runner_ps_tables_give_up(p, worker);
}

static bool has_rest(const struct runner_ps *p, int worker, const struct message *m)
{
    return !(m->values.flags & VALUES_FINAL) && p->windows[worker].takes_rest &&
           p->task.peers[worker].overlap & OVERLAP_REST;
}

static err send_values(struct runner_ps *p, int worker, const struct message *values)
{
    struct link *link = p->task.peers[worker].link;
    if (values->values.flags & VALUES_HELD) return link_send(link, values);
    const bool is_served = values->length && runner_ps_copies_serve(p, link);
    if (is_served && !runner_ps_copies_lend(p, worker, values)) return OK; /* later */
    runner_ps_tables_answer(p, worker);
    const uint64_t all = parts_of_message(p, values);
    if (!all || !has_rest(p, worker, values)) return send_stretch(p, worker, values);
    const uint64_t last = parts_last(all);
    const struct message rest = {
        .type = MESSAGE_AHEAD,
        .job = JOB_PS,
        .task = values->task,
        .generation = values->generation,
        .ahead.step = values->values.step,
    };
    const err e = send_each(p, worker, values, last);
    return e ? e : send_each(p, worker, &rest, all & ~last);
}

err runner_ps_values_send(struct task *t, int worker, const struct message *m)
{
    struct runner_ps *p = (struct runner_ps *)t;
    if (m->type == MESSAGE_AHEAD) return send_ahead(p, worker, m);
    if (m->type == MESSAGE_VALUES) return send_values(p, worker, m);
    return link_send(t->peers[worker].link, m);
}
