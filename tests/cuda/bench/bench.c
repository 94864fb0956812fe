/* bench.c - how fast the GPU's kernels are, each against a limit measured in the same run.
 *
 *   products               against cuBLAS called bare, where it was found
 *   convolutions           against cuDNN called bare, where it is found, or the one that the
 * variable BENCH_CUDNN names vectors, optimizers,   against a copy within the GPU of as many bytes
 *   rows
 *
 * machine                the way to the GPU and back; no figures, and only where it is asked for
 *
 * usage: bench_gpu [--json FILE] [--bare] [--parts PART,...] [SCALE]
 * --bare: kernels of our own do all, held against the libraries. Sizes are divided by SCALE; 1 for
 * figures, more to see it run. Its exit code says whether all was measured, not whether goals were
 * met.
 */
#include "tests/cuda/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "kernels/elements.h"
#include "tests/cuda/bench/bench_dnn.h"

enum {
    FLOATS = 64 << 20,     /* 256 MiB: more than any GPU keeps near its cores */
    SEED_FLOATS = 1 << 20, /* random ones; the rest repeats them */
    LINE_FLOATS = 64,      /* operands begin at multiples of so many */
    SCALE_MAX = 64,
    WARM_UP_NS = 1000000000,
};

void bench_give_up(void)
{
    fprintf(stderr, "%s\n", error_text());
    exit(EXIT_FAILURE);
}

void bench_wait(struct bench *b)
{
    if (b->d.kernels->synchronize(&b->d)) bench_give_up();
}

const char *bench_precision(const struct bench *b)
{
    static const char *const names[] = {
        [PRECISION_FLOAT32] = "float32", [PRECISION_TF32] = "tf32", [PRECISION_BF16] = "bf16"};
    return names[b->precision];
}

int64_t bench_scaled(const struct bench *b, int64_t size)
{
    return size > b->scale ? size / b->scale : 1;
}

float *bench_part(const struct bench *b, float *memory, int64_t floats, int call)
{
    const int64_t stretch = (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    if (stretch > b->capacity) {
        (void)fail(ERR_INPUT, "%lld floats do not fit the bench's memory", (long long)floats);
        bench_give_up();
    }
    return memory + call % (b->capacity / stretch) * stretch;
}

/* Random numbers in [low, 1): the first are the host's, the others copies of all before them. */
static float *random_floats(struct bench *b, uint64_t key, float low)
{
    const int64_t seeds = b->capacity < SEED_FLOATS ? b->capacity : SEED_FLOATS;
    float *host = malloc((size_t)seeds * sizeof *host);
    void *memory;
    if (!host || b->d.kernels->allocate(&b->d, (size_t)b->capacity * sizeof(float), &memory))
        bench_give_up();
    for (int64_t i = 0; i < seeds; i++)
        host[i] = low + (1 - low) * element_random_uniform(key, (uint64_t)i);
    b->d.kernels->upload(&b->d, memory, host, (size_t)seeds * sizeof *host);
    free(host);
    float *floats = memory;
    for (int64_t at = seeds; at < b->capacity; at *= 2)
        b->d.kernels->copy(&b->d, floats + at, floats,
                           at < b->capacity - at ? at : b->capacity - at);
    return floats;
}

/* brief: of a bench that only shows that it runs, memory is the host's too: libraries that stand in
 * for NVIDIA's compute there. */
static void open_bench(struct bench *b, bool is_brief, enum precision precision)
{
    void *labels;
    const struct gpu_options options = {
        .precision = precision, .is_watched = is_brief, .is_bare = b->is_bare};
    if (device_open_gpu(&options, &b->d)) bench_give_up();
    b->precision = precision;
    b->state = b->d.state;
    if (b->is_bare) (void)cuda_blas_open(&b->d, precision);
    b->blas = b->state->blas;
    if (b->is_bare) b->state->blas = (struct cuda_blas){0}; /* nobody but the bench calls it */
    b->capacity = bench_scaled(b, FLOATS);
    b->floats = FLOATS / (b->scale * b->scale * b->scale);
    b->x = random_floats(b, 1, -1);
    b->y = random_floats(b, 2, -1);
    b->z = random_floats(b, 3, -1);
    b->positive = random_floats(b, 4, 0);
    b->out = random_floats(b, 5, -1);
    if (b->d.kernels->allocate(&b->d, (size_t)b->floats * sizeof(int32_t), &labels))
        bench_give_up();
    b->labels = labels;
    bench_wait(b);
}

static void close_bench(struct bench *b)
{
    float *const memory[] = {b->x, b->y, b->z, b->positive, b->out};
    if (b->dnn) bare_dnn_close(b, b->dnn);
    b->dnn = NULL;
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        b->d.kernels->release(&b->d, memory[i]);
    b->d.kernels->release(&b->d, b->labels);
    b->state->blas = b->blas;
    device_close(&b->d);
}

static void open_peers(struct bench *b)
{
    snprintf(b->device, sizeof b->device, "%s", b->d.kernels->name);
    printf("%s, %s\n", b->device, bench_precision(b));
    if (bare_dnn_open(b, &b->dnn))
        printf("convolutions are compared with nothing: %s\n", error_text());
    else
        printf("convolutions are compared with cuDNN %zu\n", bare_dnn_version(b->dnn));
}

/* A GPU that has rested runs slowly at first. */
static void warm_up(struct bench *b)
{
    const uint64_t end = clock_ns() + WARM_UP_NS / (uint64_t)b->scale;
    while (clock_ns() < end) {
        b->d.kernels->copy(&b->d, b->out, b->x, b->floats);
        bench_wait(b);
    }
}

static const struct part {
    const char *name;
    void (*measure)(struct bench *);
    bool knows_precision, is_asked_for; /* the others know float32 alone, and are always measured */
} parts[] = {
    {"machine", bench_machine, false, true},
    {"products", bench_products, true, false},
    {"convolutions", bench_convolutions, true, false},
    {"streams", bench_streams, false, false},
    {"rows", bench_rows, false, false},
};
enum { MACHINE, PARTS = sizeof parts / sizeof *parts };

static bool is_measured(const struct part *part, unsigned wanted, enum precision precision)
{
    if (precision != PRECISION_FLOAT32 && !part->knows_precision) return false;
    return wanted & 1u << (part - parts);
}

static void measure_at(struct bench *b, unsigned wanted, enum precision precision)
{
    bool is_any = false;
    for (int i = 0; i < PARTS; i++) is_any |= is_measured(&parts[i], wanted, precision);
    if (!is_any) return;
    open_bench(b, b->scale > 1 && !(wanted & 1u << MACHINE), precision);
    open_peers(b);
    warm_up(b);
    for (int i = 0; i < PARTS; i++)
        if (is_measured(&parts[i], wanted, precision)) parts[i].measure(b);
    close_bench(b);
}

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_gpu [--json FILE] [--bare] [--parts PART,...] [SCALE from 1 to %d]\n"
            "the parts:",
            SCALE_MAX);
    for (int i = 0; i < PARTS; i++) fprintf(stderr, " %s", parts[i].name);
    fprintf(stderr, "\n");
    return EXIT_FAILURE;
}

