/* coverage.c - see coverage.h. A worker's own rows are counted from 0 through all epochs. */
#include "core/cluster/role/coverage.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "core/cluster/role/role.h"

/* No product of these overflows. */
static const uint64_t ROWS_MAX = UINT64_C(1) << 56, BATCH_MAX = UINT64_C(1) << 28;

/* ---- the share of a worker ---- */

uint32_t data_share_gradients(const struct data_share *s, int worker)
{
    if (s->replicas <= s->workers) return 1;
    return (uint32_t)(s->replicas / s->workers + ((uint64_t)worker < s->replicas % s->workers));
}

/* Of a round, whoever is dropped. */
static uint64_t gradients_brought(const struct data_share *s)
{
    return s->replicas > s->workers ? s->replicas : s->workers;
}

bool data_share_is_countable(const struct data_share *s)
{
    const uint64_t epochs = COVERAGE_EPOCHS / 4; /* of a round: then 32 hold what is on its way */
    const uint64_t gradients = gradients_brought(s);
    const bool is_known = s->rows && s->batch && s->workers && s->workers <= SHARE_WORKERS_MAX;
    const bool is_sane = s->rows <= ROWS_MAX && s->batch <= BATCH_MAX && gradients <= UINT32_MAX;
    return is_known && is_sane && s->batch <= s->rows * epochs / gradients;
}

bool data_share_is_same(const struct data_share *a, const struct data_share *b)
{
    return a->rows == b->rows && a->batch == b->batch && a->workers == b->workers &&
           gradients_brought(a) == gradients_brought(b);
}

/* Own rows that so many pushes bring. */
static uint64_t own_rows(const struct data_share *s, int worker, uint64_t pushes)
{
    return pushes * s->batch * data_share_gradients(s, worker);
}

/* Own rows of all epochs before this one. */
static uint64_t own_before(const struct data_share *s, int worker, uint64_t epoch)
{
    const uint64_t round = s->batch * s->workers, position = epoch * s->rows;
    const uint64_t begin = (uint64_t)worker * s->batch, rest = position % round;
    const uint64_t of_rest = rest < begin ? 0 : rest - begin < s->batch ? rest - begin : s->batch;
    return position / round * s->batch + of_rest;
}

/* Which one an own row is of. */
static uint64_t epoch_of(const struct data_share *s, int worker, uint64_t row)
{
    const uint64_t batch = row / s->batch * s->workers + (uint64_t)worker;
    return (batch * s->batch + row % s->batch) / s->rows;
}

/* ---- counting ---- */

