/* session.c - see session.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/random.h"
#include "core/data/labels.h"
#include "core/train/hooks/hook.h"
#include "core/train/session/session_inside.h"
#include "core/train/spec/features.h"

/* Names of features: the checkpoint's, else those of data.train, which is opened first. */
static struct strings feature_names(const struct session *s)
{
    const struct spec *spec = s->options.spec;
    if (spec->feature_names.count || !s->data.train) return spec->feature_names;
    return s->data.train->feature_names;
}

static err open_set(const struct session *s, const char *name, const struct source_spec *source,
                    const struct objects *columns, struct columns_wanted *wanted,
                    struct batch_source **ret)
{
    const struct spec *spec = s->options.spec;
    const struct format_context context = {.directory = spec->directory,
                                           .seed = (uint64_t)spec->seed,
                                           .without_labels = s->options.without_labels,
                                           .wants_all_cells = source == &spec->data.train,
                                           .columns = columns,
                                           .wanted = wanted,
                                           .feature_names = feature_names(s),
                                           .scaling = {spec->data.scale, spec->data.offset},
                                           .takes_other_features = spec->accepts_changed_features,
                                           .index_folder = spec->train.checkpoint.dir};
    err e = labels_check(source, &spec->data.columns);
    if (!e) e = batch_source_open(source, &context, ret);
    if (e && wanted && wanted->refused) return fail(wanted->refused, "%s", wanted->why);
    return e ? spec_fail_data(spec, name, e) : OK;
}

/* Both have the same columns: "features", or those that the spec lists. */
static err compare_columns(const struct session *s)
{
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
    for (int i = 0; i < s->data.train->column_count; i++) {
        const struct column *learned = &s->data.train->columns[i];
        const struct column *measured = batch_source_column(s->data.evaluation, learned->name);
        const bool is_label = !strcmp(learned->name, LABELS_NAME);
        if (!measured || measured != &s->data.evaluation->columns[i])
            return fail(ERR_INPUT,
                        "data.eval: expected the labels of data.train, in the same order: "
                        "\"%s\" is not number %d",
                        learned->name, i);
        if (measured->buckets > learned->buckets)
            return fail(
                ERR_INPUT, "data.eval: ids of %s go up to %lld, those of data.train to %lld",
                learned->name, (long long)measured->buckets - 1, (long long)learned->buckets - 1);
        if (is_label || shape_equal(&learned->shape, &measured->shape)) continue;
        return fail(ERR_INPUT, "data.eval: %s are %s, those of data.train %s", learned->name,
                    shape_text(&measured->shape, b), shape_text(&learned->shape, a));
    }
    if (s->data.train->meanings == s->data.evaluation->meanings) return OK;
    return fail(ERR_INPUT,
                "data.eval: its ids stand for other words than those of data.train: give "
                "both the same \"vocabulary\"");
}

/* Describes the rows that a caller brings as an evaluation set that is still empty */
static err open_asked(struct session *s)
{
    const struct asked_rows *asked = s->options.asked;
    struct dataset described = {.rows = asked->most,
                                .column_count = asked->column_count,
                                .name = asked->name,
                                .label_name = asked->name,
                                .feature_names = asked->feature_names};
    described.columns =
        arena_array(&s->arena, (size_t)asked->column_count, sizeof *described.columns);
    memcpy(described.columns, asked->columns,
           (size_t)asked->column_count * sizeof *described.columns);
    return batch_source_of(&described, (struct rows_from){0}, &s->data.evaluation);
}

static err open_data(struct session *s)
{
    const struct data_spec *data = &s->options.spec->data;
    const bool trains = !s->options.only_evaluates;
    if (data->columns.count && (data->scale != 1 || data->offset != 0))
        return fail(ERR_INPUT,
                    "data.scale: numeric columns have a scale and an offset of their own");
    if (s->options.remote_input) {
        s->data.train = s->options.remote_input;
        return OK;
    }
    if (s->options.asked) return open_asked(s);
    s->data.train_columns = labels_beside(&data->columns, &data->train, &s->arena);
    if (trains)
        TRY(open_set(s, "data.train", &data->train, s->data.train_columns, &s->data.wanted,
                     &s->data.train));
    s->data.wanted.is_told = true;
    if (data->eval.format.kind)
        TRY(open_set(s, "data.eval", &data->eval,
                     labels_beside(&data->columns, &data->eval, &s->arena), NULL,
                     &s->data.evaluation));
    if (!trains && !s->data.evaluation)
        return fail(ERR_INPUT, "data.eval: there is none, so there is nothing to evaluate");
    return trains && s->data.evaluation ? compare_columns(s) : OK;
}