/* 0: there is one of them that is no part. */
static unsigned parts_of(char *names)
{
    unsigned wanted = 0;
    char *rest;
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        int i = 0;
        while (i < PARTS && strcmp(parts[i].name, name) != 0) i++;
        if (i == PARTS) return 0;
        wanted |= 1u << i;
    }
    return wanted;
}

static unsigned usual_parts(void)
{
    unsigned wanted = 0;
    for (int i = 0; i < PARTS; i++) wanted |= parts[i].is_asked_for ? 0 : 1u << i;
    return wanted;
}

static err write_figures(struct bench *b, const char *path)
{
    json_t *all = json_pack("{ss sO}", "device", b->device, "figures", b->figures);
    const int status = all ? json_dump_file(all, path, JSON_INDENT(1)) : -1;
    json_decref(all);
    return status == 0 ? OK : fail(ERR_IO, "%s: cannot be written", path);
}

int main(int argc, char **argv)
{
    struct bench b = {.scale = 1};
    const char *path = NULL;
    unsigned wanted = usual_parts();
    for (int i = 1; i < argc; i++) {
        const bool has_next = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0 && has_next)
            path = argv[++i];
        else if (strcmp(argv[i], "--parts") == 0 && has_next)
            wanted = parts_of(argv[++i]);
        else if (strcmp(argv[i], "--bare") == 0)
            b.is_bare = true;
        else if (!has_next)
            b.scale = strtol(argv[i], NULL, 10);
        else
            return usage();
    }
    b.figures = json_array();
    if (!b.figures || !wanted || b.scale < 1 || b.scale > SCALE_MAX) return usage();
    for (enum precision p = PRECISION_FLOAT32; p <= PRECISION_BF16; p++) {
        measure_at(&b, wanted, p);
        if (path && write_figures(&b, path)) bench_give_up(); /* so far: another may fail */
    }
    json_decref(b.figures);
    return EXIT_SUCCESS;
}
