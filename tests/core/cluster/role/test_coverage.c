/* test_coverage.c - rows of the stream, counted push by push: beside the same count row by row. */
#include "core/base/error.h" /* before cmocka, which has a macro of the name fail */
#include "core/base/random.h"
#include "core/cluster/role/batch_queue.h"
#include "core/cluster/role/role.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { EPOCHS = 12, ROWS_MAX = 64, WORKERS = 5 };

/* How often each row of each epoch was used, as core/data/source.h says whose it is. */
struct model {
    struct data_share share;
    int used[EPOCHS][ROWS_MAX];
};

static void use(struct model *m, int worker, uint64_t sequence)
{
    const struct data_share *s = &m->share;
    const uint64_t gradients = data_share_gradients(s, worker);
    const uint64_t round = s->replicas > s->workers ? s->replicas : s->workers;
    for (uint64_t b = 0; b < gradients; b++)
        for (uint64_t i = 0; i < s->batch; i++) {
            const uint64_t in_round = b * s->workers + (uint64_t)worker;
            const uint64_t at = ((sequence - 1) * round + in_round) * s->batch + i;
            assert_true(at / s->rows < EPOCHS);
            m->used[at / s->rows][at % s->rows]++;
        }
}

static uint64_t rows_of(const struct model *m, uint64_t epoch)
{
    uint64_t rows = 0;
    for (uint64_t i = 0; i < m->share.rows; i++) rows += (uint64_t)m->used[epoch][i];
    return rows;
}

static const struct data_share shares[] = {
    {.rows = 7, .batch = 3, .workers = 2, .replicas = 2},
    {.rows = 60, .batch = 4, .workers = 5, .replicas = 5},
    {.rows = 61, .batch = 4, .workers = 3, .replicas = 3},
    {.rows = 50, .batch = 2, .workers = 3, .replicas = 8}, /* the first bring one more */
    {.rows = 64, .batch = 3, .workers = 2, .replicas = 5},
    {.rows = 33, .batch = 1, .workers = 5, .replicas = 7},
    {.rows = 1, .batch = 1, .workers = 1, .replicas = 1},
    {.rows = 10, .batch = 25, .workers = 2, .replicas = 1}, /* several epochs in a push */
};
enum { SHARES = sizeof shares / sizeof *shares };

/* Pushes of each worker that end in one of the first `epochs`. */
static uint64_t pushes_of(const struct data_share *s, int worker, uint64_t epochs)
{
    const uint64_t gradients = s->replicas > s->workers ? s->replicas : s->workers;
    return s->rows * epochs / (s->batch * gradients);
}

static void every_epoch_has_the_rows_that_were_used(void **state)
{
    for (int k = 0; k < SHARES; k++) {
        struct model model = {.share = shares[k]};
        struct coverage c;
        assert_true(data_share_is_countable(&shares[k]));
        coverage_begin(&c, &shares[k], NULL);
        uint64_t total = 0;
        for (int w = 0; w < (int)shares[k].workers; w++) { /* one behind the other */
            const uint64_t pushes = pushes_of(&shares[k], w, EPOCHS);
            for (uint64_t n = 1; n <= pushes; n++) {
                if (n % 5 == 2) continue; /* dropped */
                assert_false(coverage_is_full(&c, w, n));
                coverage_apply(&c, w, n);
                use(&model, w, n);
                total += shares[k].batch * data_share_gradients(&shares[k], w);
            }
        }
        assert_int_equal(c.total, total);
        for (uint64_t e = 0; e < EPOCHS; e++) {
            const struct covered closed = coverage_close(&c, NULL);
            assert_int_equal(closed.epoch, e);
            assert_int_equal(closed.rows, shares[k].rows);
            assert_int_equal(closed.applied, rows_of(&model, e));
        }
        assert_int_equal(c.lost, EPOCHS * shares[k].rows - total);
        assert_int_equal(c.twice + c.late, 0);
    }
}

/* Nobody has anything left for an epoch that all are past, and somebody has for one that is not. */
static void an_epoch_is_over_with_its_last_row(void **state)
{
    for (int k = 0; k < SHARES; k++) {
        struct coverage c;
        coverage_begin(&c, &shares[k], NULL);
        uint64_t pushed[WORKERS] = {0};
        for (uint64_t n = 1; n <= pushes_of(&shares[k], 0, EPOCHS); n++) {
            for (int w = 0; w < (int)shares[k].workers; w++) coverage_apply(&c, w, pushed[w] = n);
            bool all_past = true;
            for (int w = 0; w < (int)shares[k].workers; w++)
                all_past &= coverage_is_past(&c, w, pushed[w]);
            assert_true(!all_past || c.applied[0] == c.share.rows);
            assert_true(all_past || c.applied[0] < c.share.rows);
            while (c.applied[0] == c.share.rows) coverage_close(&c, NULL);
        }
        assert_int_equal(c.lost + c.twice + c.late, 0);
    }
}