/* Called before a pass of the graph is planned: what only frozen variables would need is not
 * computed. */
static void freeze(const struct session *s, struct graph *graph)
{
    for (int i = 0; i < graph->param_count; i++)
        graph->params[i]->is_frozen =
            optimizers_freeze(&s->options.spec->optimizers, graph->params[i]->name);
}

static err make_graph_of(const struct session *s, const struct column *columns, int count,
                         int64_t first_row, int64_t batch, bool training, struct arena *arena,
                         struct graph **ret)
{
    const struct spec *spec = s->options.spec;
    const struct graph_options options = {
        .columns = columns,
        .column_count = count,
        .batch = batch,
        .first_row = first_row,
        .training = training,
        .holds_batch_rows = true,
        .weight = spec->data.weight,
        .seed = (uint64_t)spec->seed,
    };
    TRY(graph_make(&spec->model, &options, arena, ret));
    freeze(s, *ret);
    return OK;
}

static err make_graph(const struct session *s, int64_t first_row, int64_t batch, bool training,
                      struct arena *arena, struct graph **ret)
{
    const struct batch_source *data = s->data.train ? s->data.train : s->data.evaluation;
    return make_graph_of(s, data->columns, data->column_count, first_row, batch, training, arena,
                         ret);
}

err session_make_graph(const struct session *s, int64_t batch, bool training, struct arena *arena,
                       struct graph **ret)
{
    return make_graph(s, 0, batch, training, arena, ret);
}

/* The values of a checkpoint are of use only where features mean what they did. */
static err check_features(struct session *s)
{
    const struct batch_source *data = s->data.train ? s->data.train : s->data.evaluation;
    return s->options.remote_input
               ? OK
               : features_check(s->options.spec, data, s->graph, &s->data.features);
}

static struct wanted_label wanted_label(const struct graph *graph, const struct loss_node *loss)
{
    const struct tensor *labels = loss_given(loss), *logits = loss->logits;
    const bool is_asked = labels->dtype == INT32 || loss->loss->labels != LABELS_CLASSES;
    return (struct wanted_label){
        .column = graph->inputs[graph_input_of(graph, labels)].source,
        .dtype = labels->dtype,
        .shape = shape_from(&labels->shape, 1), /* of a row */
        .rule = is_asked ? loss->loss->labels : LABELS_ANY,
        .classes = logits->answers ? logits->classes : logits->shape.dim[logits->shape.rank - 1],
        .may_be_none = labels->shape.rank > 1,
        .loss = loss->loss->object.name,
    };
}

/* How labels are changed for the losses */
struct transform session_transform(const struct session *s, const struct source_spec *source)
{
    const struct format *format = source->format.kind->descriptor;
    const struct data_spec *data = &s->options.spec->data;
    struct transform transform = {
        .scale = format->scales ? 1 : data->scale,
        .offset = format->scales ? 0 : data->offset,
        .label_count = s->graph->head_count,
        .without_labels = s->options.without_labels,
    };
    for (int i = 0; i < s->graph->head_count; i++)
        transform.labels[i] = wanted_label(s->graph, &s->graph->heads[i].loss);
    for (int i = 0; i < s->graph->head_count; i++)
        transform.weights[i] = s->graph->heads[i].loss.weights.name;
    return transform;
}

/* NULL: the variable is dense */
static const struct table_spec *describe_table(struct session *s, const struct param *param)
{
    if (!param->held) return NULL;
    struct table_spec *table = arena_new(&s->arena, sizeof *table);
    *table = (struct table_spec){
        .initializer = param->initializer,
        .initializer_attributes = param->initializer_attributes,
        .key = session_key(s, param),
        .most = param->held,
        .column = graph_input_of(s->graph, param->ids),
        .growth = param->growth,
        .penalty = param->of_all_rows,
    };
    return table;
}

