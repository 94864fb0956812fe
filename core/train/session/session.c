/* session.c - see session.h. */
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/train/session/session_inside.h"

static err open_set(const struct session *s, const char *name, const struct source_spec *source,
                    struct batch_source **ret)
{
    const struct spec *spec = s->options.spec;
    const struct format_context context = {spec->directory, (uint64_t)spec->seed,
                                           s->options.without_labels};
    err e = batch_source_open(source, &context, ret);
    return e ? fail_prefix(e, "%s", name) : OK;
}

static err compare_features(const struct session *s)
{
    const struct column *learned = batch_source_column(s->train_data, FEATURES_NAME);
    const struct column *measured = batch_source_column(s->eval_data, FEATURES_NAME);
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
    if (shape_equal(&learned->shape, &measured->shape)) return OK;
    return fail(ERR_INPUT, "data.eval: features are %s, those of data.train %s",
                shape_text(&measured->shape, b), shape_text(&learned->shape, a));
}

static err open_data(struct session *s)
{
    const struct data_spec *data = &s->options.spec->data;
    const bool trains = !s->options.only_evaluates;
    if (trains) TRY(open_set(s, "data.train", &data->train, &s->train_data));
    if (data->eval.format.kind) TRY(open_set(s, "data.eval", &data->eval, &s->eval_data));
    if (!trains && !s->eval_data)
        return fail(ERR_INPUT, "data.eval: there is none, so there is nothing to evaluate");
    return trains && s->eval_data ? compare_features(s) : OK;
}

err session_make_graph(const struct session *s, int64_t batch, bool training, struct arena *arena,
                       struct graph **ret)
{
    const struct spec *spec = s->options.spec;
    const struct batch_source *data = s->train_data ? s->train_data : s->eval_data;
    const struct graph_options options = {
        .columns = data->columns,
        .column_count = data->column_count,
        .batch = batch,
        .training = training,
        .seed = (uint64_t)spec->seed,
    };
    return graph_make(&spec->model, &options, arena, ret);
}

/* What the loss wants of the labels. */
static struct transform transform_for(const struct session *s)
{
    const struct graph *g = s->graph;
    const struct tensor *labels = &g->loss.labels;
    return (struct transform){
        .scale = (float)s->options.spec->data.scale,
        .offset = (float)s->options.spec->data.offset,
        .label_dtype = labels->dtype,
        .label_shape = shape_from(&labels->shape, 1), /* of a row */
        .labels = g->loss.loss->labels,
        .classes = g->loss.logits->shape.dim[1],
        .loss = g->loss.loss->object.name,
    };
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

/* Labels of all rows of both sets are looked at, before the first step. */
static err begin_training_data(struct session *s)
{
    const struct spec *spec = s->options.spec;
    const struct stream_options options = {
        .transform = transform_for(s),
        .batch = spec->data.batch_size,
        .shuffle = spec->data.shuffle,
        .key = random_key((uint64_t)spec->seed, "data"),
        .worker = s->options.worker,
        .workers = s->options.workers,
        .prefetch = (int)spec->data.prefetch,
    };
    if (!s->train_data) return OK;
    const err e = s->train_data->calls->begin(s->train_data, &options);
    return e ? fail_prefix(e, "data.train") : OK;
}

static err begin_evaluation_data(struct session *s)
{
    if (!s->eval_data) return OK;
    const struct stream_options options = {
        .transform = transform_for(s),
        .batch = session_evaluation_batch(s, s->options.spec->data.batch_size),
        .is_once = true,
        .workers = 1,
        .prefetch = 1,
    };
    const err e = s->eval_data->calls->begin(s->eval_data, &options);
    return e ? fail_prefix(e, "data.eval") : OK;
}

/* Rows of an evaluation batch: as the spec says, else the training batch, but at least 100. */
int64_t session_evaluation_batch(const struct session *s, int64_t batch)
{
    int64_t rows = s->options.spec->data.eval_batch_size;
    if (!rows) rows = batch < 100 ? 100 : batch;
    return rows < s->eval_data->rows ? rows : s->eval_data->rows;
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
    TRY(begin_training_data(s));
    TRY(begin_evaluation_data(s));
    if (!trains) return OK;
    TRY(session_check_warm_start(s));
    TRY(session_open_plan(s));
    stepper_open(s->plan, &s->stepper);
    return OK;
}

err session_open(const struct session_options *options, struct session *ret)
{
    *ret = (struct session){.options = *options};
    err e = open_parts(ret);
    if (e) session_close(ret);
    return e == ERR_INPUT ? fail_prefix(e, "%s", options->spec->source) : e;
}

void session_close(struct session *s)
{
    struct device *d = s->options.device;
    stepper_forget(&s->stepper);
    plan_close(s->plan);
    plan_close(s->eval_plan);
    if (s->own_values) d->kernels->release(d, s->own_values);
    for (int i = 0; s->graph && s->whole_values && i < s->graph->param_count; i++) {
        if (s->whole_values[i]) d->kernels->release(d, s->whole_values[i]);
        if (s->whole_gradients[i]) d->kernels->release(d, s->whole_gradients[i]);
        if (s->kept && s->kept[i]) d->kernels->release(d, s->kept[i]);
    }
    mirror_close(&s->mirror);
    batch_source_close(s->train_data);
    batch_source_close(s->eval_data);
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
    s->eval_metrics = arena_array(&s->arena, (size_t)g->metric_count + 1, 2 * sizeof(double));
    return plan_open(g, s->options.device, &s->eval_plan);
}

err session_open_evaluation(struct session *s)
{
    TRY(make_evaluation(s));
    TRY(s->eval_data->calls->seek(s->eval_data, 0));
    const struct graph *g = s->eval_plan->graph;
    session_gather_values(s);
    for (int i = 0; i < g->param_count; i++) g->params[i]->value = s->graph->params[i]->value;
    return OK;
}

err session_forward_evaluation(struct session *s, int64_t *ret_rows)
{
    struct batch batch;
    TRY(s->eval_data->calls->next(s->eval_data, &batch));
    if (batch.rows > 0) plan_forward(s->eval_plan, &batch, 0);
    *ret_rows = batch.rows;
    return OK;
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

static err evaluate_all(struct session *s, struct totals *t)
{
    int64_t rows;
    do {
        TRY(session_forward_evaluation(s, &rows));
        if (rows > 0) evaluate_batch(s->eval_plan, rows, t);
    } while (rows > 0);
    return OK;
}

err session_evaluate(struct session *s, struct evaluation *ret)
{
    *ret = (struct evaluation){0};
    if (!s->eval_data) return OK;
    TRY(session_open_evaluation(s));
    const struct graph *g = s->eval_plan->graph;
    struct totals t = {.metric = s->eval_metrics, .count = s->eval_metrics + g->metric_count};
    memset(s->eval_metrics, 0, 2 * (size_t)g->metric_count * sizeof(double));
    TRY(evaluate_all(s, &t));
    TRY(s->options.device->kernels->synchronize(s->options.device));
    for (int i = 0; i < g->metric_count; i++)
        t.metric[i] = t.count[i] > 0 ? t.metric[i] / t.count[i] : 0;
    *ret = (struct evaluation){s->eval_data->rows, t.weight > 0 ? t.loss / t.weight : 0, t.metric};
    return OK;
}