static void what_comes_of_a_closed_epoch_is_late(void **state)
{
    struct coverage c;
    coverage_begin(&c, &shares[1], NULL); /* 60 rows, 5 workers, 4 at a time */
    for (uint64_t n = 1; n <= 3; n++)
        for (int w = 0; w < 4; w++) coverage_apply(&c, w, n);
    assert_int_equal(coverage_close(&c, NULL).applied, 48);
    assert_int_equal(c.lost, 12);
    for (uint64_t n = 1; n <= 4; n++) coverage_apply(&c, 4, n);
    assert_int_equal(c.late, 12);
    assert_int_equal(c.lost, 0);
    assert_int_equal(c.applied[0], 4);
    assert_int_equal(c.total, 64);
}

/* There is one epoch, of which nothing is lost that has not come; and whoever continues with other
 * data, or comes from others, begins with the first of them. */
static void of_what_has_no_end_the_rows_that_came_are_counted(void **state)
{
    const struct data_share endless = {
        .rows = DATA_ROWS_ENDLESS, .batch = 4, .workers = 2, .replicas = 2};
    struct ledger ledgers[WORKERS];
    struct coverage c;
    uint64_t left;
    assert_true(data_share_is_countable(&endless));
    coverage_begin(&c, &endless, NULL);
    for (uint64_t n = 1; n <= 1000; n++) coverage_apply(&c, (int)(n % 2), (n + 1) / 2);
    assert_int_equal(coverage_of_oldest(&c, NULL).applied, 4000);
    assert_int_equal(coverage_brought(&c, 0, 500) + coverage_brought(&c, 1, 500), 4000);
    assert_false(coverage_is_past(&c, 0, 500));
    assert_int_equal(coverage_begin_anew(&c, &shares[1], 9, ledgers, &left), 1);
    assert_int_equal(c.lost + c.twice + c.late, 0);
    assert_int_equal(coverage_begin_anew(&c, &endless, 9, ledgers, &left), 0);
    assert_int_equal(ledgers[0].taken + ledgers[1].taken, 0);
    assert_int_equal(c.applied[0], 0);
}

/* What a checkpoint without a count leads to is what was counted all the while. */
static void ledgers_tell_what_was_counted(void **state)
{
    for (int k = 0; k < SHARES; k++) {
        struct coverage counted, told;
        struct ledger ledgers[WORKERS] = {0};
        coverage_begin(&counted, &shares[k], NULL);
        for (int w = 0; w < (int)shares[k].workers; w++) {
            const uint64_t pushes = pushes_of(&shares[k], w, EPOCHS - 1) - (uint64_t)w % 2;
            for (uint64_t n = 1; n <= pushes; n++) coverage_apply(&counted, w, n);
            ledgers[w] = (struct ledger){.received = pushes, .taken = pushes};
        }
        while (counted.applied[0] == counted.share.rows) coverage_close(&counted, NULL);
        coverage_begin(&told, &shares[k], ledgers);
        while (told.applied[0] == told.share.rows) coverage_close(&told, NULL);
        assert_int_equal(told.lost, 0);
        assert_memory_equal(&told, &counted, sizeof told);
    }
}

/* Whoever shares the rows from now on, no row of an epoch that was begun before comes again, and
 * those of the next one come once but for less than a push of each worker. */
static void another_share_begins_with_an_epoch(void **state)
{
    for (int from = 0; from < SHARES; from++)
        for (int to = 0; to < SHARES; to++) {
            struct coverage c;
            struct ledger ledgers[WORKERS];
            uint64_t left;
            coverage_begin(&c, &shares[from], NULL);
            for (uint64_t n = 1; n <= 2; n++) coverage_apply(&c, 0, n);
            const uint64_t epoch = coverage_begin_anew(&c, &shares[to], 17, ledgers, &left);
            assert_int_equal(c.total + c.lost, epoch * shares[from].rows);
            const uint64_t cut = left - c.lost;
            assert_true(cut < shares[to].batch * (shares[to].replicas + shares[to].workers));
            uint64_t n[WORKERS] = {0};
            for (int w = 0; w < (int)shares[to].workers; w++) {
                assert_int_equal(ledgers[w].taken_step, 17);
                n[w] = ledgers[w].received;
            }
            for (int w = 0; w < (int)shares[to].workers; w++)
                while (!coverage_is_past(&c, w, n[w])) coverage_apply(&c, w, ++n[w]);
            assert_int_equal(c.late, 0);
            const uint64_t whole = cut < shares[to].rows ? shares[to].rows - cut : 0;
            assert_int_equal(coverage_close(&c, NULL).applied, whole);
        }
}

/* So many pushes of each worker, of all that are in the model and counted. */
static void push_all(struct model *m, struct coverage *c, struct ledger *ledgers,
                     const uint64_t *pushes)
{
    for (int w = 0; w < (int)m->share.workers; w++)
        for (uint64_t n = 0; n < pushes[w]; n++) {
            const uint64_t sequence = ++ledgers[w].received;
            ledgers[w].taken = sequence;
            use(m, w, sequence);
            coverage_apply(c, w, sequence);
        }
}

