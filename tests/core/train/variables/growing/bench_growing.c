/* bench_growing.c - a table that grows, against the same rows without a table: gathered and updated
 * by their numbers, in memory of the same size, in the same run.
 *
 *   grow     rows are made by updates that see their keys for the first time
 *   step     rows are gathered, then updated by adagrad
 *   of two   the same rows, gathered by two workers, half of them each, and updated at once
 *
 * usage: bench_growing [MILLION_KEYS [WIDTH [ROWS_OF_A_BATCH]]], else 2, 16, 26624
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "core/base/random.h"
#include "core/train/variables/growing/growing.h"
#include "core/train/variables/growing/key_index.h"
#include "core/train/variables/growing/keys.h"
#include "kernels/device.h"

enum { BATCHES = 64, AHEAD = 32, LINE_FLOATS = 16, ROUNDS = 7, ARRAYS = 2 };
static const double WINDOW_NS = 2e8;
static const double GOAL = 1.5;

static void must(err e)
{
    if (e == OK) return;
    fprintf(stderr, "%s\n", error_text());
    exit(1);
}

/* A row that a batch names: by its key, and by its number */
struct named {
    int64_t key, number;
};

struct bench {
    int64_t keys, width, count;
    int64_t *batch_keys[BATCHES], *batch_numbers[BATCHES], distinct[BATCHES];
    int64_t *worker_keys[BATCHES][2]; /* every second of them */
    float *rows, *gradients;          /* [count, width] */
    float *arrays[ARRAYS];            /* [keys, width]: rows without a table */
    struct table *table;
    struct updater by;
    struct device *device;
    struct juncture now;
};

static int by_key(const void *a, const void *b)
{
    const int64_t x = ((const struct named *)a)->key, y = ((const struct named *)b)->key;
    return (x > y) - (x < y);
}

static void draw_batch(struct bench *b, int k, struct named *named)
{
    int64_t distinct = 0;
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t id = (int64_t)(random_u64((uint64_t)k, (uint64_t)i) % (uint64_t)b->keys);
        named[i] = (struct named){key_of_id(id), id};
    }
    qsort(named, (size_t)b->count, sizeof *named, by_key);
    b->batch_keys[k] = malloc((size_t)b->count * sizeof(int64_t));
    b->batch_numbers[k] = malloc((size_t)b->count * sizeof(int64_t));
    for (int64_t i = 0; i < b->count; i++) {
        if (distinct && b->batch_keys[k][distinct - 1] == named[i].key) continue;
        b->batch_keys[k][distinct] = named[i].key;
        b->batch_numbers[k][distinct++] = named[i].number;
    }
    b->distinct[k] = distinct;
    for (int64_t i = 0; i < distinct / 2 * 2; i++) {
        int64_t **of = &b->worker_keys[k][i % 2];
        if (!*of) *of = malloc((size_t)distinct * sizeof **of);
        (*of)[i / 2] = b->batch_keys[k][i];
    }
}

/* Of this process: who else runs on the machine counts less */
static double now_ns(void)
{
    return (double)clock() * (1e9 / CLOCKS_PER_SEC);
}

static void step_table(struct bench *b, int k)
{
    table_gather(b->table, b->batch_keys[k], b->distinct[k], b->rows);
    must(table_apply(b->table, b->batch_keys[k], b->distinct[k], b->gradients, NULL, &b->now));
}

static void step_of_two(struct bench *b, int k)
{
    for (int w = 0; w < 2; w++)
        table_gather(b->table, b->worker_keys[k][w], b->distinct[k] / 2, b->rows);
    must(table_apply(b->table, b->batch_keys[k], b->distinct[k] / 2 * 2, b->gradients, NULL,
                     &b->now));
}

static void gather_bare(struct bench *b, const int64_t *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            for (int64_t at = 0; at < b->width; at += LINE_FLOATS)
                __builtin_prefetch(b->arrays[0] + numbers[i + AHEAD] * b->width + at, 0,
                                   SECOND_CACHE);
        memcpy(b->rows + i * b->width, b->arrays[0] + numbers[i] * b->width,
               (size_t)b->width * sizeof(float));
    }
}

static void step_bare(struct bench *b, int k)
{
    _Alignas(max_align_t) unsigned char constants[CONSTANTS_BYTES_MAX];
    gather_bare(b, b->batch_numbers[k], b->distinct[k]);
    b->by.optimizer->derive(b->by.attributes, &b->now, constants);
    const struct row_update update = {.rule = b->by.optimizer->rule,
                                      .constants = constants,
                                      .value = b->arrays[0],
                                      .slot = {b->arrays[1]},
                                      .ids = b->batch_numbers[k],
                                      .gradient = b->gradients,
                                      .count = b->distinct[k],
                                      .width = b->width,
                                      .rows = b->keys};
    b->device->kernels->update_rows(b->device, &update);
}

