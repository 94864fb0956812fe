/* session.c - see session.h. */
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/train/session/session_inside.h"

static err open_set(const struct session *s, const char *name, const struct source_spec *source,
                    struct dataset *ret)
{
    const struct spec *spec = s->options.spec;
    const struct format_context context = {spec->directory, (uint64_t)spec->seed,
                                           s->options.without_labels};
    err e = dataset_open(source, &context, ret);
    return e ? fail_prefix(e, "%s", name) : OK;
}

static err open_data(struct session *s)
{
    const struct data_spec *data = &s->options.spec->data;
    const bool trains = !s->options.only_evaluates;
    if (trains) TRY(open_set(s, "data.train", &data->train, &s->train_data));
    if (data->eval.format.kind) TRY(open_set(s, "data.eval", &data->eval, &s->eval_data));
    if (!trains && !s->eval_data.rows)
        return fail(ERR_INPUT, "data.eval: there is none, so there is nothing to evaluate");
    if (!trains || !s->eval_data.rows) return OK;
    const struct shape *features = &s->train_data.columns[FEATURES].shape,
                       *others = &s->eval_data.columns[FEATURES].shape;
    if (!shape_equal(features, others)) {
        char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
        return fail(ERR_INPUT, "data.eval: features are %s, those of data.train %s",
                    shape_text(others, b), shape_text(features, a));
    }
    return OK;
}

err session_make_graph(const struct session *s, int64_t batch, bool training, struct arena *arena,
                       struct graph **ret)
{
    const struct spec *spec = s->options.spec;
    const struct graph_options options = {
        .columns = (s->train_data.rows ? &s->train_data : &s->eval_data)->columns,
        .column_count = DATASET_COLUMNS,
        .batch = batch,
        .training = training,
        .seed = (uint64_t)spec->seed,
    };
    return graph_make(&spec->model, &options, arena, ret);
}

/* What the loss wants of the labels. */
static struct transform transform_for(const struct session *s, const struct graph *g)
{
    const struct tensor *labels = &g->loss.labels;
    return (struct transform){
        .scale = (float)s->options.spec->data.scale,
        .offset = (float)s->options.spec->data.offset,
        .label_dtype = labels->dtype,
        .labels = g->loss.loss->labels,
        .classes = g->loss.logits->shape.dim[1],
        .loss = g->loss.loss->object.name,
    };
}

/* The shape of one example's label: the batch's without its first dimension. */
static struct shape label_shape(const struct graph *g)
{
    struct shape shape = {.rank = g->loss.labels.shape.rank - 1};
    for (int i = 0; i < shape.rank; i++) shape.dim[i] = g->loss.labels.shape.dim[i + 1];
    return shape;
}

static err make_layout(struct session *s)
{
    const struct graph *g = s->graph;
    struct variable *variables = arena_array(&s->arena, (size_t)g->param_count, sizeof *variables);
    for (int i = 0; i < g->param_count; i++)
        variables[i] = (struct variable){g->params[i]->name, g->params[i]->shape};
    /* alone, pins to other ps and partitions have no meaning */
    static const struct placement_spec in_one_place = {0};
    const struct placement_spec *placement =
        s->options.only_evaluates ? &in_one_place : &s->options.spec->placement;
    return layout_make(placement, variables, g->param_count, s->options.ps_count, &s->arena,
                       &s->layout);
}

err session_allocate(const struct session *s, int64_t floats, float **ret)
{
    struct device *d = s->options.device;
    void *memory;
    TRY(d->kernels->allocate(d, (size_t)floats * sizeof(float), &memory));
    *ret = memory;
    return OK;
}

/* Clipping is of each batch's gradient, so sums of several need a place beside it. */
bool session_keeps_sums(const struct session *s)
{
    return optimizer_clip(&s->options.spec->optimizer).type != CLIP_NONE &&
           s->options.batches_per_push > 1;
}

