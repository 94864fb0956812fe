/* The stream of batches: disjoint shares, whole epochs, restarts, and memory that is not copied. */
#include "tests/core/data/support.h"

#include "core/base/random.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS_MAX = 7, EPOCHS = 3, THREADS_MAX = 64 };

/* u8 features come through the thread, float ones in stored order straight from memory. */
struct way {
    enum dtype dtype;
    bool shuffle;
};
static const struct way ways[] = {{UINT8, true}, {UINT8, false}, {FLOAT32, true}, {FLOAT32, false}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static struct stream_options options_of(struct way way, int64_t batch)
{
    return (struct stream_options){
        .transform = {.scale = 1, .labels = {{.dtype = INT32}}, .label_count = 1},
        .batch = batch,
        .shuffle = way.shuffle,
        .key = 42,
        .workers = 1,
        .prefetch = 2,
    };
}

static struct batch_source *open_pipeline(const struct dataset *d, const struct stream_options *o)
{
    struct batch_source *p = NULL;
    assert_int_equal(source_begin(d, o, &p), OK);
    return p;
}

/* The rows of the next batch; features and labels must belong together. */
static void next_rows(struct batch_source *p, int64_t batch, int32_t *rows)
{
    struct batch b;
    assert_int_equal(p->calls->next(p, &b), OK);
    assert_int_equal(b.rows, batch);
    memcpy(rows, batch_labels(&b), (size_t)batch * sizeof *rows);
    for (int64_t i = 0; i < batch * COUNTED_WIDTH; i++) {
        int64_t wanted = rows[i / COUNTED_WIDTH] + i % COUNTED_WIDTH;
        assert_true(batch_features(&b)[i] == (float)wanted);
    }
}

/* The stream that all workers see together, from position 0. */
static void read_stream(const struct dataset *d, struct stream_options o, int workers,
                        int64_t count, int32_t *rows)
{
    struct batch_source *p[WORKERS_MAX];
    int32_t batch[COUNTED_ROWS_MAX];
    o.workers = workers;
    for (o.worker = 0; o.worker < workers; o.worker++) p[o.worker] = open_pipeline(d, &o);
    for (int64_t at = 0; at < count;) {
        for (int w = 0; w < workers; w++) {
            next_rows(p[w], o.batch, batch);
            for (int64_t i = 0; i < o.batch && at < count; i++) rows[at++] = batch[i];
        }
    }
    for (int w = 0; w < workers; w++) batch_source_close(p[w]);
}

static void assert_whole_epochs(const int32_t *rows, int64_t size)
{
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        bool seen[COUNTED_ROWS_MAX] = {false};
        for (int64_t i = 0; i < size; i++) {
            int32_t row = rows[epoch * size + i];
            assert_in_range(row, 0, size - 1);
            assert_false(seen[row]);
            seen[row] = true;
        }
    }
}

static void all_workers_together_read_every_row_once_per_epoch(void **state)
{
    static const int64_t sizes[] = {1, 2, 10, 42, 43, 210}, batches[] = {1, 3, 10, 64};
    static const int workers[] = {1, 2, 3, 7};
    struct counted memory;
    int32_t rows[EPOCHS * COUNTED_ROWS_MAX];
    for (int way = 0; way < WAYS; way++) {
        for (int s = 0; s < 6; s++) {
            struct dataset d = counted_dataset(&memory, ways[way].dtype, sizes[s]);
            for (int b = 0; b < 4; b++) {
                for (int w = 0; w < 4; w++) {
                    struct stream_options o = options_of(ways[way], batches[b]);
                    read_stream(&d, o, workers[w], EPOCHS * sizes[s], rows);
                    assert_whole_epochs(rows, sizes[s]);
                }
            }
        }
    }
}

static void workers_with_a_share_of_the_batch_see_what_one_worker_sees(void **state)
{
    enum { COUNT = 500, BATCH = 42 };
    struct counted memory;
    int32_t one[COUNT], many[COUNT];
    for (int way = 0; way < WAYS; way++) {
        struct dataset d = counted_dataset(&memory, ways[way].dtype, 101);
        read_stream(&d, options_of(ways[way], BATCH), 1, COUNT, one);
        for (int workers = 2; workers <= 7; workers++) {
            if (BATCH % workers) continue;
            read_stream(&d, options_of(ways[way], BATCH / workers), workers, COUNT, many);
            assert_memory_equal(one, many, sizeof one);
        }
    }
}

