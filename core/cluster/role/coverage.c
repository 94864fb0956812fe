/* coverage.c - see coverage.h. A worker's own rows are counted from 0 through all epochs. */
#include "core/cluster/role/coverage.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "core/cluster/role/batch_queue.h"
#include "core/cluster/role/role.h"

/* Limits such that no product overflows. */
static const uint64_t ROWS_MAX = UINT64_C(1) << 56, BATCH_MAX = UINT64_C(1) << 28;

/* ---- the share of a worker ---- */

uint32_t data_share_gradients(const struct data_share *s, int worker)
{
    if (s->replicas <= s->workers) return 1;
    return (uint32_t)(s->replicas / s->workers + ((uint64_t)worker < s->replicas % s->workers));
}

/* Gradients of all pushes of a round, dropped ones included. */
static uint64_t gradients_brought(const struct data_share *s)
{
    return s->replicas > s->workers ? s->replicas : s->workers;
}

bool data_share_is_queue(const struct data_share *s)
{
    return s->rows && s->replicas == 0;
}

bool data_share_is_countable(const struct data_share *s)
{
    const bool is_known = s->rows && s->batch && s->workers && s->workers <= SHARE_WORKERS_MAX;
    const bool is_one = !data_share_is_queue(s) || s->workers == 1;
    return is_known && is_one && s->rows <= ROWS_MAX && s->batch <= BATCH_MAX &&
           gradients_brought(s) <= UINT32_MAX;
}

/* How many epochs count as one: so many that a round spans at most a quarter of the open ones, and
 * pushes still on their way belong to an open one. */
static uint64_t epochs_of(const struct data_share *s)
{
    const uint64_t most = COVERAGE_EPOCHS / 4, round = s->batch * gradients_brought(s);
    uint64_t epochs = 1;
    if (data_share_is_queue(s)) return 1;
    while (round > s->rows * epochs * most) epochs *= 2; /* ends: rows are 1 at least */
    return epochs;
}

uint64_t data_share_rows(const struct data_share *s)
{
    return s->rows * epochs_of(s);
}

bool data_share_is_same(const struct data_share *a, const struct data_share *b)
{
    return a->rows == b->rows && a->batch == b->batch && a->workers == b->workers &&
           data_share_is_queue(a) == data_share_is_queue(b) &&
           gradients_brought(a) == gradients_brought(b);
}

/* For counts from a file, which may be arbitrary: saturates */
static uint64_t rows_of_pushes(const struct data_share *s, int worker, uint64_t pushes)
{
    const uint64_t each = s->batch * data_share_gradients(s, worker);
    return pushes < ROWS_MAX / each ? pushes * each : ROWS_MAX;
}

struct torn_rows data_share_torn(const struct data_share *s, const struct torn_pushes *torn,
                                 int workers)
{
    struct torn_rows rows = {0};
    const bool is_queue = data_share_is_queue(s);
    if (!data_share_is_countable(s)) return rows;
    for (int w = 0; w < workers; w++) {
        if (!is_queue && (uint64_t)w >= s->workers) break;
        rows.lost += rows_of_pushes(s, w, torn[w].lacking);
        if (is_queue) rows.twice += rows_of_pushes(s, w, torn[w].more);
    }
    return rows;
}

/* Own rows in this many pushes. */
static uint64_t own_rows(const struct data_share *s, int worker, uint64_t pushes)
{
    return pushes * s->batch * data_share_gradients(s, worker);
}

/* Own rows before this row of the stream. */
static uint64_t own_before_row(const struct data_share *s, int worker, uint64_t position)
{
    const uint64_t turn = s->batch * s->workers, round = s->batch * gradients_brought(s);
    const uint64_t begin = (uint64_t)worker * s->batch, in_round = position % round;
    const uint64_t rest = in_round % turn;
    const uint64_t of_rest = rest < begin ? 0 : rest - begin < s->batch ? rest - begin : s->batch;
    const uint64_t batches = position / round * data_share_gradients(s, worker) + in_round / turn;
    return batches * s->batch + of_rest;
}

/* Own rows of all epochs before this one. */
static uint64_t own_before(const struct data_share *s, int worker, uint64_t epoch)
{
    return own_before_row(s, worker, epoch * data_share_rows(s));
}