/* in a single process pins to other ps and partitions have no meaning */
static err place(const struct session *s, const struct variable *variables, int ps_count,
                 struct arena *arena, struct layout **ret)
{
    struct placement_spec placement = {0};
    if (!s->options.only_evaluates) placement = s->options.spec->placement;
    if (!placement.partitioner.kind && s->options.balances)
        placement.partitioner.kind = kinds_find(&partitioner_kinds, "balanced");
    return layout_make(&placement, variables, s->graph->param_count, ps_count, arena, ret);
}

static err make_layout(struct session *s)
{
    const struct graph *g = s->graph;
    struct variable *variables = arena_array(&s->arena, (size_t)g->param_count, sizeof *variables);
    for (int i = 0; i < g->param_count; i++) {
        const struct param *param = g->params[i];
        variables[i] = (struct variable){.name = param->name,
                                         .shape = param->shape,
                                         .table = describe_table(s, param),
                                         .moving = param->is_frozen ? 0 : param->moving,
                                         .is_frozen = param->is_frozen};
    }
    if (!s->options.only_evaluates)
        TRY(optimizers_check(&s->options.spec->optimizers, variables, g->param_count, &s->arena));
    return place(s, variables, s->options.ps_count, &s->arena, &s->layout);
}

/* The gradients of each optimizer's variables are clipped as it says. */
static bool clips(const struct spec *spec)
{
    for (int i = 0; i < spec->optimizers.count; i++)
        if (spec->optimizers.at[i].clip.kind) return true;
    return false;
}

bool session_keeps_sums(const struct session *s)
{
    const bool sums = s->options.batches_per_push > 1;
    return sums && (clips(s->options.spec) || s->options.towers.count > 0 || s->accumulates);
}

static err open_clipping(struct session *s)
{
    const struct graph *g = s->graph;
    const size_t count = (size_t)g->param_count;
    s->clip.gradients = arena_array(&s->arena, count, sizeof(float *));
    s->clip.sizes = arena_array(&s->arena, count, sizeof(int64_t));
    s->clip.is_on = clips(s->options.spec);
    s->optimizer_of = arena_array(&s->arena, count, sizeof *s->optimizer_of);
    for (int i = 0; i < g->param_count; i++)
        s->optimizer_of[i] =
            optimizers_find(&s->options.spec->optimizers, g->params[i]->name, g->params[i]->moving);
    if (!session_keeps_sums(s)) return OK;
    s->kept = arena_array(&s->arena, count, sizeof(float *));
    for (int i = 0; i < g->param_count; i++)
        TRY(device_floats(s->options.device, param_floats(g->params[i]), &s->kept[i]));
    return OK;
}

/* A mirror is not needed where a session only evaluates, which makes its own block, nor in a single
 * process, which binds memory of the device. */
static bool mirrors(const struct session *s)
{
    const struct session_options *o = &s->options;
    return o->device->is_separate && !o->only_evaluates && !o->binds_device_memory;
}

void session_plan_overlap(struct session *s)
{
    const struct session_options *o = &s->options;
    s->overlap = overlap_of_step(&(struct overlap_step){
        .is_sync = o->spec->train.mode == MODE_SYNC,
        .is_alone = !o->exchange,
        .parts = o->parts,
        .is_mirrored = mirrors(s),
        .mirror_lets_leave = mirror_lets_leave(&s->replica.mirror),
        .has_towers = o->towers.count || s->accumulates,
        .clips = s->clip.is_on,
        .is_looked_at = s->tolerates_nan || s->is_watched,
        .sums_batches = o->batches_per_push > 1,
        .has_rows = rows_are_used(&s->rows),
        .has_inlet = s->replica.plan && s->replica.plan->inlet,
        .knows_next_batch = !o->remote_input && s->data.train && s->data.train->rows > 0,
    });
}

static err open_replica(struct session *s)
{
    const struct session_options *o = &s->options;
    session_plan_overlap(s);
    const struct replica_options options = {
        .device = o->device,
        .graph = s->graph,
        .layout = s->layout,
        .mirrors = mirrors(s),
        .exchange = s->overlap & OVERLAP_FORWARD ? o->exchange : NULL,
        .leaves_within_node = s->overlap & OVERLAP_WITHIN_NODE,
        .number = o->number,
        .value_number = o->value_number,
    };
    return replica_open(&options, &s->arena, &s->replica);
}