static void shuffling_draws_a_new_order_per_epoch_from_the_key(void **state)
{
    enum { SIZE = 200 };
    struct counted memory;
    struct dataset d = counted_dataset(&memory, UINT8, SIZE);
    struct stream_options o = options_of((struct way){UINT8, true}, 50);
    int32_t rows[3 * SIZE], other[3 * SIZE];
    read_stream(&d, o, 1, 3 * SIZE, rows);
    for (int i = 0; i < 3 * SIZE; i++) {
        uint64_t key = random_u64(o.key, (uint64_t)i / SIZE);
        assert_int_equal(rows[i], random_permute(key, SIZE, (uint64_t)i % SIZE));
    }
    assert_memory_not_equal(rows, rows + SIZE, SIZE * sizeof *rows);
    assert_memory_not_equal(rows + SIZE, rows + 2 * SIZE, SIZE * sizeof *rows);
    o.key++;
    read_stream(&d, o, 1, 3 * SIZE, other);
    assert_memory_not_equal(rows, other, SIZE * sizeof *rows);
}

static void without_shuffling_rows_come_as_stored(void **state)
{
    enum { SIZE = 30 };
    struct counted memory;
    int32_t rows[3 * SIZE];
    for (int dtype = 0; dtype < 2; dtype++) {
        struct way way = {dtype ? UINT8 : FLOAT32, false};
        struct dataset d = counted_dataset(&memory, way.dtype, SIZE);
        read_stream(&d, options_of(way, 7), 2, 3 * SIZE, rows);
        for (int i = 0; i < 3 * SIZE; i++) assert_int_equal(rows[i], i % SIZE);
    }
}

static void a_restored_run_goes_on_where_it_was(void **state)
{
    enum { BATCH = 9, BATCHES = 40 };
    struct counted memory;
    int32_t rows[BATCHES][BATCH], again[BATCH];
    for (int way = 0; way < WAYS; way++) {
        struct dataset d = counted_dataset(&memory, ways[way].dtype, 50);
        struct stream_options o = options_of(ways[way], BATCH);
        o.workers = 3;
        o.worker = 2;
        struct batch_source *p = open_pipeline(&d, &o);
        for (int i = 0; i < BATCHES; i++) next_rows(p, BATCH, rows[i]);
        batch_source_close(p);
        for (uint64_t first = 0; first < BATCHES; first++) {
            p = open_pipeline(&d, &o);
            assert_int_equal(p->calls->seek(p, first), OK);
            next_rows(p, BATCH, again);
            assert_memory_equal(again, rows[first], sizeof again);
            batch_source_close(p);
        }
    }
}

static void batches_say_their_index_and_epoch(void **state)
{
    struct counted memory;
    for (int way = 0; way < WAYS; way++) {
        struct dataset d = counted_dataset(&memory, ways[way].dtype, 50);
        struct stream_options o = options_of(ways[way], 20);
        o.workers = 2;
        o.worker = 1;
        const uint64_t first = UINT64_C(1) << 40;
        struct batch_source *p = open_pipeline(&d, &o);
        assert_int_equal(p->calls->seek(p, first), OK);
        for (uint64_t i = first; i < first + 20; i++) {
            struct batch b;
            assert_int_equal(p->calls->next(p, &b), OK);
            assert_int_equal(b.index, i);
            assert_int_equal(b.epoch, (2 * i + 1) * 20 / 50);
        }
        batch_source_close(p);
    }
}

