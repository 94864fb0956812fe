/* ps_cover.c - ps/0 counts which rows are in the values (coverage.h), and reports to the chief; and
 * hands out batches, if there is a queue (batch_queue.h). */
#include <endian.h>
#include <stdlib.h>

#include "core/cluster/role/ps_role_inside.h"

static bool is_queue(const struct ps_role *p)
{
    return p->data.queue.workers > 0;
}

static const struct batch_queue *queue_of(const struct ps_role *p)
{
    return is_queue(p) ? &p->data.queue : NULL;
}

static void say(struct ps_role *p, const struct covered *covered, bool is_over, struct outbox *out)
{
    if (!ps_chief_is_here(p)) return; /* the next COVERED has the sums */
    struct message *m = ps_tell_chief(p, MESSAGE_COVERED, out);
    uint64_t *numbers = arena_array(&out->texts, COVERED_NUMBERS, sizeof *numbers);
    covered_pack(covered, numbers);
    m->covered.is_over = is_over;
    m->body = numbers;
    m->body_bytes = COVERED_NUMBERS * sizeof *numbers;
}

/* A message to a chief that computes waits in its link until the step is over, and blocks later
 * ones, such as the rows that an evaluation requests; many epochs may end during one. */
static bool chief_computes(const struct ps_role *p)
{
    return !p->config.is_sync && ps_chief_is_here(p) && p->members[ps_chief(p)].ticket.is_held;
}

static void say_waiting(struct ps_role *p, struct outbox *out)
{
    for (int i = 0; i < p->data.waiting.count; i++) say(p, &p->data.waiting.at[i], true, out);
    p->data.waiting.count = 0;
}

void ps_tell_waiting_coverage(struct ps_role *p, struct outbox *out)
{
    if (p->data.waiting.count && !chief_computes(p)) say_waiting(p, out);
}

/* If there are too many, they are combined. */
static void keep(struct ps_role *p, const struct covered *covered)
{
    struct waiting_coverage *w = &p->data.waiting;
    if (w->count < COVERED_WAITING_MAX) {
        w->at[w->count++] = *covered;
        return;
    }
    struct covered *last = &w->at[w->count - 1], sum = *covered;
    sum.epoch = last->epoch;
    sum.epochs += last->epochs;
    sum.rows += last->rows;
    sum.applied += last->applied;
    *last = sum;
}

static void tell(struct ps_role *p, const struct covered *covered, bool is_over, struct outbox *out)
{
    if (is_over && chief_computes(p)) {
        keep(p, covered);
        return;
    }
    say_waiting(p, out);
    say(p, covered, is_over, out);
}

/* Pushes of a worker that were applied or dropped. */
static uint64_t pushes_of(const struct member *m)
{
    return m->push.fate == PUSH_WAITS ? m->push.before.received : m->ledger.received;
}

static bool is_over(const struct ps_role *p)
{
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        if (m->standing != EVICTED && !coverage_is_past(&p->data.coverage, w, pushes_of(m)))
            return false;
    }
    return true;
}

static void close_oldest(struct ps_role *p, struct outbox *out)
{
    const struct covered closed = coverage_close(&p->data.coverage, queue_of(p));
    tell(p, &closed, true, out);
}

static void cover_batch(struct ps_role *p, struct outbox *out)
{
    coverage_apply_batch(&p->data.coverage);
    for (int i = 0; i < COVERAGE_EPOCHS && coverage_has_all(&p->data.coverage, &p->data.queue);
         i++) {
        const struct covered closed = coverage_close(&p->data.coverage, &p->data.queue);
        keep(p, &closed);
    }
    ps_tell_waiting_coverage(p, out);
}

/* A push brings fewer epochs than are open at a time. */
void ps_cover(struct ps_role *p, int worker, struct outbox *out)
{
    struct coverage *c = &p->data.coverage;
    const uint64_t push = p->members[worker].ledger.taken;
    if (!c->share.rows) return;
    ps_tell_waiting_coverage(p, out);
    if (is_queue(p)) {
        cover_batch(p, out);
        return;
    }
    for (int i = 0; i < COVERAGE_EPOCHS && coverage_is_full(c, worker, push); i++)
        close_oldest(p, out);
    coverage_apply(c, worker, push);
    for (int i = 0; i < COVERAGE_EPOCHS && is_over(p); i++) close_oldest(p, out);
}

static bool is_endless(const struct ps_role *p)
{
    return p->data.coverage.share.rows == DATA_ROWS_ENDLESS;
}

static void tell_brought(struct ps_role *p, bool is_end, struct outbox *out)
{
    struct covered covered = coverage_of_oldest(&p->data.coverage, queue_of(p));
    covered.rows = is_queue(p) ? covered.applied : 0; /* dropped batches come again */
    for (int w = 0; w < p->options.workers && !is_queue(p); w++)
        covered.rows += coverage_brought(&p->data.coverage, w, pushes_of(&p->members[w]));
    tell(p, &covered, is_end, out);
}

/* Rows before the furthest worker that were not pushed: they will not be pushed later. */
static uint64_t missing(const struct ps_role *p)
{
    uint64_t most = 0;
    for (int w = 0; w < p->options.workers && !is_queue(p); w++) {
        const uint64_t reached = coverage_reached(&p->data.coverage, w, pushes_of(&p->members[w]));
        if (reached > most) most = reached;
    }
    return coverage_missing(&p->data.coverage, most);
}

