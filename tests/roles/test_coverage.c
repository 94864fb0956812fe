/* test_coverage.c - rows of the stream, counted push by push: beside the same count row by row. */
#include "core/base/error.h" /* before cmocka, which has a macro of the name fail */
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
    for (uint64_t b = (sequence - 1) * gradients; b < sequence * gradients; b++)
        for (uint64_t i = 0; i < s->batch; i++) {
            const uint64_t at = (b * s->workers + (uint64_t)worker) * s->batch + i;
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
    {.rows = 1, .batch = 1, .workers = 1, .replicas = 1},
    {.rows = 10, .batch = 25, .workers = 2, .replicas = 1}, /* several epochs in a push */
};
enum { SHARES = sizeof shares / sizeof *shares };

/* Pushes of each worker that end in one of the first `epochs`. */
static uint64_t pushes_of(const struct data_share *s, int worker, uint64_t epochs)
{
    const uint64_t round = s->batch * s->workers * data_share_gradients(s, worker);
    return s->rows * epochs / round;
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
            const struct covered closed = coverage_close(&c);
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
            while (c.applied[0] == c.share.rows) coverage_close(&c);
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
    assert_int_equal(coverage_close(&c).applied, 48);
    assert_int_equal(c.lost, 12);
    for (uint64_t n = 1; n <= 4; n++) coverage_apply(&c, 4, n);
    assert_int_equal(c.late, 12);
    assert_int_equal(c.applied[0], 4);
    assert_int_equal(c.total, 64);
}

/* There is one epoch, of which nothing is lost that has not come; and whoever goes on with other
 * data, or comes from others, begins with the first of them. */
static void of_what_has_no_end_the_rows_that_came_are_counted(void **state)
{
    const struct data_share endless = {
        .rows = DATA_ROWS_ENDLESS, .batch = 4, .workers = 2, .replicas = 2};
    struct ledger ledgers[WORKERS];
    struct coverage c;
    assert_true(data_share_is_countable(&endless));
    coverage_begin(&c, &endless, NULL);
    for (uint64_t n = 1; n <= 1000; n++) coverage_apply(&c, (int)(n % 2), (n + 1) / 2);
    assert_int_equal(coverage_of_oldest(&c).applied, 4000);
    assert_int_equal(coverage_brought(&c, 0, 500) + coverage_brought(&c, 1, 500), 4000);
    assert_false(coverage_is_past(&c, 0, 500));
    assert_int_equal(coverage_begin_anew(&c, &shares[1], 9, ledgers), 1);
    assert_int_equal(c.lost + c.twice + c.late, 0);
    assert_int_equal(coverage_begin_anew(&c, &endless, 9, ledgers), 0);
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
        while (counted.applied[0] == counted.share.rows) coverage_close(&counted);
        coverage_begin(&told, &shares[k], ledgers);
        while (told.applied[0] == told.share.rows) coverage_close(&told);
        assert_int_equal(told.lost, 0);
        assert_memory_equal(&told, &counted, sizeof told);
    }
}

/* Whoever shares the rows from now on, all of the next epoch come once. */
static void another_share_begins_with_an_epoch(void **state)
{
    for (int from = 0; from < SHARES; from++)
        for (int to = 0; to < SHARES; to++) {
            struct coverage c;
            struct ledger ledgers[WORKERS];
            coverage_begin(&c, &shares[from], NULL);
            for (uint64_t n = 1; n <= 2; n++) coverage_apply(&c, 0, n);
            const uint64_t epoch = coverage_begin_anew(&c, &shares[to], 17, ledgers);
            assert_int_equal(c.total + c.lost, epoch * shares[from].rows);
            uint64_t n[WORKERS] = {0};
            for (int w = 0; w < (int)shares[to].workers; w++) {
                assert_int_equal(ledgers[w].taken_step, 17);
                n[w] = ledgers[w].received;
            }
            for (int w = 0; w < (int)shares[to].workers; w++)
                while (!coverage_is_past(&c, w, n[w])) coverage_apply(&c, w, ++n[w]);
            assert_int_equal(coverage_close(&c).applied, shares[to].rows);
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
                while (c.applied[0] == m.share.rows) coverage_close(&c);
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
    const struct covered told = coverage_close(&c);
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
    } changes[] = {{0, -1},        {1, 0}, {1, INT64_MAX}, {2, 0},  {2, INT64_MAX},
                   {3, INT64_MAX}, {0, 1}, {0, INT64_MAX}, {8, -1}, {COVERAGE_NUMBERS - 1, -1}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        memcpy(bad, good, sizeof bad);
        bad[changes[i].at] = changes[i].number;
        assert_false(coverage_of(bad, &read));
    }
}

/* For each of them there is memory: of a file it asks for no more than a job can have. */
static void a_share_of_more_workers_than_a_job_has_is_refused(void **state)
{
    struct data_share share = {.rows = 1 << 20, .batch = 1, .workers = SHARE_WORKERS_MAX};
    assert_true(data_share_is_countable(&share));
    share.workers++;
    assert_false(data_share_is_countable(&share));
    share.workers = UINT32_MAX;
    share.rows = UINT64_C(1) << 40;
    assert_false(data_share_is_countable(&share));
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
        cmocka_unit_test(another_number_of_workers_goes_on_behind_the_last_row),
        cmocka_unit_test(rows_in_front_of_the_last_one_are_left_out),
        cmocka_unit_test(a_push_of_several_batches_is_not_cut),
        cmocka_unit_test(a_share_is_the_same_where_pushes_are),
        cmocka_unit_test(numbers_are_read_as_they_were_written),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(a_share_of_more_workers_than_a_job_has_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