static void stored_floats_in_stored_order_are_not_copied(void **state)
{
    struct counted memory;
    struct dataset d = counted_dataset(&memory, FLOAT32, 50);
    struct stream_options o = options_of((struct way){FLOAT32, false}, 20);
    struct batch_source *p = open_pipeline(&d, &o);
    struct batch b;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(p->calls->next(p, &b), OK);
        int row = i * 20 % 50;
        bool wraps = row + 20 > 50;
        assert_true((batch_features(&b) == memory.floats + row * COUNTED_WIDTH) == !wraps);
        assert_true((batch_labels(&b) == memory.labels + row) == !wraps);
        assert_int_equal(((const int32_t *)batch_labels(&b))[19], (row + 19) % 50);
    }
    batch_source_close(p);
}

/* 26 columns that nobody read cost two thirds of a run's time. */
static void columns_that_nobody_reads_are_nowhere(void **state)
{
    static const bool reads[] = {[LABELS] = false, [FEATURES] = true, false};
    struct counted memory;
    int32_t rows[8];
    for (int way = 0; way < WAYS; way++) {
        struct dataset d = counted_dataset(&memory, ways[way].dtype, 50);
        d.columns[2] = d.columns[FEATURES];
        d.columns[2].name = "other";
        d.column_count = 3;
        struct stream_options o = options_of(ways[way], 8);
        o.reads = reads;
        struct batch_source *p = open_pipeline(&d, &o);
        for (int i = 0; i < 20; i++) { /* some of which wrap */
            struct batch b;
            next_rows(p, 8, rows);
            assert_int_equal(p->calls->next(p, &b), OK);
            assert_int_equal(b.column_count, 3);
            assert_string_equal(b.columns[2].name, "other");
            assert_null(b.columns[2].at);
        }
        batch_source_close(p);
    }
}

static void labels_are_converted_in_every_way_of_reading(void **state)
{
    struct counted memory;
    for (int way = 0; way < WAYS; way++) {
        struct dataset d = counted_dataset(&memory, ways[way].dtype, 10);
        struct stream_options o = options_of(ways[way], 4);
        o.transform.labels[0].dtype = FLOAT32;
        struct batch_source *p = open_pipeline(&d, &o);
        for (int i = 0; i < 10; i++) {
            struct batch b;
            assert_int_equal(p->calls->next(p, &b), OK);
            for (int k = 0; k < 4; k++)
                assert_true(((const float *)batch_labels(&b))[k] ==
                            batch_features(&b)[k * COUNTED_WIDTH]);
        }
        batch_source_close(p);
    }
}

static void features_are_scaled_in_every_way_of_reading(void **state)
{
    struct counted memory;
    for (int way = 0; way < WAYS; way++) {
        struct dataset d = counted_dataset(&memory, ways[way].dtype, 10);
        struct stream_options o = options_of(ways[way], 4);
        o.transform.scale = 0.5f;
        o.transform.offset = -1;
        struct batch_source *p = open_pipeline(&d, &o);
        for (int i = 0; i < 10; i++) {
            struct batch b;
            assert_int_equal(p->calls->next(p, &b), OK);
            for (int k = 0; k < 4 * COUNTED_WIDTH; k++) {
                int row = ((const int32_t *)batch_labels(&b))[k / COUNTED_WIDTH];
                assert_true(batch_features(&b)[k] == 0.5f * (float)(row + k % COUNTED_WIDTH) - 1);
            }
        }
        batch_source_close(p);
    }
}

static void batches_that_lie_ready_are_counted(void **state)
{
    struct counted memory;
    struct batch b;
    for (int way = 0; way < WAYS; way++) {
        struct dataset d = counted_dataset(&memory, ways[way].dtype, 10);
        const struct stream_options o = options_of(ways[way], 4);
        const bool is_direct = ways[way].dtype == FLOAT32 && !ways[way].shuffle;
        struct batch_source *p = open_pipeline(&d, &o);
        assert_int_equal(p->calls->next(p, &b), OK);
        while (!is_direct && p->calls->ready(p) < o.prefetch) sched_yield();
        assert_int_equal(p->calls->ready(p), is_direct ? -1 : o.prefetch);
        batch_source_close(p);
    }
}

/* With any number of batches ready, the one in hand must stay as it is while the reader continues.
 */