/* Which columns of the data are read; a graph that evaluates reads the same ones as one that
 * trains. */
static void find_columns_read(const struct session *s, bool ret[COLUMNS_MAX])
{
    memset(ret, 0, COLUMNS_MAX * sizeof *ret);
    for (int i = 0; i < s->graph->input_count; i++) ret[s->graph->inputs[i].source] = true;
}

/* reads: borrowed until the stream is begun */
static struct stream_options training_stream(const struct session *s, int worker, bool *reads)
{
    const struct spec *spec = s->options.spec;
    const bool is_handed_out = s->options.is_handed_out;
    find_columns_read(s, reads);
    return (struct stream_options){
        .transform = session_transform(s, &spec->data.train),
        .reads = reads,
        .batch = spec->data.batch_size,
        .shuffle = spec->data.shuffle,
        .key = random_key((uint64_t)spec->seed, "data"),
        .worker = is_handed_out ? 0 : worker,
        .workers = is_handed_out ? 1 : s->options.workers,
        .per_round = is_handed_out ? 1 : s->options.batches_per_round,
        .is_handed_out = is_handed_out,
        .prefetch = (int)spec->data.prefetch,
    };
}

/* Allowed, but rarely intended: then an epoch is less than one step. */
static void warn_of_few_rows(const struct session *s)
{
    const int64_t rows = s->data.train->rows, batch = s->options.spec->data.batch_size;
    if (s->options.worker != 0 || rows == 0 || batch <= rows) return;
    log_line(LOG_WARNING,
             "data.batch_size %lld is more than the %lld rows of data.train: a step has rows more "
             "than once, and is more than an epoch",
             (long long)batch, (long long)rows);
}

/* Checks the labels of all rows of both sets before the first step. */
static err begin_training_data(struct session *s)
{
    bool reads[COLUMNS_MAX];
    const struct stream_options options = training_stream(s, s->options.worker, reads);
    if (!s->data.train) return OK;
    warn_of_few_rows(s);
    const err e = s->data.train->calls->begin(s->data.train, &options);
    return e ? fail_prefix(e, "data.train") : OK;
}

err session_open_share(const struct session *s, int worker, struct session_share *ret)
{
    struct stream_options options = training_stream(s, worker, ret->reads);
    struct batch_source *source;
    options.is_stored = true;
    TRY(batch_source_share(s->data.train, &source));
    if (!source)
        TRY(open_set(s, "data.train", &s->options.spec->data.train, s->data.train_columns, NULL,
                     &source));
    const err e = source->calls->begin(source, &options);
    if (e) {
        batch_source_close(source);
        return fail_prefix(e, "data.train");
    }
    ret->source = source;
    return OK;
}

static err begin_evaluation_data(struct session *s)
{
    if (!s->data.evaluation || s->options.asked) return OK;
    bool reads[COLUMNS_MAX];
    find_columns_read(s, reads);
    const struct stream_options options = {
        .transform = session_transform(s, &s->options.spec->data.eval),
        .reads = reads,
        .batch = session_evaluation_batch(s, s->options.spec->data.batch_size),
        .is_once = true,
        .workers = 1,
        .prefetch = 1,
    };
    const err e = s->data.evaluation->calls->begin(s->data.evaluation, &options);
    return e ? fail_prefix(e, "data.eval") : OK;
}

/* Rows of an evaluation batch: what the spec says, else the number of lanes, else the training
 * batch, but at least 100. */
int64_t session_evaluation_batch(const struct session *s, int64_t batch)
{
    int64_t rows = s->options.spec->data.eval_batch_size;
    batch /= s->options.spec->train.accumulate; /* accumulation concerns training alone */
    if (s->options.feeds_rows) rows = 1;
    if (s->options.asked) rows = s->options.asked->most;
    if (!rows) rows = s->data.evaluation->lanes;
    if (!rows) rows = batch < 100 ? 100 : batch;
    return rows < s->data.evaluation->rows ? rows : s->data.evaluation->rows;
}

/* ---- what is carried from batch to batch ---- */

static const struct node *node_that_carries(const struct graph *graph)
{
    for (int i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].carries) return &graph->nodes[i];
    return NULL;
}