static void check_use(const struct model *m, int least, uint64_t epochs)
{
    for (uint64_t i = 0; i < epochs * m->share.rows; i++) {
        const int used = m->used[i / m->share.rows][i % m->share.rows];
        assert_in_range(used, least, 1);
    }
}

enum { OTHERS = 4 };
static const struct data_share others[OTHERS] = {
    {.rows = 61, .batch = 4, .workers = 3, .replicas = 3},
    {.rows = 61, .batch = 4, .workers = 1, .replicas = 1},
    {.rows = 61, .batch = 4, .workers = 5, .replicas = 5},
    {.rows = 61, .batch = 4, .workers = 2, .replicas = 2},
};

/* A run may end while a worker that others go on without is many epochs behind. */
static void all_epochs_that_are_open_are_told(void **state)
{
    struct coverage c;
    coverage_begin(&c, &others[3], NULL);
    const struct covered none = coverage_of_open(&c, NULL);
    assert_int_equal(none.epochs, 1);
    assert_int_equal(none.rows, 61);
    for (uint64_t n = 1; n <= 40; n++) coverage_apply(&c, 1, n); /* up to row 320 of the stream */
    const struct covered open = coverage_of_open(&c, NULL);
    assert_int_equal(open.epoch, 0);
    assert_int_equal(open.epochs, 6);
    assert_int_equal(open.rows, 6 * 61);
    assert_int_equal(open.applied, 160);
}

/* In step all have brought as many: then no row is left out, and none comes twice. */
static void another_number_of_workers_goes_on_behind_the_last_row(void **state)
{
    for (int from = 0; from < OTHERS; from++)
        for (int to = 0; to < OTHERS; to++)
            for (uint64_t steps = 0; steps < 9; steps++) {
                const uint64_t even[WORKERS] = {steps, steps, steps, steps, steps};
                const uint64_t on[WORKERS] = {9, 9, 9, 9, 9};
                struct model m = {.share = others[from]};
                struct ledger before[WORKERS] = {0}, after[WORKERS];
                struct coverage c;
                uint64_t left = 1;
                coverage_begin(&c, &m.share, NULL);
                push_all(&m, &c, before, even);
                coverage_go_on(&c, &others[to], before, 17, after, &left);
                assert_int_equal(left, 0);
                assert_int_equal(after[0].taken_step, 17);
                m.share = others[to];
                push_all(&m, &c, after, on);
                const uint64_t rows = 4 * steps * others[from].workers + 36 * m.share.workers;
                check_use(&m, 1, rows / m.share.rows);
                assert_int_equal(c.total, rows);
                while (c.applied[0] == m.share.rows) coverage_close(&c, NULL);
                assert_int_equal(c.first, rows / m.share.rows);
                assert_int_equal(c.lost + c.twice + c.late, 0);
            }
}

/* Out of step what slower workers had not brought is left out, and told. */
static void rows_in_front_of_the_last_one_are_left_out(void **state)
{
    const uint64_t uneven[WORKERS] = {7, 0, 30}, on[WORKERS] = {9, 9};
    struct model m = {.share = others[0]};
    struct ledger before[WORKERS] = {0}, after[WORKERS];
    struct coverage c;
    uint64_t left;
    coverage_begin(&c, &m.share, NULL);
    push_all(&m, &c, before, uneven);
    assert_int_equal(coverage_go_on(&c, &others[3], before, 37, after, &left), 360 / 61);
    assert_int_equal(left, 360 - 37 * 4);
    assert_int_equal(after[0].received + after[1].received, 90);
    m.share = others[3];
    push_all(&m, &c, after, on);
    check_use(&m, 0, EPOCHS);
    uint64_t missing = 0;
    for (uint64_t e = 0; e < 360 / 61; e++) missing += 61 - rows_of(&m, e);
    assert_int_equal(c.lost, missing);
    assert_int_equal(c.twice + c.late, 0);
}

/* Gradients that are summed are rows that stay together: a push begins behind all. */
static void a_push_of_several_batches_is_not_cut(void **state)
{
    const struct data_share sums = {.rows = 61, .batch = 4, .workers = 2, .replicas = 4};
    const uint64_t even[WORKERS] = {1, 1, 1};
    struct model m = {.share = others[0]};
    struct ledger before[WORKERS] = {0}, after[WORKERS];
    struct coverage c;
    uint64_t left;
    coverage_begin(&c, &m.share, NULL);
    push_all(&m, &c, before, even);
    coverage_go_on(&c, &sums, before, 1, after, &left);
    assert_int_equal(after[0].received, 1);
    assert_int_equal(after[1].received, 1);
    assert_int_equal(left, 4);
}

/* Backup workers come and go, and so does the order of updates: a push is of the same rows. */
static void a_share_is_the_same_where_pushes_are(void **state)
{
    const struct data_share plain = shares[2];
    struct data_share other = plain;
    other.replicas = 1;
    assert_true(data_share_is_same(&plain, &other));
    other.replicas = plain.workers + 1;
    assert_false(data_share_is_same(&plain, &other));
    other = plain;
    other.workers++;
    assert_false(data_share_is_same(&plain, &other));
}