static void a_batch_stays_until_the_next_is_asked_for(void **state)
{
    enum { BATCH = 16 };
    struct counted memory;
    struct dataset d = counted_dataset(&memory, UINT8, 200);
    for (int prefetch = 1; prefetch <= PREFETCH_MAX; prefetch *= 2) {
        struct stream_options o = options_of((struct way){UINT8, true}, BATCH);
        o.prefetch = prefetch;
        struct batch_source *p = open_pipeline(&d, &o);
        for (uint64_t i = 0; i < 300; i++) {
            struct batch b;
            assert_int_equal(p->calls->next(p, &b), OK);
            uint64_t position = i * BATCH + BATCH - 1;
            uint64_t key = random_u64(o.key, position / 200);
            int64_t row = (int64_t)random_permute(key, 200, position % 200);
            for (int look = 0; look < 50; look++) {
                assert_int_equal(((const int32_t *)batch_labels(&b))[BATCH - 1], row);
                assert_true(batch_features(&b)[(BATCH - 1) * COUNTED_WIDTH] == (float)row);
            }
        }
        batch_source_close(p);
    }
}

static void closing_ends_the_thread_wherever_it_is(void **state)
{
    struct counted memory;
    struct dataset d = counted_dataset(&memory, UINT8, 100);
    batch_source_close(NULL);
    for (int read = 0; read < 300; read++) {
        struct stream_options o = options_of((struct way){UINT8, true}, 10);
        struct batch_source *p = open_pipeline(&d, &o);
        int32_t rows[10];
        for (int i = 0; i < read % 7; i++) next_rows(p, 10, rows);
        batch_source_close(p);
    }
}

/* Of this process: their numbers. */
static int threads_now(long ret[THREADS_MAX])
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) && count < THREADS_MAX;)
        if (entry->d_name[0] != '.') ret[count++] = strtol(entry->d_name, NULL, 10);
    closedir(folder);
    return count;
}

static uint64_t blocked_signals(long thread)
{
    char path[64], line[256];
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", thread);
    FILE *status = fopen(path, "re");
    assert_non_null(status);
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "SigBlk: %llx", &blocked) == 1) break;
    fclose(status);
    return blocked;
}

static bool is_among(long thread, const long *threads, int count)
{
    for (int i = 0; i < count; i++)
        if (threads[i] == thread) return true;
    return false;
}

/* Threads of earlier pipelines may still be on their way out of the list. */
static void signals_are_not_for_the_thread_that_reads(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
    long before[THREADS_MAX], after[THREADS_MAX];
    int found = 0;
    struct counted memory;
    struct dataset d = counted_dataset(&memory, UINT8, 100);
    struct stream_options o = options_of((struct way){UINT8, true}, 10);
    const int count_before = threads_now(before);
    const uint64_t own = blocked_signals(getpid());
    struct batch_source *p = open_pipeline(&d, &o);
    const int count_after = threads_now(after);
    for (int i = 0; i < count_after; i++) {
        if (is_among(after[i], before, count_before)) continue;
        const uint64_t blocked = blocked_signals(after[i]);
        for (int s = 0; s < 4; s++) assert_true(blocked >> (signals[s] - 1) & 1);
        found++;
    }
    assert_int_equal(found, 1);
    assert_int_equal(blocked_signals(getpid()), own);
    batch_source_close(p);
}

static void what_cannot_be_read_is_refused_at_open(void **state)
{
    struct counted memory;
    struct batch_source *p = NULL;
    struct dataset d = counted_dataset(&memory, UINT8, 100);
    struct stream_options o = options_of((struct way){UINT8, true}, 10);
    o.transform.labels[0].rule = LABELS_CLASSES;
    o.transform.labels[0].classes = 99;
    assert_int_equal(source_begin(&d, &o, &p), ERR_INPUT);
    assert_non_null(strstr(error_text(), "label 99"));
    o.transform.labels[0].classes = 100;
    o.batch = 0;
    assert_int_equal(source_begin(&d, &o, &p), ERR_INPUT);
    o.batch = INT64_C(1) << 40;
    assert_int_equal(source_begin(&d, &o, &p), ERR_INPUT);
    o.batch = 10;
    o.prefetch = PREFETCH_MAX + 1;
    assert_int_equal(source_begin(&d, &o, &p), ERR_INPUT);
    assert_null(p);
}