static err check_lanes(const char *what, const struct batch_source *data, int64_t rows,
                       const char *of)
{
    if (data->lanes == 0 || (data->lanes == rows && data->rows % rows == 0)) return OK;
    if (data->lanes != rows)
        return fail(ERR_INPUT, "%s: lanes: expected %lld, the rows of %s, got %lld", what,
                    (long long)rows, of, (long long)data->lanes);
    return fail(ERR_INPUT, "%s: take: expected a multiple of the %lld lanes, got %lld rows", what,
                (long long)rows, (long long)data->rows);
}

/* With carried states row r of a batch must continue row r of the batch before. */
static err check_order(const struct session *s)
{
    const struct session_options *o = &s->options;
    const struct data_spec *data = &o->spec->data;
    if (data->shuffle) return fail(ERR_INPUT, "data.shuffle: expected false");
    if (o->spec->train.mode == MODE_ASYNC && o->workers > 1)
        return fail(ERR_INPUT, "train.mode: expected sync where there are several workers, since "
                               "async ones take batches as they come");
    if (s->accumulates) return fail(ERR_INPUT, "train.accumulate: expected 1");
    if (o->batches_per_push > 1)
        return fail(ERR_INPUT, "train.replicas_to_aggregate: at most one batch per worker");
    if (o->remote_input || !s->data.train) return OK; /* not yet */
    return check_lanes("data.train", s->data.train, data->batch_size * o->workers,
                       "the batches of all workers");
}

static err check_carried(const struct session *s)
{
    const struct node *node = node_that_carries(s->graph);
    err e = OK;
    if (!node) return OK;
    if (!s->options.only_evaluates) e = check_order(s);
    if (!e && s->data.evaluation && !s->options.feeds_rows && !s->options.asked)
        e = check_lanes("data.eval", s->data.evaluation,
                        session_evaluation_batch(s, s->options.spec->data.batch_size),
                        "an evaluation batch");
    return e ? fail_prefix(e, "%s \"%s\" carries its state from batch to batch",
                           node->op->object.name, node->name)
             : OK;
}

static err check_tables(const struct session *s)
{
    const bool has_tables = s->layout->all_count > s->layout->slice_count;
    if (!has_tables || s->options.batches_per_push == 1) return OK;
    return fail(ERR_INPUT,
                "train.replicas_to_aggregate: a worker cannot sum %d batches into one "
                "push where the model has tables of rows: at most one per worker; a "
                "data.batch_size of %d times as many rows gives the same mean",
                s->options.batches_per_push, s->options.batches_per_push);
}

/* ---- before rows are read ---- */

/* For a session that has only this graph */
static err check_plan(struct session *plan)
{
    const struct run_view view = {.spec = plan->options.spec, .session = plan};
    TRY(check_carried(plan));
    TRY(make_layout(plan));
    TRY(check_tables(plan));
    TRY(towers_check(plan->options.towers.count, plan->graph->batch));
    TRY(session_check_warm_start(plan));
    return hooks_check(&view);
}

static err check_columns(struct columns_wanted *wanted, const struct column *columns, int count)
{
    const size_t offset = offsetof(struct session, data.wanted);
    const struct session *s = (struct session *)((char *)wanted - offset);
    const int64_t batch = s->options.spec->data.batch_size;
    struct session *plan = calloc(1, sizeof *plan);
    if (!plan) return fail(ERR_MEMORY, "no memory to look at the model");
    plan->options = s->options;
    err e = make_graph_of(s, columns, count, 0, batch, true, &plan->arena, &plan->graph);
    if (!e) e = check_plan(plan);
    arena_free(&plan->arena);
    free(plan);
    return e;
}

static err make_tower_graph(void *session, int64_t first_row, int64_t rows, struct arena *arena,
                            struct graph **ret)
{
    return make_graph(session, first_row, rows, true, arena, ret);
}

/* Opens what computes a step: the replica, or towers */
static err open_computing(struct session *s)
{
    const struct session_options *o = &s->options;
    const struct towers_options options = {
        .device = o->device,
        .towers = o->towers,
        .pieces = s->accumulates ? (int)o->spec->train.accumulate : 0,
        .whole = s->graph,
        .make = make_tower_graph,
        .context = s,
    };
    if (o->towers.count || s->accumulates) return towers_open(&options, &s->arena, &s->towers);
    TRY(session_open_plan(s));
    stepper_open(s->replica.plan, &s->replica.stepper);
    return OK;
}

