/* bench_rows.c - softmax and losses, row by row, against a copy within the GPU of as many bytes. */
#include <stdio.h>

#include "tests/cuda/bench/bench_copy.h"

enum { NAME_MAX_BYTES = 80 };

static const double goal = 0.7;

/* Of MNIST, of a small alphabet, of ImageNet */
static const int64_t widths[] = {10, 64, 1000};

struct rows {
    int64_t rows, columns;
};

static void run_softmax(struct bench *b, const void *arguments, int call)
{
    const struct rows *r = arguments;
    b->d.kernels->softmax(&b->d, b->out, b->x, r->rows, r->columns);
}

static void run_softmax_back(struct bench *b, const void *arguments, int call)
{
    const struct rows *r = arguments;
    b->d.kernels->softmax_back(&b->d, b->out, b->x, b->y, r->rows, r->columns, false);
}

/* Losses of the rows stand behind all that the targets take: they are few. */
static struct cross_entropy classes_of(struct bench *b, const struct rows *r)
{
    return (struct cross_entropy){.rows = r->rows,
                                  .classes = r->columns,
                                  .logits = b->x,
                                  .labels = b->labels,
                                  .targets = b->positive,
                                  .scale = b->positive,
                                  .losses = b->z,
                                  .gradient = b->out};
}

static void run_softmax_loss(struct bench *b, const void *arguments, int call)
{
    const struct cross_entropy c = classes_of(b, arguments);
    b->d.kernels->softmax_cross_entropy(&b->d, &c);
}

static void run_sigmoid_loss(struct bench *b, const void *arguments, int call)
{
    const struct cross_entropy c = classes_of(b, arguments);
    b->d.kernels->sigmoid_cross_entropy(&b->d, &c);
}

static struct regression numbers_of(struct bench *b, const struct rows *r)
{
    return (struct regression){.rows = r->rows,
                               .columns = r->columns,
                               .predictions = b->x,
                               .targets = b->y,
                               .delta = 1,
                               .scale = b->positive,
                               .losses = b->z,
                               .gradient = b->out};
}

static void run_squared_error(struct bench *b, const void *arguments, int call)
{
    const struct regression r = numbers_of(b, arguments);
    b->d.kernels->squared_error(&b->d, &r);
}

static void run_huber(struct bench *b, const void *arguments, int call)
{
    const struct regression r = numbers_of(b, arguments);
    b->d.kernels->huber(&b->d, &r);
}

/* streams: how many matrices are read and written; per_row: how many numbers of each row */
static const struct {
    const char *name;
    bench_body *body;
    double streams, per_row;
} cases[] = {
    {"softmax", run_softmax, 2, 0},
    {"softmax_back", run_softmax_back, 3, 0},
    {"softmax_cross_entropy", run_softmax_loss, 2, 2},
    {"sigmoid_cross_entropy", run_sigmoid_loss, 3, 1},
    {"squared_error", run_squared_error, 3, 1},
    {"huber", run_huber, 3, 1},
};

static void measure(struct bench *b, size_t at, const struct rows *r)
{
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "%s of %lld", cases[at].name, (long long)r->columns);
    const double floats =
        (double)r->rows * (cases[at].streams * (double)r->columns + cases[at].per_row);
    bench_against_copy(b, &(struct stream){.group = "rows",
                                           .name = name,
                                           .timed = {cases[at].body, r, false},
                                           .bytes = floats * sizeof(float),
                                           .goal = goal});
}

void bench_rows(struct bench *b)
{
    for (size_t width = 0; width < sizeof widths / sizeof *widths; width++) {
        const struct rows r = {b->floats / bench_scaled(b, widths[width]),
                               bench_scaled(b, widths[width])};
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) measure(b, i, &r);
    }
}