static void a_place_beyond_the_stream_is_refused_and_nothing_changes(void **state)
{
    struct counted memory;
    int32_t rows[10];
    for (int way = 0; way < WAYS; way++) {
        struct dataset d = counted_dataset(&memory, ways[way].dtype, 100);
        struct stream_options o = options_of(ways[way], 10);
        o.shuffle = false;
        struct batch_source *p = open_pipeline(&d, &o);
        next_rows(p, 10, rows);
        assert_int_equal(p->calls->seek(p, UINT64_MAX), ERR_INPUT);
        assert_int_equal(p->calls->seek(p, UINT64_MAX / 3), ERR_INPUT);
        assert_non_null(strstr(error_text(), "beyond the stream"));
        next_rows(p, 10, rows);
        assert_int_equal(rows[0], 10);
        batch_source_close(p);
    }
}

/* Whatever lies ready and is being made then. */
static void a_sought_batch_comes_at_once(void **state)
{
    enum { BATCH = 7, SEEKS = 300 };
    struct counted memory;
    int32_t rows[BATCH];
    for (int way = 0; way < WAYS; way++) {
        struct dataset d = counted_dataset(&memory, ways[way].dtype, 50);
        const struct stream_options o = options_of(ways[way], BATCH);
        struct batch_source *p = open_pipeline(&d, &o);
        for (uint64_t i = 0; i < SEEKS; i++) {
            const uint64_t index = random_u64(7, i) % 1000;
            assert_int_equal(p->calls->seek(p, index), OK);
            for (uint64_t k = 0; k < i % 4; k++) {
                const uint64_t at = (index + k) * BATCH, key = random_u64(o.key, at / 50);
                next_rows(p, BATCH, rows);
                assert_int_equal(rows[0], o.shuffle ? random_permute(key, 50, at % 50) : at % 50);
            }
        }
        batch_source_close(p);
    }
}

/* Gradients that are summed: a round has so many batches, of which some workers read one more. */
static void rounds_of_any_size_read_every_row_once_per_epoch(void **state)
{
    enum { SIZE = 42, BATCH = 3, ALL = EPOCHS * SIZE };
    struct counted memory;
    for (int way = 0; way < WAYS; way++)
        for (int workers = 1; workers <= 4; workers++)
            for (int per_round = workers; per_round <= 9; per_round++) {
                struct dataset d = counted_dataset(&memory, ways[way].dtype, SIZE);
                struct stream_options o = options_of(ways[way], BATCH);
                int32_t rows[2 * ALL], one[BATCH * 9];
                int64_t at = 0;
                struct batch_source *p[WORKERS_MAX];
                o.workers = workers;
                o.per_round = per_round;
                for (o.worker = 0; o.worker < workers; o.worker++)
                    p[o.worker] = open_pipeline(&d, &o);
                while (at < ALL) /* round by round, batches by turns */
                    for (int b = 0; b < per_round; b++, at += BATCH) {
                        next_rows(p[b % workers], BATCH, one);
                        memcpy(&rows[at], one, BATCH * sizeof *one);
                    }
                assert_whole_epochs(rows, SIZE);
                for (int w = 0; w < workers; w++) batch_source_close(p[w]);
            }
}