static void numbers_are_read_as_they_were_written(void **state)
{
    int64_t numbers[COVERAGE_NUMBERS];
    uint64_t body[COVERED_NUMBERS];
    struct coverage c, read;
    coverage_begin(&c, &shares[2], NULL);
    for (uint64_t n = 1; n <= 9; n++) coverage_apply(&c, 1, n);
    const struct covered told = coverage_close(&c, NULL);
    coverage_numbers(&c, numbers);
    assert_true(coverage_of(numbers, &read));
    assert_memory_equal(&c, &read, sizeof c);
    covered_pack(&told, body);
    struct covered heard;
    struct message m = {.body = body, .body_bytes = sizeof body};
    assert_true(covered_unpack(&m, &heard));
    assert_memory_equal(&told, &heard, sizeof told);
    m.body_bytes--;
    assert_false(covered_unpack(&m, &heard));
}

/* From a file or another task: nothing that a division or a product could break on. */
static void numbers_that_cannot_be_are_refused(void **state)
{
    int64_t good[COVERAGE_NUMBERS], bad[COVERAGE_NUMBERS];
    struct coverage c, read;
    coverage_begin(&c, &shares[2], NULL);
    coverage_numbers(&c, good);
    static const struct {
        int at;
        int64_t number;
    } changes[] = {{0, -1},
                   {1, 0},
                   {1, INT64_MAX},
                   {2, 0},
                   {2, INT64_MAX},
                   {3, INT64_MAX},
                   {3, 0},
                   {0, INT64_MAX},
                   {8, -1},
                   {COVERAGE_NUMBERS - 1, -1},
                   {4, INT64_MAX},
                   {4, INT64_C(1) << 56},
                   {5, INT64_MAX},
                   {6, INT64_MAX},
                   {7, INT64_MAX},
                   {8, INT64_MAX},
                   {COVERAGE_NUMBERS - 1, INT64_MAX}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        memcpy(bad, good, sizeof bad);
        bad[changes[i].at] = changes[i].number;
        assert_false(coverage_of(bad, &read));
    }
}

/* A file that counts nothing may say anything of how it was shared. */
static void a_share_of_no_rows_is_none(void **state)
{
    static const struct data_share made_up[] = {
        {.workers = 1},
        {.batch = 1, .workers = 1},
        {.batch = 1, .workers = 2, .replicas = UINT64_C(1) << 32},
        {.batch = UINT64_C(1) << 28, .replicas = UINT64_C(1) << 56},
    };
    const struct torn_pushes torn[] = {{.lacking = 3, .more = 1}, {.lacking = 1}};
    (void)state;
    for (size_t i = 0; i < sizeof made_up / sizeof *made_up; i++) {
        const struct coverage written = {.share = made_up[i]};
        struct coverage read;
        int64_t numbers[COVERAGE_NUMBERS];
        coverage_numbers(&written, numbers);
        assert_true(coverage_of(numbers, &read));
        assert_int_equal(coverage_of_open(&read, NULL).rows, 0);
        assert_int_equal(data_share_torn(&read.share, torn, 2).lost, 0);
        assert_int_equal(data_share_torn(&written.share, torn, 2).lost, 0);
    }
    const struct data_share wraps = {
        .rows = 8, .batch = 1, .workers = 1, .replicas = UINT64_C(1) << 32};
    assert_int_equal(data_share_torn(&wraps, torn, 1).lost, 0);
}

/* For each of them there is memory: of a file it asks for no more than a job can have. */
static void a_share_of_more_workers_than_a_job_has_is_refused(void **state)
{
    struct data_share share = {
        .rows = 1 << 20, .batch = 1, .workers = SHARE_WORKERS_MAX, .replicas = 1};
    assert_true(data_share_is_countable(&share));
    share.workers++;
    assert_false(data_share_is_countable(&share));
    share.workers = UINT32_MAX;
    share.rows = UINT64_C(1) << 40;
    assert_false(data_share_is_countable(&share));
}

/* ---- epochs that are counted as one ---- */

static const struct data_share wide[] = {
    {.rows = 9, .batch = 64, .workers = 1, .replicas = 1},
    {.rows = 9, .batch = 64, .workers = 2, .replicas = 2},
    {.rows = 9, .batch = 64, .workers = 3, .replicas = 3},
    {.rows = 1, .batch = 100, .workers = 5, .replicas = 7},
    {.rows = 9, .batch = 2, .workers = 4, .replicas = 4}, /* and none of them is */
};
enum { WIDE = sizeof wide / sizeof *wide };

/* So many rounds of all. */
static uint64_t push_rounds(struct coverage *c, struct ledger *ledgers, uint64_t rounds)
{
    uint64_t rows = 0;
    for (uint64_t r = 0; r < rounds; r++)
        for (int w = 0; w < (int)c->share.workers; w++) {
            const uint64_t n = ++ledgers[w].received;
            for (int i = 0; i < COVERAGE_EPOCHS && coverage_is_full(c, w, n); i++)
                coverage_close(c, NULL);
            coverage_apply(c, w, n);
            rows += c->share.batch * data_share_gradients(&c->share, w);
        }
    return rows;
}