/* The index in the stream of an own batch. */
static uint64_t batch_of(const struct data_share *s, int worker, uint64_t own)
{
    const uint64_t per_push = data_share_gradients(s, worker);
    return own / per_push * gradients_brought(s) + own % per_push * s->workers + (uint64_t)worker;
}

/* The epoch of an own row. */
static uint64_t epoch_of(const struct data_share *s, int worker, uint64_t row)
{
    const uint64_t batch = batch_of(s, worker, row / s->batch);
    return (batch * s->batch + row % s->batch) / data_share_rows(s);
}

/* ---- counting ---- */

/* Rows that counted as lost until now. */
static void come_late(struct coverage *c, uint64_t rows)
{
    c->late += rows;
    c->lost -= rows < c->lost ? rows : c->lost;
}

/* Counts own rows `row` .. `end` - 1 as applied. */
static void count(struct coverage *c, int worker, uint64_t row, uint64_t end)
{
    for (int i = 0; i <= COVERAGE_EPOCHS && row < end; i++) { /* a push does not span more epochs */
        const uint64_t epoch = epoch_of(&c->share, worker, row);
        uint64_t next = own_before(&c->share, worker, epoch + 1);
        if (next > end) next = end;
        if (epoch < c->first)
            come_late(c, next - row);
        else if (epoch - c->first < COVERAGE_EPOCHS)
            c->applied[epoch - c->first] += next - row;
        row = next;
    }
}

void coverage_begin(struct coverage *c, const struct data_share *share,
                    const struct ledger *ledgers)
{
    uint64_t least = UINT64_MAX, most = 0;
    *c = (struct coverage){.share = *share};
    for (int w = 0; ledgers && w < (int)share->workers; w++) {
        const uint64_t rows = own_rows(share, w, ledgers[w].received);
        const uint64_t epoch = epoch_of(share, w, rows);
        if (epoch < least) least = epoch;
        if (epoch > most) most = epoch;
        c->total += rows;
    }
    if (!ledgers) return;
    c->first = most - least < COVERAGE_EPOCHS ? least : most - COVERAGE_EPOCHS + 1;
    for (int w = 0; w < (int)share->workers; w++)
        count(c, w, own_before(share, w, c->first), own_rows(share, w, ledgers[w].received));
}

bool coverage_is_full(const struct coverage *c, int worker, uint64_t push)
{
    const uint64_t last = own_rows(&c->share, worker, push) - 1;
    return epoch_of(&c->share, worker, last) >= c->first + COVERAGE_EPOCHS;
}

void coverage_apply(struct coverage *c, int worker, uint64_t push)
{
    const uint64_t begin = own_rows(&c->share, worker, push - 1);
    const uint64_t end = own_rows(&c->share, worker, push);
    count(c, worker, begin, end);
    c->total += end - begin;
}

bool coverage_is_past(const struct coverage *c, int worker, uint64_t pushes)
{
    return own_rows(&c->share, worker, pushes) >= own_before(&c->share, worker, c->first + 1);
}

uint64_t coverage_brought(const struct coverage *c, int worker, uint64_t pushes)
{
    return own_rows(&c->share, worker, pushes);
}

uint64_t coverage_reached(const struct coverage *c, int worker, uint64_t pushes)
{
    const struct data_share *s = &c->share;
    const uint64_t own = own_rows(s, worker, pushes) / s->batch;
    return own ? (batch_of(s, worker, own - 1) + 1) * s->batch : 0;
}

uint64_t coverage_missing(const struct coverage *c, uint64_t reached)
{
    uint64_t there = c->first * data_share_rows(&c->share);
    for (int i = 0; i < COVERAGE_EPOCHS; i++) there += c->applied[i];
    return reached > there ? reached - there : 0;
}

static uint64_t applied_of_oldest(const struct coverage *c, const struct batch_queue *queue)
{
    const uint64_t rows = data_share_rows(&c->share), begin = c->first * rows;
    if (!queue) return c->applied[0];
    const uint64_t used = batch_queue_used(queue, c->share.batch, begin, begin + rows);
    return used > c->applied[0] ? used - c->applied[0] : 0;
}

/* The number of open epochs, from the oldest on; groups count as one. */
static uint64_t epochs_open(const struct coverage *c, const struct batch_queue *queue)
{
    const uint64_t front = queue ? queue->front * c->share.batch : 0,
                   rows = data_share_rows(&c->share);
    uint64_t open = 1;
    if (c->share.rows == DATA_ROWS_ENDLESS) return open;
    if (queue) return front > (c->first + 1) * rows ? (front + rows - 1) / rows - c->first : open;
    for (uint64_t i = 1; i < COVERAGE_EPOCHS; i++)
        if (c->applied[i]) open = i + 1;
    return open;
}