/* What somebody else plans may change at any time, but for what was asked for. */
static void batches_come_as_they_are_planned(void **state)
{
    enum { SIZE = 101, BATCH = 5, NUMBERS = 60, PLANNED = 6 };
    struct counted memory;
    for (int way = 0; way < WAYS; way++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct dataset d = counted_dataset(&memory, ways[way].dtype, SIZE);
            const struct stream_options o = options_of(ways[way], BATCH);
            struct batch_source *p = open_pipeline(&d, &o);
            uint64_t of[NUMBERS + 2 * PLANNED], draws = 0, end = 0;
            int32_t rows[BATCH];
            for (uint64_t n = 0; n < NUMBERS; n++) {
                bool is_void = false;
                while (end <= n || random_u64(seed, draws++) % 3 == 0) { /* from n on, anew */
                    uint64_t ranges[2 * 2];
                    for (int i = 0; i < 2; i++) {
                        ranges[2 * i] = random_u64(seed, draws++) % 50;
                        ranges[2 * i + 1] = ranges[2 * i] + PLANNED / 2;
                        for (int k = 0; k < PLANNED / 2; k++)
                            of[n + (uint64_t)(i * PLANNED / 2 + k)] = ranges[2 * i] + (uint64_t)k;
                    }
                    end = n + PLANNED;
                    assert_int_equal(p->calls->plan(p, n, ranges, 2, &is_void), OK);
                    assert_false(is_void);
                }
                next_rows(p, BATCH, rows);
                for (int i = 0; i < BATCH; i++) {
                    const uint64_t at = of[n] * BATCH + (uint64_t)i;
                    const uint64_t key = random_u64(o.key, at / SIZE), row = at % SIZE;
                    assert_int_equal(rows[i], o.shuffle ? random_permute(key, SIZE, row) : row);
                }
            }
            batch_source_close(p);
        }
}

/* Of a batch that was taken ahead, and is another now, the taker hears. */
static void a_plan_that_changes_what_was_taken_says_so(void **state)
{
    struct counted memory;
    const uint64_t first[] = {3, 9}, same[] = {4, 9}, other[] = {4, 5, 20, 30};
    int32_t rows[5];
    for (int way = 0; way < WAYS; way++) {
        bool is_void = true;
        struct dataset d = counted_dataset(&memory, ways[way].dtype, 101);
        struct stream_options o = options_of(ways[way], 5);
        struct batch_source *p = open_pipeline(&d, &o);
        assert_int_equal(p->calls->plan(p, 0, first, 1, &is_void), OK);
        assert_false(is_void);
        for (int i = 0; i < 3; i++) next_rows(p, 5, rows);
        assert_int_equal(p->calls->plan(p, 1, same, 1, &is_void), OK);
        assert_false(is_void);
        assert_int_equal(p->calls->plan(p, 1, other, 2, &is_void), OK);
        assert_true(is_void);
        assert_int_equal(p->calls->seek(p, 2), OK);
        next_rows(p, 5, rows);
        assert_int_equal(p->calls->plan(p, 3, first, 1, &is_void), OK);
        for (int i = 0; i < 6; i++) next_rows(p, 5, rows);
        struct batch b; /* nobody has said what comes behind it */
        assert_int_equal(p->calls->ready(p), 0);
        assert_int_equal(p->calls->next(p, &b), ERR_PEER);
        batch_source_close(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_workers_together_read_every_row_once_per_epoch),
        cmocka_unit_test(workers_with_a_share_of_the_batch_see_what_one_worker_sees),
        cmocka_unit_test(shuffling_draws_a_new_order_per_epoch_from_the_key),
        cmocka_unit_test(without_shuffling_rows_come_as_stored),
        cmocka_unit_test(a_restored_run_goes_on_where_it_was),
        cmocka_unit_test(batches_say_their_index_and_epoch),
        cmocka_unit_test(stored_floats_in_stored_order_are_not_copied),
        cmocka_unit_test(columns_that_nobody_reads_are_nowhere),
        cmocka_unit_test(labels_are_converted_in_every_way_of_reading),
        cmocka_unit_test(features_are_scaled_in_every_way_of_reading),
        cmocka_unit_test(batches_that_lie_ready_are_counted),
        cmocka_unit_test(a_batch_stays_until_the_next_is_asked_for),
        cmocka_unit_test(closing_ends_the_thread_wherever_it_is),
        cmocka_unit_test(signals_are_not_for_the_thread_that_reads),
        cmocka_unit_test(what_cannot_be_read_is_refused_at_open),
        cmocka_unit_test(a_place_beyond_the_stream_is_refused_and_nothing_changes),
        cmocka_unit_test(a_sought_batch_comes_at_once),
        cmocka_unit_test(rounds_of_any_size_read_every_row_once_per_epoch),
        cmocka_unit_test(batches_come_as_they_are_planned),
        cmocka_unit_test(a_plan_that_changes_what_was_taken_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