static uint64_t rows_open(const struct coverage *c)
{
    uint64_t rows = 0;
    for (int i = 0; i < COVERAGE_EPOCHS; i++) rows += c->applied[i];
    return rows;
}

/* Whatever a step takes of the rows, and whoever continues: what was used is counted, and where the
 * stream continues from there nothing comes twice or is lost. */
static void many_small_epochs_are_counted(void **state)
{
    for (int from = 0; from < WIDE; from++)
        for (int to = 0; to < WIDE; to++) {
            struct coverage c;
            struct ledger before[WORKERS] = {0}, after[WORKERS] = {0};
            uint64_t left;
            struct data_share other = wide[to];
            other.rows = wide[from].rows;
            other.batch = wide[from].batch;
            assert_true(data_share_is_countable(&wide[from]));
            coverage_begin(&c, &wide[from], NULL);
            uint64_t used = push_rounds(&c, before, 10);
            assert_int_equal(c.total, used);
            assert_int_equal(coverage_missing(&c, used), 0);
            coverage_go_on(&c, &other, before, 10, after, &left);
            used += push_rounds(&c, after, 7);
            assert_int_equal(c.total, used);
            if (data_share_gradients(&other, 0) == 1) assert_int_equal(left, 0);
            assert_true(c.lost <= left && c.twice + c.late == 0);
            assert_int_equal(c.first * data_share_rows(&other) + rows_open(&c) - c.lost, used);
            const struct covered told = coverage_of_oldest(&c, NULL);
            assert_int_equal(told.rows, told.epochs * other.rows);
            assert_int_equal(told.epoch, c.first * told.epochs);
        }
}

/* At the end of a job: a worker that was left out of a round lacks that one. */
static void what_nobody_brought_is_missing(void **state)
{
    struct coverage c;
    struct ledger ledgers[WORKERS] = {0};
    coverage_begin(&c, &shares[1], NULL);
    push_rounds(&c, ledgers, 2);
    for (int w = 0; w < 4; w++) coverage_apply(&c, w, ++ledgers[w].received);
    uint64_t reached = 0;
    for (int w = 0; w < 5; w++) {
        const uint64_t end = coverage_reached(&c, w, ledgers[w].received);
        if (end > reached) reached = end;
    }
    assert_int_equal(coverage_missing(&c, reached), 0); /* the last one may still come */
    for (int w = 0; w < 4; w++) coverage_apply(&c, w, ++ledgers[w].received);
    reached = coverage_reached(&c, 3, ledgers[3].received);
    assert_int_equal(coverage_missing(&c, reached), 4);
}

/* ---- batches that are handed out ---- */

enum { HANDED = 400, TEAM = 5, GAMES = 300 };

/* Workers come, compute, lose their tickets, are gone for good; the queue goes through a
 * checkpoint, perhaps to another number of them. */
struct game {
    uint64_t key, draws, last, done, again;
    struct batch_queue queue;
    int used[HANDED];
};

static uint64_t draw(struct game *g, uint64_t below)
{
    return random_u64(g->key, g->draws++) % below;
}

static uint64_t room_of(const struct game *g)
{
    const uint64_t open = batch_queue_open_batches(&g->queue), left = g->last - g->done;
    return left > open ? left - open : 0;
}

static void open_game(struct game *g, int workers)
{
    assert_true(batch_queue_open(&g->queue, workers, 1 + (int)draw(g, 12)));
    if (draw(g, 2)) batch_queue_hand_out_stretches(&g->queue, 1 + (int)draw(g, 60));
}

static void move(struct game *g)
{
    int64_t numbers[2 + 2 * TEAM + 2 * HANDED];
    const uint64_t oldest = batch_queue_oldest(&g->queue), front = g->queue.front;
    const uint64_t open = batch_queue_open_batches(&g->queue);
    const int count = batch_queue_count(&g->queue);
    assert_in_range(count, 2, (int)(sizeof numbers / sizeof *numbers));
    batch_queue_numbers(&g->queue, numbers);
    batch_queue_free(&g->queue);
    open_game(g, 1 + (int)draw(g, TEAM));
    assert_true(batch_queue_read(&g->queue, numbers, count));
    assert_int_equal(batch_queue_oldest(&g->queue), oldest);
    assert_int_equal(batch_queue_open_batches(&g->queue), open);
    assert_int_equal(g->queue.front, front);
}

