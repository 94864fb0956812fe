/* sample.c - writes a folder for TensorBoard: summary_sample FOLDER [SPEC.json]
 *
 * Not a test: what it writes is looked at, by a person or by tests/interop/tensorboard_check.py.
 * Scalars, histograms and texts of 200 steps in FOLDER/train, scalars in FOLDER/eval, and the graph
 * of a spec with images of 28 x 28.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/random.h"
#include "core/train/summary/events.h"

enum { STEPS = 200, EVERY = 5, VALUES = 2000, PS = 2, PATH_BYTES_MAX = 4096 };

static const double BEGIN_S = 1700000000;

static void check(err e)
{
    if (!e) return;
    fprintf(stderr, "%s\n", error_text());
    exit(1);
}

static struct layout *make_layout(const struct spec *spec, const struct graph *graph,
                                  struct arena *arena)
{
    struct variable *variables = arena_array(arena, (size_t)graph->param_count, sizeof *variables);
    for (int i = 0; i < graph->param_count; i++)
        variables[i] = (struct variable){graph->params[i]->name, graph->params[i]->shape};
    struct layout *layout;
    check(layout_make(&spec->placement, variables, graph->param_count, PS, arena, &layout));
    return layout;
}

static void write_graph(struct events *events, const char *path)
{
    struct spec spec;
    struct arena arena = {0};
    struct graph *graph;
    struct graph_def def;
    check(spec_load(&(struct spec_options){.path = path, .seed = -1}, &spec));
    const struct column columns[] = {{.name = FEATURES_NAME, .shape = {3, {28, 28, 1}}},
                                     {.name = LABELS_NAME}};
    const struct graph_options options = {
        .columns = columns, .column_count = 2, .batch = spec.data.batch_size, .training = true};
    check(graph_make(&spec.model, &options, &arena, &graph));
    graph_def_make(graph, make_layout(&spec, graph, &arena), &spec.optimizers, &arena, &def);
    check(events_graph(events, BEGIN_S, &def));
    arena_free(&arena);
    spec_free(&spec);
}

/* A bell that moves and narrows. */
static void add_histogram(struct events *events, uint64_t step)
{
    struct histogram h;
    float values[VALUES];
    const float width = expf(-(float)step / 150), centre = 0.01f * (float)step;
    for (uint64_t i = 0; i < VALUES; i++) values[i] = centre + width * random_normal(step + 1, i);
    histogram_clear(&h);
    histogram_add_all(&h, values, VALUES);
    events_histogram(events, "conv1/kernel", &h);
}

static void write_step(struct events *events, uint64_t step)
{
    events_begin_step(events, BEGIN_S + 0.5 * (double)step, step);
    events_scalar(events, "loss", 2.3 * exp(-(double)step / 60));
    events_scalar(events, "global_step/sec", 120 + 5 * sin((double)step / 9));
    add_histogram(events, step);
    if (step == 0) events_text(events, "spec", "# A sample\n\n    {\"name\": \"sample\"}\n");
    check(events_end_step(events));
}

static struct events *open_run(const char *folder, const char *run)
{
    char path[PATH_BYTES_MAX];
    struct events *events;
    snprintf(path, sizeof path, "%s/%s", folder, run);
    check(events_open(path, BEGIN_S, "", &events));
    check(events_session(events, BEGIN_S, 0, SESSION_START, NULL));
    return events;
}

static void write_evaluations(const char *folder)
{
    struct events *events = open_run(folder, "eval");
    for (uint64_t step = 50; step <= STEPS; step += 50) {
        events_begin_step(events, BEGIN_S + 0.5 * (double)step, step);
        events_scalar(events, "loss", 0.1 + 2.2 * exp(-(double)step / 60));
        events_scalar(events, "accuracy", 1 - exp(-(double)step / 40));
        check(events_end_step(events));
    }
    check(events_flush(events));
    events_close(events);
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "summary_sample FOLDER [SPEC.json]\n");
        return 1;
    }
    struct events *events = open_run(argv[1], "train");
    write_graph(events, argc == 3 ? argv[2] : EXAMPLES "/mnist_cnn.json");
    for (uint64_t step = 0; step <= STEPS; step += EVERY) write_step(events, step);
    check(events_session(events, BEGIN_S + 101, STEPS, SESSION_CHECKPOINT, "run/model.ckpt"));
    check(events_flush(events));
    events_close(events);
    write_evaluations(argv[1]);
    return 0;
}