void ps_tell_coverage(struct ps_role *p, struct outbox *out)
{
    struct covered open = coverage_of_open(&p->data.coverage, queue_of(p));
    if (open.rows && !is_endless(p) && !is_queue(p)) open.lost += missing(p);
    if (is_endless(p))
        tell_brought(p, true, out);
    else if (open.rows)
        tell(p, &open, false, out);
}

void ps_tell_coverage_at_snapshot(struct ps_role *p, struct outbox *out)
{
    if (is_endless(p)) tell_brought(p, false, out);
}

/* ---- what comes next ---- */

void ps_take_batch(struct ps_role *p, int worker, bool is_dropped)
{
    if (!is_queue(p) || !batch_queue_has_next(&p->data.queue, worker)) return;
    const bool is_again = p->data.queue.plans[worker].again != 0;
    const uint64_t batch = batch_queue_take(&p->data.queue, worker);
    if (is_again && !is_dropped) p->data.coverage.twice += p->data.coverage.share.batch;
    if (!is_again && is_dropped) batch_queue_put_back(&p->data.queue, batch);
}

uint64_t ps_next_batch(const struct ps_role *p, int worker)
{
    if (!is_queue(p) || !batch_queue_has_next(&p->data.queue, worker)) return 0;
    const struct batch_plan *plan = &p->data.queue.plans[worker];
    return plan->again ? plan->again : plan->at[0].begin + 1;
}

void ps_commit_batch(struct ps_role *p, int worker, bool is_out)
{
    if (!is_queue(p)) return;
    p->data.queue.plans[worker].is_committed = is_out;
    if (p->members[worker].standing == EVICTED) batch_queue_lose(&p->data.queue, worker);
}

void ps_reclaim_batch(struct ps_role *p, int worker)
{
    if (is_queue(p)) batch_queue_reclaim(&p->data.queue, worker);
}

void ps_leave_batches(struct ps_role *p, int worker)
{
    if (is_queue(p)) batch_queue_give_back(&p->data.queue, worker);
}

/* For data that arrive during training: a worker that finds no more reports how many batches there
 * were. */
void ps_note_data_end(struct ps_role *p, uint64_t version)
{
    if (version && is_queue(p)) batch_queue_set_end(&p->data.queue, version - 1);
}

bool ps_has_batches(const struct ps_role *p)
{
    return is_queue(p) && batch_queue_has_rest(&p->data.queue);
}

void ps_say_plan(struct ps_role *p, int worker, struct outbox *out)
{
    uint64_t numbers[PLAN_NUMBERS_MAX];
    int first;
    if (!is_queue(p) || !member_is_here(&p->members[worker])) return;
    const int count = batch_queue_tell(&p->data.queue, worker, numbers, &first);
    if (!count) return;
    uint64_t *body = arena_array(&out->texts, (size_t)count, sizeof *body);
    for (int i = 0; i < count; i++) body[i] = htole64(numbers[i]);
    struct message *m = ps_send(p, worker, MESSAGE_PLAN, out);
    m->plan.step = p->step;
    m->plan.push = p->members[worker].ledger.received + (uint64_t)first;
    m->body = body;
    m->body_bytes = (uint32_t)((size_t)count * sizeof *body);
}

/* How many more batches may be planned: as many as steps are left. */
static uint64_t room(const struct ps_role *p)
{
    const uint64_t last = p->config.last_step, open = batch_queue_open_batches(&p->data.queue);
    const uint64_t left = last > p->step ? last - p->step : 0;
    return left > open ? left - open : 0;
}

/* Regardless of the others' progress; a push that another ps has comes in any case. */
bool ps_is_in_share(const struct ps_role *p, int worker)
{
    const struct member *m = &p->members[worker];
    const uint64_t workers = (uint64_t)p->options.workers;
    const bool has_end = p->config.needs_everybody && !p->config.is_sync;
    return !has_end || m->ticket.completes_push ||
           m->ledger.received * workers + (uint64_t)worker < p->data.share_end;
}

bool ps_plan(struct ps_role *p, int worker, struct outbox *out)
{
    if (!is_queue(p)) return ps_is_in_share(p, worker);
    if (ps_has_turns(p)) {
        uint64_t batches[2];
        ps_turn_batches(p, worker, batches);
        if (!batches[0]) return false;
        batch_queue_assign(&p->data.queue, worker, batches[0] - 1);
        if (batches[1]) batch_queue_assign_next(&p->data.queue, worker, batches[1] - 1);
        ps_say_plan(p, worker, out);
        return true;
    }
    if (!batch_queue_plan(&p->data.queue, worker, room(p))) return false;
    if (!p->data.queue.plans[worker].is_told) ps_say_plan(p, worker, out);
    return true;
}

/* One that there is no memory for is not known, where the run continues from here. */
void ps_note_queue(struct ps_role *p)
{
    struct snapshot *snapshot = &p->snapshot;
    const int count = is_queue(p) ? batch_queue_count(&p->data.queue) : 0;
    snapshot->queue_count = 0;
    if (count > snapshot->queue_capacity) {
        free(snapshot->queue);
        snapshot->queue = malloc((size_t)count * sizeof *snapshot->queue);
        snapshot->queue_capacity = snapshot->queue ? count : 0;
    }
    if (count > snapshot->queue_capacity || !count) return;
    batch_queue_numbers(&p->data.queue, snapshot->queue);
    snapshot->queue_count = count;
}