/* As ps/0 does it. */
static void turn(struct game *g)
{
    const int w = (int)draw(g, (uint64_t)g->queue.workers);
    struct batch_plan *plan = &g->queue.plans[w];
    switch (draw(g, 16)) {
    case 0: /* its ticket comes back, and it is gone */
        plan->is_committed = false;
        batch_queue_give_back(&g->queue, w);
        return;
    case 1: /* it is gone with its ticket */
        batch_queue_give_back(&g->queue, w);
        return;
    case 2: /* its gradient is dropped */
        if (plan->is_committed && !plan->again)
            batch_queue_put_back(&g->queue, batch_queue_take(&g->queue, w));
        return;
    case 3:
        move(g);
        return;
    case 4: /* others get what its ticket was for */
        plan->is_committed = false;
        batch_queue_lose(&g->queue, w);
        return;
    case 5: /* it is back, and other ps have that */
        if (plan->is_committed || !plan->lost) return;
        batch_queue_reclaim(&g->queue, w);
        plan->is_committed = true;
        return;
    default:
        break;
    }
    if (plan->is_committed) {
        const bool is_again = plan->again;
        g->used[batch_queue_take(&g->queue, w)]++;
        g->again += is_again;
        g->done += !is_again;
    } else {
        plan->is_committed = batch_queue_plan(&g->queue, w, room_of(g));
    }
}

static void each_batch_is_used_once_whoever_works(void **state)
{
    for (uint64_t seed = 0; seed < GAMES; seed++) {
        struct game g = {.key = random_u64(77, seed)};
        g.last = 1 + draw(&g, HANDED);
        open_game(&g, 1 + (int)draw(&g, TEAM));
        for (int turns = 0; turns < 200000 && g.done < g.last; turns++) {
            turn(&g);
            if (batch_queue_check(&g.queue)) fail_msg("%s", batch_queue_check(&g.queue));
        }
        assert_int_equal(g.done, g.last);
        assert_int_equal(batch_queue_oldest(&g.queue), g.last);
        uint64_t again = 0;
        for (uint64_t b = 0; b < HANDED; b++) {
            assert_true((g.used[b] > 0) == (b < g.last));
            again += (uint64_t)(g.used[b] > 1 ? g.used[b] - 1 : 0);
        }
        assert_int_equal(again, g.again); /* of those alone that others had brought already */
        assert_int_equal(batch_queue_used(&g.queue, 3, 0, 3 * HANDED), 3 * g.last);
        batch_queue_free(&g.queue);
    }
}

/* A push that only some ps have is of the rows that it was of, in the worker's next life, too. */
static void a_plan_begins_with_what_was_pushed_last(void **state)
{
    struct batch_queue q;
    uint64_t told[PLAN_NUMBERS_MAX];
    int first;
    assert_true(batch_queue_open(&q, 2, 4));
    assert_true(batch_queue_plan(&q, 0, 100));
    assert_int_equal(batch_queue_tell(&q, 0, told, &first), 2);
    assert_int_equal(first, 1); /* no push came before */
    assert_int_equal(told[1] - told[0], 4);
    q.plans[0].is_committed = true;
    assert_int_equal(batch_queue_take(&q, 0), told[0]);
    assert_int_equal(batch_queue_tell(&q, 0, told, &first), 4);
    assert_int_equal(first, 0);
    assert_int_equal(told[1], told[2]);
    assert_true(q.plans[0].is_told);
    assert_true(batch_queue_plan(&q, 1, 0)); /* nothing is left but the other one's */
    assert_false(q.plans[0].is_told);
    assert_null(batch_queue_check(&q));
    batch_queue_free(&q);
}

/* Whoever reads a part of a stretch reads all of it. */
static void stretches_are_handed_out_whole(void **state)
{
    enum { STRETCH = 10, PLANS = 8 };
    struct batch_queue q;
    assert_true(batch_queue_open(&q, PLANS, 4));
    batch_queue_hand_out_stretches(&q, STRETCH);
    q.front = 3;
    for (int w = 0; w < PLANS; w++) {
        assert_true(batch_queue_plan(&q, w, 1000));
        const struct batch_plan *plan = &q.plans[w];
        assert_int_equal(plan->count, 1);
        assert_int_equal(plan->at[0].end % STRETCH, 0);
        assert_true(w == 0 || plan->at[0].begin % STRETCH == 0);
        assert_true(plan->at[0].end - plan->at[0].begin > STRETCH); /* the next one is known, too */
    }
    for (int i = 0; i < STRETCH; i++) {
        const uint64_t end = q.plans[1].at[0].end;
        q.plans[1].is_committed = batch_queue_plan(&q, 1, 1000);
        assert_int_equal(q.plans[1].at[0].end, end);
        batch_queue_take(&q, 1);
    }
    assert_true(batch_queue_plan(&q, 1, 1000)); /* and the one behind that, before it begins */
    assert_int_equal(q.plans[1].count, 2);
    assert_int_equal(q.plans[1].at[1].end - q.plans[1].at[1].begin, STRETCH);
    batch_queue_free(&q);
}

/* Where most gradients are dropped what waits is of one batch each; it stays little enough to be
 * kept in a checkpoint. */