struct covered coverage_of_open(const struct coverage *c, const struct batch_queue *queue)
{
    const uint64_t open = epochs_open(c, queue), rows = data_share_rows(&c->share);
    struct covered all = coverage_of_oldest(c, queue);
    all.epochs *= open;
    all.rows *= open;
    const uint64_t begin = (c->first + 1) * rows;
    if (queue)
        all.applied += batch_queue_used(queue, c->share.batch, begin, begin + (open - 1) * rows);
    for (uint64_t i = 1; i < open && !queue; i++) all.applied += c->applied[i];
    return all;
}

struct covered coverage_of_oldest(const struct coverage *c, const struct batch_queue *queue)
{
    const uint64_t epochs = epochs_of(&c->share);
    return (struct covered){
        .epoch = c->first * epochs,
        .epochs = epochs,
        .rows = data_share_rows(&c->share),
        .applied = applied_of_oldest(c, queue),
        .twice = c->twice,
        .lost = c->lost,
        .late = c->late,
        .total = c->total,
    };
}

struct covered coverage_close(struct coverage *c, const struct batch_queue *queue)
{
    const uint64_t applied = applied_of_oldest(c, queue);
    const uint64_t rows = c->share.rows == DATA_ROWS_ENDLESS ? applied : data_share_rows(&c->share);
    if (applied < rows)
        c->lost += rows - applied;
    else
        c->twice += applied - rows;
    const struct covered closed = coverage_of_oldest(c, queue);
    c->first++;
    memmove(c->applied, c->applied + 1, sizeof c->applied - sizeof c->applied[0]);
    c->applied[COVERAGE_EPOCHS - 1] = 0;
    return closed;
}

/* ---- another share ---- */

static void close_all(struct coverage *c, const struct batch_queue *queue)
{
    int open = COVERAGE_EPOCHS;
    while (open > 0 && c->applied[open - 1] == 0) open--;
    for (int i = 0; i < open; i++) coverage_close(c, queue);
}

/* Ledgers as if all rows before this batch of the stream had been pushed. */
static void begin_at(const struct data_share *s, uint64_t batch, uint64_t step, struct ledger *ret)
{
    for (int w = 0; w < (int)s->workers; w++) {
        const uint64_t per_push = data_share_gradients(s, w);
        const uint64_t own = own_before_row(s, w, batch * s->batch) / s->batch;
        const uint64_t pushes = (own + per_push - 1) / per_push;
        ret[w] = (struct ledger){.received = pushes, .taken = pushes, .taken_step = step};
    }
}

static uint64_t all_rows(const struct data_share *s, const struct ledger *ledgers)
{
    uint64_t rows = 0;
    for (int w = 0; w < (int)s->workers; w++) rows += own_rows(s, w, ledgers[w].received);
    return rows;
}

/* Begins a queue in which `used` rows of the open epochs are done. Those that were not applied,
 * since gradients were dropped or will never come, count as left out. */
static void leave_out(struct coverage *c, uint64_t used)
{
    uint64_t there = 0;
    for (int i = 0; i < COVERAGE_EPOCHS; i++) there += c->applied[i];
    const uint64_t left = used > there ? used - there : 0;
    memset(c->applied, 0, sizeof c->applied);
    c->applied[0] = left < c->share.rows ? left : c->share.rows;
    c->lost += left - c->applied[0];
}

/* A push across the boundary would bring rows of a closed epoch again: workers begin with the first
 * push after it. */
uint64_t coverage_begin_anew(struct coverage *c, const struct data_share *share, uint64_t step,
                             struct ledger *ret, uint64_t *ret_left)
{
    const uint64_t epochs = epochs_of(&c->share), now = epochs_of(share);
    const uint64_t lost = c->lost;
    close_all(c, NULL);
    c->first = (c->first * epochs + now - 1) / now;
    c->share = *share;
    if (share->rows == DATA_ROWS_ENDLESS) c->first = 0;
    *ret_left = c->lost - lost;
    for (int w = 0; w < (int)share->workers; w++) {
        const uint64_t rows = own_before(share, w, c->first), each = own_rows(share, w, 1);
        const uint64_t pushes = (rows + each - 1) / each;
        *ret_left += pushes * each - rows;
        ret[w] = (struct ledger){.received = pushes, .taken = pushes, .taken_step = step};
    }
    if (data_share_is_queue(share)) leave_out(c, all_rows(share, ret) - c->first * share->rows);
    return c->first * now;
}