/* Own rows `row` .. `end` - 1. */
static void count(struct coverage *c, int worker, uint64_t row, uint64_t end)
{
    for (int i = 0; i <= COVERAGE_EPOCHS && row < end; i++) { /* a push has no more epochs */
        const uint64_t epoch = epoch_of(&c->share, worker, row);
        uint64_t next = own_before(&c->share, worker, epoch + 1);
        if (next > end) next = end;
        if (epoch < c->first)
            c->late += next - row;
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

bool coverage_is_full(const struct coverage *c, int worker, uint64_t sequence)
{
    const uint64_t last = own_rows(&c->share, worker, sequence) - 1;
    return epoch_of(&c->share, worker, last) >= c->first + COVERAGE_EPOCHS;
}

void coverage_apply(struct coverage *c, int worker, uint64_t sequence)
{
    const uint64_t begin = own_rows(&c->share, worker, sequence - 1);
    const uint64_t end = own_rows(&c->share, worker, sequence);
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

struct covered coverage_of_oldest(const struct coverage *c)
{
    return (struct covered){
        .epoch = c->first,
        .rows = c->share.rows,
        .applied = c->applied[0],
        .twice = c->twice,
        .lost = c->lost,
        .late = c->late,
        .total = c->total,
    };
}

struct covered coverage_close(struct coverage *c)
{
    const uint64_t applied = c->applied[0];
    const uint64_t rows = c->share.rows == DATA_ROWS_ENDLESS ? applied : c->share.rows;
    if (applied < rows)
        c->lost += rows - applied;
    else
        c->twice += applied - rows;
    const struct covered closed = coverage_of_oldest(c);
    c->first++;
    memmove(c->applied, c->applied + 1, sizeof c->applied - sizeof c->applied[0]);
    c->applied[COVERAGE_EPOCHS - 1] = 0;
    return closed;
}

uint64_t coverage_begin_anew(struct coverage *c, const struct data_share *share, uint64_t step,
                             struct ledger *ret)
{
    int open = COVERAGE_EPOCHS;
    while (open > 0 && c->applied[open - 1] == 0) open--;
    for (int i = 0; i < open; i++) coverage_close(c);
    c->share = *share;
    if (share->rows == DATA_ROWS_ENDLESS) c->first = 0;
    for (int w = 0; w < (int)share->workers; w++) {
        const uint64_t rows = own_before(share, w, c->first);
        const uint64_t pushes = rows / own_rows(share, w, 1);
        ret[w] = (struct ledger){.received = pushes, .taken = pushes, .taken_step = step};
    }
    return c->first;
}

/* Batches of the stream, of all workers, up to the last one that any of them has brought. */
static uint64_t batches_reached(const struct data_share *s, const struct ledger *ledgers)
{
    uint64_t most = 0;
    for (int w = 0; w < (int)s->workers; w++) {
        const uint64_t own = own_rows(s, w, ledgers[w].received) / s->batch;
        const uint64_t reached = own ? (own - 1) * s->workers + (uint64_t)w + 1 : 0;
        if (reached > most) most = reached;
    }
    return most;
}

/* Pushes of a worker that bring all its batches of so many. */
static uint64_t pushes_of_batches(const struct data_share *s, int worker, uint64_t batches)
{
    const uint64_t own = batches / s->workers + ((uint64_t)worker < batches % s->workers);
    const uint64_t per_push = data_share_gradients(s, worker);
    return (own + per_push - 1) / per_push;
}

static uint64_t all_rows(const struct data_share *s, const struct ledger *ledgers)
{
    uint64_t rows = 0;
    for (int w = 0; w < (int)s->workers; w++) rows += own_rows(s, w, ledgers[w].received);
    return rows;
}

uint64_t coverage_go_on(struct coverage *c, const struct data_share *share,
                        const struct ledger *before, uint64_t step, struct ledger *ret,
                        uint64_t *ret_left)
{
    const uint64_t rows = batches_reached(&c->share, before) * c->share.batch;
    const uint64_t batches = (rows + share->batch - 1) / share->batch;
    const uint64_t brought = all_rows(&c->share, before);
    const uint64_t behind = rows / share->rows - c->first;
    for (uint64_t i = 0; i < behind && i < COVERAGE_EPOCHS; i++) coverage_close(c);
    c->share = *share;
    for (int w = 0; w < (int)share->workers; w++) {
        const uint64_t pushes = pushes_of_batches(share, w, batches);
        ret[w] = (struct ledger){.received = pushes, .taken = pushes, .taken_step = step};
    }
    *ret_left = all_rows(share, ret) - brought;
    return c->first;
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

bool coverage_of(const int64_t numbers[COVERAGE_NUMBERS], struct coverage *ret)
{
    for (int i = 0; i < COVERAGE_NUMBERS; i++)
        if (numbers[i] < 0) return false;
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
    return !ret->share.rows || data_share_is_countable(&ret->share);
}

void covered_pack(const struct covered *c, uint64_t ret_numbers[COVERED_NUMBERS])
{
    const uint64_t numbers[COVERED_NUMBERS] = {c->epoch, c->rows, c->applied, c->twice,
                                               c->lost,  c->late, c->total};
    for (int i = 0; i < COVERED_NUMBERS; i++) ret_numbers[i] = htole64(numbers[i]);
}

bool covered_unpack(const struct message *m, struct covered *ret)
{
    uint64_t n[COVERED_NUMBERS];
    if (!m->body || m->body_bytes != sizeof n) return false;
    memcpy(n, m->body, sizeof n);
    for (int i = 0; i < COVERED_NUMBERS; i++) n[i] = le64toh(n[i]);
    *ret = (struct covered){n[0], n[1], n[2], n[3], n[4], n[5], n[6]};
    return true;
}