static double per_row_ns(struct bench *b, void (*body)(struct bench *, int))
{
    const double begin = now_ns();
    int64_t rows = 0;
    for (int k = 0; now_ns() - begin < WINDOW_NS; k = (k + 1) % BATCHES) {
        body(b, k);
        rows += b->distinct[k];
    }
    return (now_ns() - begin) / (double)rows;
}

/* Ids as they come, a batch of neighbours at a time: row i is that of id i, as it is without a
 * table. */
static void grow(struct bench *b, struct named *named)
{
    const double begin = now_ns();
    int64_t *keys = malloc((size_t)b->count * sizeof *keys);
    for (int64_t at = 0; at < b->keys; at += b->count) {
        const int64_t n = b->keys - at < b->count ? b->keys - at : b->count;
        for (int64_t i = 0; i < n; i++) named[i].key = key_of_id(at + i);
        qsort(named, (size_t)n, sizeof *named, by_key);
        for (int64_t i = 0; i < n; i++) keys[i] = named[i].key;
        must(table_apply(b->table, keys, n, b->gradients, NULL, &b->now));
    }
    free(keys);
    printf("%-8s %8.1f ns a row; %.2f bytes a row beside values and slots\n", "grow",
           (now_ns() - begin) / (double)b->keys,
           (double)table_bytes(b->table) / (double)b->keys -
               (double)(ARRAYS * b->width) * sizeof(float));
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void compare(struct bench *b, const char *name, void (*step)(struct bench *, int))
{
    double ns[ROUNDS], bare[ROUNDS], ratios[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        bare[i] = per_row_ns(b, step_bare);
        ns[i] = per_row_ns(b, step);
        ratios[i] = ns[i] / bare[i];
    }
    qsort(ns, ROUNDS, sizeof *ns, by_size);
    qsort(bare, ROUNDS, sizeof *bare, by_size);
    qsort(ratios, ROUNDS, sizeof *ratios, by_size);
    const double ratio = ratios[ROUNDS / 2];
    printf("%-8s %8.1f ns a row, without a table %8.1f: %5.2f of it  %s\n", name, ns[ROUNDS / 2],
           bare[ROUNDS / 2], ratio, ratio <= GOAL ? "ok" : "NOT");
}

static void open_bare(struct bench *b)
{
    const size_t bytes = (size_t)(b->keys * b->width) * sizeof(float);
    for (int i = 0; i < ARRAYS; i++) {
        b->arrays[i] =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (b->arrays[i] == MAP_FAILED) must(fail(ERR_MEMORY, "no memory for %zu bytes", bytes));
        madvise(b->arrays[i], bytes, MADV_HUGEPAGE);
        memset(b->arrays[i], 0x3f, bytes);
    }
}

static void open_table(struct bench *b, struct arena *arena)
{
    static const struct growth growth = {.admit_after = 1, .evict_after_steps = 1000};
    const struct kind *adagrad = kinds_find(&optimizer_kinds, "adagrad");
    const struct kind *zeros = kinds_find(&initializer_kinds, "zeros");
    b->by = (struct updater){.optimizer = adagrad->descriptor,
                             .attributes = arena_new(arena, adagrad->object->size),
                             .slot_count = 1};
    const struct table_description is = {.name = "bench",
                                         .shape = {2, {1, b->width}},
                                         .length = KEYS,
                                         .initializer = zeros->descriptor,
                                         .growth = &growth};
    must(table_open(&is, &b->by, b->device, &b->table));
}

int main(int argc, char **argv)
{
    cpu_environment_prepare(argv);
    struct device device;
    struct arena arena = {0};
    struct bench b = {.keys = (int64_t)((argc > 1 ? atof(argv[1]) : 2) * 1e6),
                      .width = argc > 2 ? atoi(argv[2]) : 16,
                      .count = argc > 3 ? atoi(argv[3]) : 26624,
                      .device = &device,
                      .now = {.rate = 0.01f}};
    must(device_open_cpu(1, NULL, &device));
    struct named *named = malloc((size_t)b.count * sizeof *named);
    b.rows = calloc((size_t)(b.count * b.width), sizeof *b.rows);
    b.gradients = calloc((size_t)(b.count * b.width), sizeof *b.gradients);
    for (int k = 0; k < BATCHES; k++) draw_batch(&b, k, named);
    open_table(&b, &arena);
    grow(&b, named);
    open_bare(&b);
    compare(&b, "step", step_table);
    compare(&b, "of two", step_of_two);
    table_close(b.table);
    for (int k = 0; k < BATCHES; k++) {
        free(b.batch_keys[k]);
        free(b.batch_numbers[k]);
        free(b.worker_keys[k][0]);
        free(b.worker_keys[k][1]);
    }
    free(b.rows);
    free(b.gradients);
    free(named);
    arena_free(&arena);
    device_close(&device);
    return 0;
}