/* The row at which the furthest push of any worker ends. */
static uint64_t rows_reached(const struct coverage *c, const struct ledger *ledgers)
{
    uint64_t most = 0;
    for (int w = 0; w < (int)c->share.workers; w++) {
        const uint64_t reached = coverage_reached(c, w, ledgers[w].received);
        if (reached > most) most = reached;
    }
    return most;
}

/* Closes the epochs that end before row `rows` of the stream, and counts those that are still open
 * as the other share does. */
static void count_as(struct coverage *c, const struct data_share *share, uint64_t rows)
{
    const uint64_t epochs = epochs_of(&c->share), now = epochs_of(share);
    const uint64_t over = rows / data_share_rows(&c->share);
    for (int i = 0; i < COVERAGE_EPOCHS && c->first < over; i++) coverage_close(c, NULL);
    if (epochs != now) {
        const uint64_t begin = c->first * data_share_rows(&c->share);
        const uint64_t first = begin / data_share_rows(share);
        uint64_t there = begin - first * data_share_rows(share);
        for (int i = 0; i < COVERAGE_EPOCHS; i++) there += c->applied[i];
        memset(c->applied, 0, sizeof c->applied);
        c->first = first;
        for (int i = 0; i < COVERAGE_EPOCHS && there; i++) {
            c->applied[i] = there < data_share_rows(share) ? there : data_share_rows(share);
            there -= c->applied[i];
        }
    }
    c->share = *share;
}

uint64_t coverage_go_on(struct coverage *c, const struct data_share *share,
                        const struct ledger *before, uint64_t step, struct ledger *ret,
                        uint64_t *ret_left)
{
    const uint64_t rows = rows_reached(c, before), brought = all_rows(&c->share, before);
    count_as(c, share, rows);
    begin_at(share, (rows + share->batch - 1) / share->batch, step, ret);
    *ret_left = all_rows(share, ret) - brought;
    if (data_share_is_queue(share)) leave_out(c, all_rows(share, ret) - c->first * share->rows);
    return c->first * epochs_of(share);
}

/* ---- of a queue ---- */

void coverage_apply_batch(struct coverage *c)
{
    c->total += c->share.batch;
}

bool coverage_has_all(const struct coverage *c, const struct batch_queue *queue)
{
    return batch_queue_oldest(queue) * c->share.batch >= (c->first + 1) * c->share.rows;
}

/* Whether this batch of the stream was pushed. */
static bool is_brought(const struct data_share *s, const struct ledger *ledgers, uint64_t batch)
{
    const uint64_t in_round = batch % gradients_brought(s), worker = in_round % s->workers;
    const uint64_t round = batch / gradients_brought(s);
    return round < ledgers[worker].received;
}

/* The first batch that was not pushed. */
static uint64_t first_missing(const struct data_share *s, const struct ledger *ledgers)
{
    uint64_t least = UINT64_MAX;
    for (int w = 0; w < (int)s->workers; w++) {
        const uint64_t own = ledgers[w].received * data_share_gradients(s, w);
        const uint64_t batch = batch_of(s, w, own);
        if (batch < least) least = batch;
    }
    return least;
}

bool coverage_to_queue(struct coverage *c, const struct data_share *share,
                       const struct ledger *before, struct batch_queue *ret)
{
    const uint64_t front = rows_reached(c, before) / c->share.batch;
    const uint64_t most = QUEUE_NUMBERS_MAX / 4, begin = c->first * data_share_rows(&c->share);
    uint64_t from = first_missing(&c->share, before);
    if (from < begin / share->batch) from = begin / share->batch; /* earlier ones count as lost */
    if (c->share.batch != share->batch || front > from + most) return false;
    ret->front = front;
    for (uint64_t b = from; b < front; b++)
        if (!is_brought(&c->share, before, b)) batch_queue_put_back(ret, b);
    c->first *= epochs_of(&c->share);
    c->share = *share;
    leave_out(c, batch_queue_used(ret, share->batch, begin, front * share->batch));
    return true;
}