/* Buffers for partitioned variables, and for sums of clipped gradients. */
static err make_buffers(struct session *s)
{
    const struct graph *g = s->graph;
    size_t count = (size_t)g->param_count, ps_count = (size_t)s->options.ps_count;
    s->whole_values = arena_array(&s->arena, count, sizeof(float *));
    s->whole_gradients = arena_array(&s->arena, count, sizeof(float *));
    s->values = arena_array(&s->arena, ps_count, sizeof(float *));
    s->gradients = arena_array(&s->arena, ps_count, sizeof(float *));
    for (int i = 0; i < g->param_count; i++) {
        if (layout_is_whole(s->layout, i, NULL)) continue;
        int64_t floats = shape_count(&g->params[i]->shape);
        TRY(session_allocate(s, floats, &s->whole_values[i]));
        TRY(session_allocate(s, floats, &s->whole_gradients[i]));
        g->params[i]->value = s->whole_values[i];
        g->params[i]->gradient = s->whole_gradients[i];
    }
    s->clip_gradients = arena_array(&s->arena, count, sizeof(float *));
    s->clip_sizes = arena_array(&s->arena, count, sizeof(int64_t));
    s->regularized = graph_has_regularizers(g);
    s->clip = optimizer_clip(&s->options.spec->optimizer);
    if (!session_keeps_sums(s)) return OK;
    s->kept = arena_array(&s->arena, count, sizeof(float *));
    for (int i = 0; i < g->param_count; i++)
        TRY(session_allocate(s, shape_count(&g->params[i]->shape), &s->kept[i]));
    return OK;
}

err session_open_pipeline(const struct session *s, uint64_t first, struct pipeline **ret)
{
    const struct spec *spec = s->options.spec;
    const struct pipeline_options options = {
        .transform = transform_for(s, s->graph),
        .batch = spec->data.batch_size,
        .shuffle = spec->data.shuffle,
        .key = random_key((uint64_t)spec->seed, "data"),
        .worker = s->options.worker,
        .workers = s->options.workers,
        .first = first,
        .prefetch = (int)spec->data.prefetch,
    };
    err e = pipeline_open(&s->train_data, &options, ret);
    return e ? fail_prefix(e, "data.train") : OK;
}

/* All rows of both sets, before the first step. */
static err check_labels(const struct session *s)
{
    const struct shape wanted = label_shape(s->graph);
    const struct transform transform = transform_for(s, s->graph);
    err e = OK;
    if (s->options.without_labels) return OK;
    if (s->train_data.rows) e = transform_check(&transform, &s->train_data, &wanted);
    if (e) return fail_prefix(e, "data.train");
    if (s->eval_data.rows) e = transform_check(&transform, &s->eval_data, &wanted);
    return e ? fail_prefix(e, "data.eval") : OK;
}

/* Rows of an evaluation batch: as the spec says, else the training batch, but at least 100. */
int64_t session_evaluation_batch(const struct session *s, int64_t batch)
{
    int64_t rows = s->options.spec->data.eval_batch_size;
    if (!rows) rows = batch < 100 ? 100 : batch;
    return rows < s->eval_data.rows ? rows : s->eval_data.rows;
}

static err open_parts(struct session *s)
{
    TRY(open_data(s));
    const bool trains = !s->options.only_evaluates;
    const int64_t batch = s->options.spec->data.batch_size;
    const int64_t rows = trains ? batch : session_evaluation_batch(s, batch);
    TRY(session_make_graph(s, rows, trains, &s->arena, &s->graph));
    TRY(make_layout(s));
    TRY(session_check_memory(s));
    TRY(session_open_mirror(s));
    TRY(make_buffers(s));
    TRY(check_labels(s));
    if (!trains) return OK;
    TRY(session_check_warm_start(s));
    TRY(session_open_plan(s));
    stepper_open(s->plan, &s->stepper);
    return session_open_pipeline(s, 0, &s->pipeline);
}

err session_open(const struct session_options *options, struct session *ret)
{
    *ret = (struct session){.options = *options};
    err e = open_parts(ret);
    if (e) session_close(ret);
    return e == ERR_INPUT ? fail_prefix(e, "%s", options->spec->source) : e;
}

/* Rows of data for a plan, which takes them from the host's memory: zero. */
static err allocate_batch(const struct session *s, int64_t floats, float **ret)
{
    if (!s->options.device->is_separate) return session_allocate(s, floats, ret);
    *ret = calloc((size_t)floats, sizeof **ret);
    return *ret ? OK : fail(ERR_MEMORY, "no memory for a batch of %lld numbers", (long long)floats);
}

static void release_batch(const struct session *s, float *batch)
{
    struct device *d = s->options.device;
    if (!batch) return;
    if (d->is_separate)
        free(batch);
    else
        d->kernels->release(d, batch);
}