static err count_epochs(const struct session *s)
{
    const struct spec *spec = s->options.spec;
    const int64_t rows = s->data.train ? s->data.train->rows : 0;
    if (s->options.only_evaluates) return OK;
    return optimizers_count_epochs(&spec->optimizers,
                                   spec_steps_per_epoch(spec, rows, s->options.workers));
}

static err open_parts(struct session *s)
{
    TRY(open_data(s));
    TRY(count_epochs(s));
    const bool trains = !s->options.only_evaluates;
    const int64_t batch = s->options.spec->data.batch_size;
    const int64_t rows = trains ? batch : session_evaluation_batch(s, batch);
    TRY(session_make_graph(s, rows, trains, &s->arena, &s->graph));
    TRY(check_features(s));
    TRY(check_carried(s));
    TRY(make_layout(s));
    TRY(session_check_memory(s));
    TRY(open_replica(s));
    TRY(open_clipping(s));
    TRY(rows_open(s->graph, s->layout, s->options.device, s->options.rows_from, &s->arena,
                  &s->rows));
    TRY(check_tables(s));
    TRY(begin_training_data(s));
    TRY(begin_evaluation_data(s));
    TRY(session_open_metrics(s));
    if (!trains) return OK;
    for (int i = 0; rows_are_used(&s->rows) && i < 2; i++)
        prepared_open(&s->rows, s->graph, s->data.train->columns, s->data.train->column_count,
                      &s->arena, &s->rows.batches[i]);
    TRY(session_check_warm_start(s));
    s->regularized = graph_has_regularizers(s->graph);
    s->replica.wants_penalty = s->regularized && s->replica.exchange;
    return open_computing(s);
}

err session_open(const struct session_options *options, struct session *ret)
{
    *ret = (struct session){.options = *options, .data.wanted = {.check = check_columns}};
    ret->accumulates = !options->only_evaluates && options->spec->train.accumulate > 1;
    err e = open_parts(ret);
    if (!e) session_plan_overlap(ret);
    if (e) session_close(ret);
    return e == ERR_INPUT ? fail_prefix(e, "%s", options->spec->source) : e;
}

err session_spread(const struct session *s, int ps_count, struct arena *arena, struct layout **ret,
                   struct rows *ret_rows)
{
    TRY(place(s, s->layout->variables, ps_count, arena, ret));
    return rows_open(s->graph, *ret, s->options.device, NULL, arena, ret_rows);
}

void session_close(struct session *s)
{
    struct device *d = s->options.device;
    towers_close(&s->towers);
    session_close_averages(s);
    rows_close(&s->rows);
    replica_close(&s->evaluation.replica);
    replica_close(&s->replica);
    for (int i = 0; s->kept && i < s->graph->param_count; i++)
        if (s->kept[i]) d->kernels->release(d, s->kept[i]);
    free(s->metrics.states);
    if (s->restored.values) d->kernels->release(d, s->restored.values);
    session_close_asked(s);
    session_close_restored(s);
    if (!s->options.remote_input) batch_source_close(s->data.train);
    batch_source_close(s->data.evaluation);
    features_free(s->data.features);
    arena_free(&s->arena);
    *s = (struct session){0};
}

void session_bind(struct session *s, int ps, void *values, float *gradients)
{
    replica_bind(&s->replica, ps, values, gradients);
    towers_forget(&s->towers);
}

void session_bind_rows(struct session *s, int ps, void *window, bool is_apart)
{
    rows_bind(&s->rows, ps, window, is_apart);
}

void session_unbind(struct session *s, int ps)
{
    rows_bind(&s->rows, ps, NULL, false);
    replica_unbind(&s->replica, ps);
}

void session_watch(struct session *s, struct trace *trace)
{
    s->trace = trace;
    if (s->replica.plan) s->replica.plan->trace = trace;
}

const struct plan *session_plan(const struct session *s)
{
    return s->towers.count ? s->towers.at[0].plan : s->replica.plan;
}