static void what_was_dropped_goes_first(void **state)
{
    enum { STRETCH = 100000, TURNS = 50000 };
    struct batch_queue q;
    assert_true(batch_queue_open(&q, 2, 4));
    batch_queue_hand_out_stretches(&q, STRETCH);
    for (int i = 0; i < TURNS; i++) {
        const int w = i / 2 % 2;
        assert_true(batch_queue_plan(&q, w, UINT64_C(1) << 40));
        const uint64_t batch = batch_queue_take(&q, w);
        if (i % 2) batch_queue_put_back(&q, batch);
        assert_in_range(batch_queue_count(&q), 1, QUEUE_NUMBERS_MAX / 8);
    }
    assert_null(batch_queue_check(&q));
    batch_queue_free(&q);
}

/* Whoever comes to the end says where it is; what others have not come to before it is left. */
static void data_that_came_have_an_end(void **state)
{
    struct batch_queue q;
    assert_true(batch_queue_open(&q, 2, 4));
    assert_true(batch_queue_plan(&q, 0, 1000)); /* 0 .. 3 */
    assert_true(batch_queue_plan(&q, 1, 1000)); /* 4 .. 7 */
    q.plans[0].is_committed = q.plans[1].is_committed = true;
    assert_false(batch_queue_has_rest(&q));
    batch_queue_set_end(&q, 3); /* as who has 4 finds */
    q.plans[1].is_committed = false;
    batch_queue_give_back(&q, 1);
    assert_int_equal(batch_queue_take(&q, 0), 0);
    q.plans[0].is_committed = false; /* and is gone */
    for (uint64_t b = 1; b < 3; b++) {
        assert_true(batch_queue_has_rest(&q));
        assert_true(batch_queue_plan(&q, 1, 1000));
        assert_int_equal(batch_queue_take(&q, 1), b);
    }
    assert_false(batch_queue_has_rest(&q));
    assert_false(batch_queue_plan(&q, 1, 1000));
    assert_int_equal(batch_queue_oldest(&q), 3); /* of which there may be more in the next run */
    assert_null(batch_queue_check(&q));
    batch_queue_free(&q);
}

/* A worker that stands still keeps the one that it computes, and nothing else for long. */
static void who_stands_still_keeps_one_batch(void **state)
{
    struct batch_queue q;
    assert_true(batch_queue_open(&q, 2, 4));
    assert_true(batch_queue_plan(&q, 0, 1000));
    q.plans[0].is_committed = true;
    for (int i = 0; i < 60; i++) {
        assert_true(batch_queue_plan(&q, 1, 1000));
        q.plans[1].is_committed = true;
        batch_queue_take(&q, 1);
    }
    assert_int_equal(q.plans[0].count, 1);
    assert_int_equal(q.plans[0].at[0].end - q.plans[0].at[0].begin, 1);
    assert_int_equal(batch_queue_oldest(&q), q.plans[0].at[0].begin);
    assert_int_equal(batch_queue_used(&q, 1, 0, 60), 59);
    batch_queue_free(&q);
}

/* To a queue nothing is lost on the way that somebody has not brought. */
static void what_slow_workers_lack_is_handed_out(void **state)
{
    const struct data_share one = {.rows = 61, .batch = 4, .workers = 1};
    const uint64_t uneven[WORKERS] = {7, 0, 30};
    struct model m = {.share = others[0]};
    struct ledger before[WORKERS] = {0};
    struct coverage c;
    struct batch_queue q;
    coverage_begin(&c, &m.share, NULL);
    push_all(&m, &c, before, uneven);
    assert_true(batch_queue_open(&q, 2, 4));
    assert_true(coverage_to_queue(&c, &one, before, &q));
    assert_int_equal(q.front, 90);
    assert_int_equal(batch_queue_open_batches(&q), 90 - 37);
    for (uint64_t done = 37; done < 90; done++) {
        assert_true(batch_queue_plan(&q, 0, 0));
        const uint64_t batch = batch_queue_take(&q, 0);
        for (uint64_t at = batch * 4; at < batch * 4 + 4; at++) m.used[at / 61][at % 61]++;
        coverage_apply_batch(&c);
        while (coverage_has_all(&c, &q)) coverage_close(&c, &q);
    }
    check_use(&m, 1, 360 / 61);
    assert_int_equal(c.total, 360);
    assert_int_equal(c.first, 360 / 61);
    assert_int_equal(c.lost + c.twice + c.late, 0);
    assert_int_equal(coverage_of_oldest(&c, &q).applied, 360 % 61);
    batch_queue_free(&q);
}

/* Nor is anything of a batch that was handed out, where none behind it was used. */
static void behind_the_last_that_was_used_nothing_is_left_out(void **state)
{
    const struct data_share one = {.rows = 61, .batch = 4, .workers = 1};
    const struct data_share larger = {.rows = 61, .batch = 8, .workers = 1};
    struct ledger after[WORKERS];
    struct coverage c;
    struct batch_queue q;
    uint64_t left;
    coverage_begin(&c, &one, NULL);
    assert_true(batch_queue_open(&q, 2, 4));
    for (int i = 0; i < 20; i++) {
        assert_true(batch_queue_plan(&q, 1, 100));
        batch_queue_take(&q, 1);
        coverage_apply_batch(&c);
        while (coverage_has_all(&c, &q)) coverage_close(&c, &q);
    }
    assert_true(batch_queue_plan(&q, 0, 100));
    assert_true(batch_queue_plan(&q, 1, 100));
    batch_queue_give_back(&q, 0);
    assert_true(q.front > 20);
    assert_int_equal(batch_queue_reached(&q), 20);
    const struct covered open = coverage_of_open(&c, &q);
    assert_int_equal(open.epoch + open.epochs, (q.front * 4 + 60) / 61);
    assert_int_equal(open.applied, 80 - 61);
    coverage_from_queue(&c, &larger, &q, 20, after, &left);
    assert_int_equal(left, 0);
    assert_int_equal(after[0].received, 10);
    batch_queue_free(&q);
}