void session_close(struct session *s)
{
    struct device *d = s->options.device;
    pipeline_close(s->pipeline);
    stepper_forget(&s->stepper);
    plan_close(s->plan);
    plan_close(s->eval_plan);
    release_batch(s, s->eval_features);
    release_batch(s, s->eval_labels);
    if (s->own_values) d->kernels->release(d, s->own_values);
    for (int i = 0; s->graph && s->whole_values && i < s->graph->param_count; i++) {
        if (s->whole_values[i]) d->kernels->release(d, s->whole_values[i]);
        if (s->whole_gradients[i]) d->kernels->release(d, s->whole_gradients[i]);
        if (s->kept && s->kept[i]) d->kernels->release(d, s->kept[i]);
    }
    mirror_close(&s->mirror);
    dataset_close(&s->train_data);
    dataset_close(&s->eval_data);
    arena_free(&s->arena);
    *s = (struct session){0};
}

double session_metric(struct session *s, int metric)
{
    const struct metric_node *m = &s->graph->metrics[metric];
    double total = 0, count = 0;
    m->metric->update(m, s->options.device, s->last_rows, &total, &count);
    return count > 0 ? total / count : 0;
}

/* The evaluation graph and its memory are made when they are first wanted, and kept. */
static err make_evaluation(struct session *s)
{
    if (s->eval_plan) return OK;
    struct graph *g = s->graph;
    const int64_t rows = session_evaluation_batch(s, s->options.spec->data.batch_size);
    if (!s->options.only_evaluates) TRY(session_make_graph(s, rows, false, &s->arena, &g));
    TRY(allocate_batch(s, shape_count(&g->features.shape), &s->eval_features));
    TRY(allocate_batch(s, shape_count(&g->loss.labels.shape), &s->eval_labels));
    s->eval_metrics = arena_array(&s->arena, (size_t)g->metric_count + 1, 2 * sizeof(double));
    return plan_open(g, s->options.device, &s->eval_plan);
}

err session_open_evaluation(struct session *s)
{
    TRY(make_evaluation(s));
    const struct graph *g = s->eval_plan->graph;
    session_gather_values(s);
    for (int i = 0; i < g->param_count; i++) g->params[i]->value = s->graph->params[i]->value;
    return OK;
}

/* Without labels the memory for them stays zero, which is a label of every loss. */
int64_t session_forward_evaluation(struct session *s, int64_t first)
{
    const struct transform transform = transform_for(s, s->graph);
    const int64_t batch = s->eval_plan->graph->batch, left = s->eval_data.rows - first;
    const int64_t rows = left < batch ? left : batch;
    dataset_read(&s->eval_data, &transform, first, rows, s->eval_features,
                 s->options.without_labels ? NULL : s->eval_labels);
    const struct column columns[DATASET_COLUMNS] = {
        [FEATURES] = {.dtype = FLOAT32, .at = s->eval_features},
        [LABELS] = {.dtype = transform.label_dtype, .at = s->eval_labels}};
    const struct batch b = {.rows = rows, .columns = columns, .column_count = DATASET_COLUMNS};
    plan_forward(s->eval_plan, &b, 0);
    return rows;
}

struct totals {
    double loss, weight;
    double *metric, *count;
};

static void evaluate_batch(struct plan *plan, int64_t rows, struct totals *t)
{
    const struct graph *g = plan->graph;
    double weight = g->loss.loss->weight(&g->loss, plan->device, rows);
    t->loss += plan_loss(plan, rows) * weight;
    t->weight += weight;
    for (int i = 0; i < g->metric_count; i++) {
        const struct metric_node *m = &g->metrics[i];
        m->metric->update(m, plan->device, rows, &t->metric[i], &t->count[i]);
    }
}

static void evaluate_all(struct session *s, struct totals *t)
{
    int64_t rows;
    for (int64_t first = 0; first < s->eval_data.rows; first += rows) {
        rows = session_forward_evaluation(s, first);
        evaluate_batch(s->eval_plan, rows, t);
    }
}

err session_evaluate(struct session *s, struct evaluation *ret)
{
    *ret = (struct evaluation){0};
    if (!s->eval_data.rows) return OK;
    TRY(session_open_evaluation(s));
    const struct graph *g = s->eval_plan->graph;
    struct totals t = {.metric = s->eval_metrics, .count = s->eval_metrics + g->metric_count};
    memset(s->eval_metrics, 0, 2 * (size_t)g->metric_count * sizeof(double));
    evaluate_all(s, &t);
    TRY(s->options.device->kernels->synchronize(s->options.device));
    for (int i = 0; i < g->metric_count; i++)
        t.metric[i] = t.count[i] > 0 ? t.metric[i] / t.count[i] : 0;
    *ret = (struct evaluation){s->eval_data.rows, t.weight > 0 ? t.loss / t.weight : 0, t.metric};
    return OK;
}