uint64_t coverage_from_queue(struct coverage *c, const struct data_share *share,
                             const struct batch_queue *queue, uint64_t step, struct ledger *ret,
                             uint64_t *ret_left)
{
    const struct data_share was = c->share;
    const uint64_t reached = batch_queue_reached(queue), behind = queue->front - reached;
    const uint64_t rows = reached * was.batch, now = data_share_rows(share);
    const uint64_t brought = rows - (batch_queue_open_batches(queue) - behind) * was.batch;
    const uint64_t over = rows / was.rows > c->first ? rows / was.rows : c->first;
    const uint64_t begin = over * was.rows, closed = begin - c->first * was.rows;
    const uint64_t used = batch_queue_used(queue, was.batch, c->first * was.rows, begin);
    if (over > c->first) c->lost += closed - used + c->applied[0];
    c->applied[0] = (over > c->first ? 0 : -c->applied[0]) + begin % now +
                    batch_queue_used(queue, was.batch, begin, rows);
    c->first = begin / now;
    c->share = *share;
    begin_at(share, (rows + share->batch - 1) / share->batch, step, ret);
    *ret_left = all_rows(share, ret) - brought;
    if (data_share_is_queue(share)) leave_out(c, all_rows(share, ret) - c->first * share->rows);
    return c->first * epochs_of(share);
}

/* ---- as numbers ---- */

void coverage_numbers(const struct coverage *c, int64_t ret[COVERAGE_NUMBERS])
{
    const uint64_t numbers[] = {c->share.rows,     c->share.batch, c->share.workers,
                                c->share.replicas, c->first,       c->twice,
                                c->lost,           c->late,        c->total};
    static_assert(sizeof numbers + sizeof c->applied == COVERAGE_NUMBERS * sizeof *numbers,
                  "all of it");
    memcpy(ret, numbers, sizeof numbers);
    memcpy(ret + sizeof numbers / sizeof *numbers, c->applied, sizeof c->applied);
}

/* Whether the oldest open epoch is within the length of any stream. */
static bool is_in_stream(const struct coverage *c)
{
    return c->first <= ROWS_MAX / data_share_rows(&c->share);
}

/* Counts must be within the length of any stream, so that additions do not overflow. With 0 rows
 * the rest of the share is ignored: it is not divided by. */
bool coverage_of(const int64_t numbers[COVERAGE_NUMBERS], struct coverage *ret)
{
    for (int i = 0; i < COVERAGE_NUMBERS; i++)
        if (numbers[i] < 0 || (uint64_t)numbers[i] > ROWS_MAX) return false;
    *ret = (struct coverage){
        .share = {(uint64_t)numbers[0], (uint64_t)numbers[1], (uint64_t)numbers[2],
                  (uint64_t)numbers[3]},
        .first = (uint64_t)numbers[4],
        .twice = (uint64_t)numbers[5],
        .lost = (uint64_t)numbers[6],
        .late = (uint64_t)numbers[7],
        .total = (uint64_t)numbers[8],
    };
    memcpy(ret->applied, numbers + COVERAGE_NUMBERS - COVERAGE_EPOCHS, sizeof ret->applied);
    if (!ret->share.rows) ret->share = (struct data_share){0};
    return !ret->share.rows || (data_share_is_countable(&ret->share) && is_in_stream(ret));
}

void covered_pack(const struct covered *c, uint64_t ret_numbers[COVERED_NUMBERS])
{
    const uint64_t numbers[COVERED_NUMBERS] = {c->epoch, c->rows, c->applied, c->twice,
                                               c->lost,  c->late, c->total,   c->epochs};
    for (int i = 0; i < COVERED_NUMBERS; i++) ret_numbers[i] = htole64(numbers[i]);
}

bool covered_unpack(const struct message *m, struct covered *ret)
{
    uint64_t n[COVERED_NUMBERS];
    if (!m->body || m->body_bytes != sizeof n) return false;
    memcpy(n, m->body, sizeof n);
    for (int i = 0; i < COVERED_NUMBERS; i++) n[i] = le64toh(n[i]);
    *ret = (struct covered){.epoch = n[0],
                            .epochs = n[7],
                            .rows = n[1],
                            .applied = n[2],
                            .twice = n[3],
                            .lost = n[4],
                            .late = n[5],
                            .total = n[6]};
    return n[7] > 0;
}