/* What is open in a queue cannot be shared: it is left out, and told. */
static void what_is_open_is_left_out_of_shares(void **state)
{
    const struct data_share one = {.rows = 61, .batch = 4, .workers = 1};
    struct ledger after[WORKERS];
    struct coverage c;
    struct batch_queue q;
    uint64_t left;
    coverage_begin(&c, &one, NULL);
    assert_true(batch_queue_open(&q, 2, 4));
    assert_true(batch_queue_plan(&q, 0, 100));
    for (int i = 0; i < 40; i++) { /* 160 rows, of which 4 batches are not used */
        assert_true(batch_queue_plan(&q, 1, 100));
        q.plans[0].is_committed = q.plans[1].is_committed = true;
        batch_queue_take(&q, 1);
        coverage_apply_batch(&c);
    }
    const uint64_t front = q.front * 4, open = batch_queue_open_batches(&q) * 4;
    assert_int_equal(front - open, 160);
    coverage_from_queue(&c, &others[3], &q, 40, after, &left);
    assert_int_equal(left, open + (after[0].received + after[1].received) * 4 - front);
    assert_int_equal(c.first * 61 + rows_open(&c) - c.lost, 160);
    batch_queue_free(&q);
}

static void numbers_that_are_no_queue_are_refused(void **state)
{
    static const int64_t good[] = {9, 2, 3, 8, 0, 0, 1, 2, 4, 6};
    static const struct {
        int at;
        int64_t number;
    } changes[] = {{0, 5},  {0, -1}, {1, 0},         {1, 5}, {3, 2}, {3, 11},
                   {6, -1}, {6, 3},  {7, INT64_MAX}, {8, 1}, {9, 10}};
    enum { COUNT = sizeof good / sizeof *good };
    struct batch_queue q;
    assert_true(batch_queue_open(&q, 2, 4));
    assert_true(batch_queue_read(&q, good, COUNT));
    assert_int_equal(batch_queue_open_batches(&q), 4);
    assert_int_equal(q.plans[0].at[0].begin, 7);
    assert_false(batch_queue_read(&q, good, COUNT - 1));
    assert_false(batch_queue_read(&q, good, 1));
    batch_queue_free(&q);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        int64_t bad[COUNT];
        memcpy(bad, good, sizeof bad);
        bad[changes[i].at] = changes[i].number;
        assert_true(batch_queue_open(&q, 2, 4));
        if (batch_queue_read(&q, bad, COUNT)) fail_msg("change %zu", i);
        batch_queue_free(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_epoch_has_the_rows_that_were_used),
        cmocka_unit_test(an_epoch_is_over_with_its_last_row),
        cmocka_unit_test(of_what_has_no_end_the_rows_that_came_are_counted),
        cmocka_unit_test(what_comes_of_a_closed_epoch_is_late),
        cmocka_unit_test(ledgers_tell_what_was_counted),
        cmocka_unit_test(another_share_begins_with_an_epoch),
        cmocka_unit_test(all_epochs_that_are_open_are_told),
        cmocka_unit_test(behind_the_last_that_was_used_nothing_is_left_out),
        cmocka_unit_test(another_number_of_workers_goes_on_behind_the_last_row),
        cmocka_unit_test(rows_in_front_of_the_last_one_are_left_out),
        cmocka_unit_test(a_push_of_several_batches_is_not_cut),
        cmocka_unit_test(a_share_is_the_same_where_pushes_are),
        cmocka_unit_test(numbers_are_read_as_they_were_written),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(a_share_of_no_rows_is_none),
        cmocka_unit_test(a_share_of_more_workers_than_a_job_has_is_refused),
        cmocka_unit_test(many_small_epochs_are_counted),
        cmocka_unit_test(what_nobody_brought_is_missing),
        cmocka_unit_test(each_batch_is_used_once_whoever_works),
        cmocka_unit_test(a_plan_begins_with_what_was_pushed_last),
        cmocka_unit_test(who_stands_still_keeps_one_batch),
        cmocka_unit_test(stretches_are_handed_out_whole),
        cmocka_unit_test(data_that_came_have_an_end),
        cmocka_unit_test(what_was_dropped_goes_first),
        cmocka_unit_test(what_slow_workers_lack_is_handed_out),
        cmocka_unit_test(what_is_open_is_left_out_of_shares),
        cmocka_unit_test(numbers_that_are_no_queue_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
