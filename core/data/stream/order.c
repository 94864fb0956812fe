/* order.c - see order.h. */
#include "core/data/stream/order.h"

#include <stdlib.h>

#include "core/base/random.h"

static const uint64_t NO_EPOCH = UINT64_MAX;

err order_open(struct order *o)
{
    o->turns = calloc((size_t)o->count, sizeof *o->turns);
    o->before = calloc((size_t)o->count + 1, sizeof *o->before);
    o->epoch = NO_EPOCH;
    return o->turns && o->before ? OK : fail(ERR_MEMORY, "no memory for the order of rows");
}

void order_close(struct order *o)
{
    free(o->turns);
    free(o->before);
    *o = (struct order){0};
}

/* ---- shares ---- */

/* How many of the positions before this one belong to the worker. */
static uint64_t own_before(const struct order *o, int worker, uint64_t position)
{
    const uint64_t batch = (uint64_t)o->batch, workers = (uint64_t)o->workers;
    const uint64_t turn = batch * workers, round = batch * (uint64_t)o->per_round;
    const uint64_t of_round =
        (uint64_t)o->per_round / workers + ((uint64_t)worker < (uint64_t)o->per_round % workers);
    const uint64_t in_round = position % round, begin = batch * (uint64_t)worker;
    const uint64_t rest = in_round % turn, part = rest > begin ? rest - begin : 0;
    return (position / round * of_round + in_round / turn) * batch + (part < batch ? part : batch);
}

static uint64_t begin_of(const struct order *o, uint64_t epoch)
{
    return o->first + epoch * (uint64_t)o->rows;
}

static int64_t share(const struct order *o, int worker, uint64_t epoch)
{
    const uint64_t begin = begin_of(o, epoch), end = begin + (uint64_t)o->rows;
    return (int64_t)(own_before(o, worker, end) - own_before(o, worker, begin));
}

/* ---- buffers ---- */

static uint64_t buffer_key(const struct order *o, struct buffer_number n)
{
    const uint64_t of_worker = random_u64(random_u64(o->key, n.epoch), (uint64_t)o->worker);
    return random_u64(of_worker, (uint64_t)n.buffer);
}

/* How many rows of an epoch's first buffer belong to the epoch before. */
static int64_t rows_before(const struct order *o, uint64_t epoch)
{
    return o->is_even ? (int64_t)(begin_of(o, epoch) % (uint64_t)o->buffer_rows) : 0;
}

/* Index in the worker's stretch of the buffer's first row. */
static int64_t begin_of_buffer(const struct order *o, struct buffer_number n)
{
    return n.buffer ? n.buffer * o->buffer_rows - rows_before(o, n.epoch) : 0;
}

int64_t order_buffer_rows(const struct order *o, struct buffer_number n)
{
    const int64_t end = begin_of_buffer(o, (struct buffer_number){n.epoch, n.buffer + 1});
    const int64_t all = share(o, o->worker, n.epoch);
    return (end < all ? end : all) - begin_of_buffer(o, n);
}

uint64_t order_buffer_end(const struct order *o, struct buffer_number n)
{
    return begin_of(o, n.epoch) + (uint64_t)(begin_of_buffer(o, n) + order_buffer_rows(o, n));
}

void order_rows(const struct order *o, struct buffer_number n, int64_t first, int64_t count,
                int64_t *ret)
{
    const uint64_t key = buffer_key(o, n), rows = (uint64_t)order_buffer_rows(o, n);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t place = (uint64_t)(first + i);
        ret[i] = (int64_t)(o->shuffle ? random_permute(key, rows, place) : place);
    }
}

struct buffer_number order_buffer(const struct order *o, uint64_t position, int64_t *ret_row)
{
    const uint64_t epoch = (position - o->first) / (uint64_t)o->rows, begin = begin_of(o, epoch);
    const uint64_t own = own_before(o, o->worker, position) - own_before(o, o->worker, begin);
    const int64_t buffer = ((int64_t)own + rows_before(o, epoch)) / o->buffer_rows;
    const struct buffer_number n = {epoch, buffer};
    *ret_row = (int64_t)own - begin_of_buffer(o, n);
    return n;
}

/* A worker may have no rows in a small epoch: then continues with the next epoch. */
bool order_next(const struct order *o, struct buffer_number n, struct buffer_number *ret)
{
    n.buffer++;
    while (order_buffer_rows(o, n) <= 0) {
        if (o->is_once) return false;
        n = (struct buffer_number){n.epoch + 1, 0};
    }
    *ret = n;
    return true;
}

/* ---- the passages of a buffer ---- */

static void arrange(struct order *o, uint64_t epoch)
{
    const uint64_t key = random_u64(o->key, epoch);
    if (o->epoch == epoch) return;
    for (int64_t i = 0; i < o->count; i++) {
        const uint64_t count = (uint64_t)o->count, place = (uint64_t)i;
        o->turns[i] = o->shuffle ? (int64_t)random_permute(key, count, place) : i;
        o->before[i + 1] = o->before[i] + o->units[o->turns[i]].rows;
    }
    o->epoch = epoch;
}

/* Index in o->turns of the unit with this row of the epoch. */
static int64_t turn_of(const struct order *o, int64_t row)
{
    int64_t from = 0, to = o->count;
    while (to - from > 1) {
        const int64_t middle = (from + to) / 2;
        if (o->before[middle] <= row)
            from = middle;
        else
            to = middle;
    }
    return from;
}

static struct passage passage_of(const struct order *o, int64_t turn, int64_t begin, int64_t end)
{
    const struct unit *unit = &o->units[o->turns[turn]];
    const int64_t before = o->before[turn], after = o->before[turn + 1];
    const int64_t from = before > begin ? before : begin, to = after < end ? after : end;
    return (struct passage){unit->file, unit->first + from - before, to - from, from - begin};
}

err order_passages(struct order *o, struct buffer_number n, struct passage **passages,
                   int64_t *ret_count)
{
    int64_t begin = begin_of_buffer(o, n);
    for (int w = 0; w < o->worker; w++) begin += share(o, w, n.epoch);
    const int64_t end = begin + order_buffer_rows(o, n);
    arrange(o, n.epoch);
    const int64_t first = turn_of(o, begin), count = turn_of(o, end - 1) - first + 1;
    free(*passages);
    *passages = calloc((size_t)count, sizeof **passages);
    if (!*passages) return fail(ERR_MEMORY, "no memory for the order of rows");
    for (int64_t i = 0; i < count; i++) (*passages)[i] = passage_of(o, first + i, begin, end);
    *ret_count = count;
    return OK;
}
