/* evaluation.c - loss and metrics over the evaluation set, and predictions: what the last node says
 * of each row, in the form that its loss takes it. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/convert.h"
#include "core/train/session/session_inside.h"

static bool are_averaged(const struct session *s)
{
    return s->options.averages_from != NULL;
}

/* The evaluation's replica has memory of its own for the table rows of its batches. */
static err open_rows(struct session *s, struct replica *r)
{
    if (!rows_are_used(&s->rows)) return OK;
    prepared_open(&s->rows, r->graph, s->data.evaluation->columns, s->data.evaluation->column_count,
                  &s->arena, &s->evaluation.batch);
    const bool has_own = r == &s->evaluation.replica && !are_averaged(s); /* else they are open */
    return has_own ? replica_hold_tables(r, &s->arena) : OK;
}

/* Averages lie in a block of the device for each ps, as values do. */
static err open_averages(struct session *s, struct replica *r)
{
    const struct layout *layout = s->layout;
    const struct replica_options options = {
        .device = s->options.device, .graph = r->graph, .layout = layout};
    float **blocks = arena_array(&s->arena, (size_t)layout->ps_count, sizeof *blocks);
    TRY(replica_open(&options, &s->arena, r));
    s->evaluation.averages = blocks;
    for (int ps = 0; ps < layout->ps_count; ps++) {
        TRY(device_floats(r->device, layout->block_floats[ps] + 1, &blocks[ps]));
        replica_bind(r, ps, blocks[ps], NULL);
    }
    return OK;
}

static err take_averages(struct session *s, int ps, struct device *d)
{
    const struct average_source *from = s->options.averages_from;
    const int64_t floats = s->layout->block_floats[ps];
    float *to = s->evaluation.averages[ps];
    TRY(from->bring(from->context, ps));
    const float *came = s->replica.gradients[ps];
    if (d->is_separate && !s->options.binds_device_memory)
        d->kernels->upload(d, to, came, (size_t)floats * sizeof *to);
    else
        d->kernels->copy(d, to, came, floats);
    return d->kernels->synchronize(d); /* gradients are written next */
}

static err bring_averages(struct session *s, struct replica *r)
{
    for (int ps = 0; ps < s->layout->ps_count; ps++)
        if (s->layout->block_floats[ps]) TRY(take_averages(s, ps, r->device));
    replica_gather_values(r);
    return OK;
}

void session_close_averages(struct session *s)
{
    for (int ps = 0; s->evaluation.averages && ps < s->layout->ps_count; ps++)
        if (s->evaluation.averages[ps])
            s->options.device->kernels->release(s->options.device, s->evaluation.averages[ps]);
}

/* The evaluation's graph and its memory are made when they are first needed, and kept. */
static err open_replica(struct session *s, struct replica **ret)
{
    struct replica *r = s->options.only_evaluates ? &s->replica : &s->evaluation.replica;
    *ret = r;
    if (r->plan) return OK;
    if (r == &s->evaluation.replica) {
        const int64_t rows = session_evaluation_batch(s, s->options.spec->data.batch_size);
        r->device = s->options.device;
        TRY(session_make_graph(s, rows, false, &s->arena, &r->graph));
        if (are_averaged(s)) TRY(open_averages(s, r));
    }
    TRY(open_rows(s, r));
    return plan_open(r->graph, r->device, &r->plan);
}

/* Evaluates with the values that are bound now, from the first row of the set. */
static err begin(struct session *s, struct replica **ret)
{
    TRY(open_replica(s, ret));
    TRY(s->data.evaluation->calls->seek(s->data.evaluation, 0));
    session_forget_speculation(s);
    if (are_averaged(s)) return bring_averages(s, *ret);
    replica_gather_values(&s->replica);
    replica_share(*ret, &s->replica);
    return OK;
}

static err forward_batch(struct session *s, struct replica *r, struct batch batch)
{
    if (rows_are_used(&s->rows)) {
        prepared_make(&s->evaluation.batch, r->graph, &batch, 0);
        TRY(rows_fetch(&s->rows, r->graph, &s->evaluation.batch));
        batch = s->evaluation.batch.batch;
    }
    plan_forward(r->plan, &batch, 0);
    return OK;
}

enum { LOOK_MS = 50 };

/* Ends, since rows may be absent for a limited time. */
static err await_rows(struct session *s)
{
    const struct interlude *between = &s->options.interlude;
    struct batch_source *data = s->data.evaluation;
    err e;
    if (!between->play) return OK; /* next waits */
    while ((e = data->calls->await(data, 1, LOOK_MS)) == ERR_PEER)
        TRY(between->play(between->context, true));
    return e ? e : between->play(between->context, false);
}

/* The next rows of the set; 0: there are no more. */
static err forward(struct session *s, struct replica *r, int64_t *ret_rows)
{
    struct batch batch;
    TRY(s->data.evaluation->calls->next(s->data.evaluation, &batch));
    *ret_rows = batch.rows;
    return batch.rows > 0 ? forward_batch(s, r, batch) : OK;
}

/* ---- loss and metrics ---- */

/* Bytes of the states of all metrics, one after the other */
static size_t states_bytes(const struct session *s, int64_t rows)
{
    int64_t count = 0;
    for (int i = 0; i < s->graph->metric_count; i++)
        count += metric_state_count(&s->graph->metrics[i], rows);
    return (size_t)count * sizeof(double);
}

static void open_curves(struct session *s)
{
    const int count = s->graph->metric_count;
    s->evaluation.curves = arena_array(&s->arena, (size_t)count + 1, sizeof *s->evaluation.curves);
    for (int i = 0; s->data.evaluation && i < count; i++) {
        const struct metric_node *m = &s->graph->metrics[i];
        const int thresholds = m->metric->thresholds ? m->metric->thresholds(m) : 0;
        if (thresholds)
            s->evaluation.curves[i] =
                arena_array(&s->arena, (size_t)thresholds * PR_ROWS, sizeof **s->evaluation.curves);
    }
}

err session_open_metrics(struct session *s)
{
    const int64_t batch = s->graph->batch;
    const int64_t rows =
        s->data.evaluation && s->data.evaluation->rows > batch ? s->data.evaluation->rows : batch;
    s->evaluation.metrics =
        arena_array(&s->arena, (size_t)s->graph->metric_count + 1, sizeof *s->evaluation.metrics);
    s->metrics.last =
        arena_array(&s->arena, (size_t)s->graph->metric_count + 1, sizeof *s->metrics.last);
    open_curves(s);
    s->metrics.states = malloc(states_bytes(s, rows) + sizeof(double));
    return s->metrics.states ? OK : fail(ERR_MEMORY, "no memory for the metrics' states");
}

double session_metric(struct session *s, int metric)
{
    const struct metric_node *m = &s->graph->metrics[metric];
    if (s->metrics.has_last) return s->metrics.last[metric];
    const size_t count = (size_t)metric_state_count(m, s->fed.last_rows);
    memset(s->metrics.states, 0, count * sizeof *s->metrics.states);
    if (!s->towers.count)
        m->metric->update(m, s->options.device, s->fed.last_rows, s->metrics.states);
    for (int k = 0; k < s->towers.count; k++) {
        const struct tower *t = &s->towers.at[k];
        const struct metric_node *of = &t->graph->metrics[metric];
        if (t->batch.rows) of->metric->update(of, t->device, t->batch.rows, s->metrics.states);
    }
    return metric_result(m, s->metrics.states);
}

void session_keep_metrics(struct session *s)
{
    if (s->metrics.has_last) return;
    for (int i = 0; i < s->graph->metric_count; i++) s->metrics.last[i] = session_metric(s, i);
    s->metrics.has_last = true;
}

struct totals {
    double loss[HEADS_MAX], weight[HEADS_MAX];
};

static void evaluate_batch(struct session *s, struct plan *plan, int64_t rows, struct totals *t)
{
    const struct graph *g = plan->graph;
    double *state = s->metrics.states;
    for (int i = 0; i < g->head_count; i++) {
        const struct loss_node *loss = &g->heads[i].loss;
        t->loss[i] += plan_head_loss(plan, i, rows) * loss_divisor(loss);
        t->weight[i] += loss->counts.counted;
    }
    for (int i = 0; i < g->metric_count; i++) {
        const struct metric_node *m = &g->metrics[i];
        m->metric->update(m, plan->device, rows, state);
        state += metric_state_count(m, s->data.evaluation->rows);
    }
}

/* The sum of the heads' losses, weighted as in training */
static double total_loss(const struct graph *graph, const struct totals *t)
{
    double sum = 0;
    for (int i = 0; i < graph->head_count; i++)
        if (t->weight[i] > 0) sum += graph->heads[i].loss.factor * (t->loss[i] / t->weight[i]);
    return sum;
}

static err evaluate_all(struct session *s, struct replica *r, struct totals *t)
{
    int64_t rows;
    do {
        TRY(await_rows(s));
        TRY(forward(s, r, &rows));
        if (rows > 0) evaluate_batch(s, r->plan, rows, t);
    } while (rows > 0);
    return r->device->kernels->synchronize(r->device);
}

static void take_results(struct session *s, int64_t rows)
{
    double *state = s->metrics.states;
    for (int i = 0; i < s->graph->metric_count; i++) {
        const struct metric_node *m = &s->graph->metrics[i];
        if (s->evaluation.curves[i]) m->metric->curve(m, state, s->evaluation.curves[i]);
        s->evaluation.metrics[i] = metric_result(m, state);
        state += metric_state_count(m, rows);
    }
}

err session_evaluate(struct session *s, struct evaluation *ret)
{
    struct replica *r;
    *ret = (struct evaluation){0};
    if (!s->data.evaluation) return OK;
    TRY(begin(s, &r));
    const int64_t rows = s->data.evaluation->rows;
    struct totals t = {0};
    memset(s->metrics.states, 0, states_bytes(s, rows));
    TRY(evaluate_all(s, r, &t));
    take_results(s, rows);
    *ret = (struct evaluation){rows, total_loss(r->graph, &t), s->evaluation.metrics,
                               s->evaluation.curves};
    return OK;
}

/* ---- predictions ---- */

/* In place, of one row; the largest logit is taken off first, so that nothing overflows. */
static void softmax(float *row, int64_t columns)
{
    float top = row[0];
    double sum = 0;
    for (int64_t i = 1; i < columns; i++) top = fmaxf(top, row[i]);
    for (int64_t i = 0; i < columns; i++) sum += exp((double)row[i] - top);
    for (int64_t i = 0; i < columns; i++) row[i] = (float)(exp((double)row[i] - top) / sum);
}

/* Once for all of a set, on the host: an exponential per number is nothing beside the model. */
static void to_probabilities(const struct loss *loss, int64_t rows, int64_t columns, float *values)
{
    switch (loss->is_each ? PREDICTS_LOGIT : loss->predicts) {
    case PREDICTS_CLASS:
        for (int64_t i = 0; i < rows; i++) softmax(values + i * columns, columns);
        break;
    case PREDICTS_LOGIT:
        for (int64_t i = 0; i < rows * columns; i++)
            values[i] = (float)(1 / (1 + exp(-(double)values[i])));
        break;
    case PREDICTS_PROBABILITY:
    case PREDICTS_NUMBER:
        break;
    }
}

bool prediction_has_class(enum prediction predicts, int64_t columns)
{
    return predicts == PREDICTS_CLASS || (predicts != PREDICTS_NUMBER && columns == 1);
}

int64_t prediction_class(enum prediction predicts, const float *row, int64_t columns)
{
    int64_t best = 0;
    if (predicts != PREDICTS_CLASS) return row[0] > 0.5f;
    for (int64_t i = 1; i < columns; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

/* What is taken from the graph, batch by batch */
struct prediction_taking {
    const struct prediction_taker *taker;
    float *heads[HEADS_MAX], *nodes[PREDICTED_NODES_MAX]; /* [batch, columns], scratch */
};

static struct predicted download(struct device *d, const struct tensor *from, int64_t rows,
                                 float *to)
{
    const int64_t columns = shape_count_from(&from->shape, 1);
    d->kernels->download(d, to, from->value, (size_t)(rows * columns) * sizeof *to);
    return (struct predicted){columns, to};
}

static err predict_batch(struct replica *r, const struct prediction_taking *t,
                         struct predictions *p)
{
    const struct graph *g = r->graph;
    struct device *d = r->device;
    const int heads = t->taker->has_no_heads ? 0 : g->head_count;
    for (int i = 0; i < heads; i++)
        p->heads[i] = download(d, g->heads[i].loss.logits, p->rows, t->heads[i]);
    for (int i = 0; i < t->taker->node_count; i++)
        p->nodes[i] = download(d, &g->nodes[t->taker->nodes[i]].output, p->rows, t->nodes[i]);
    TRY(d->kernels->synchronize(d)); /* only now is it known whether all has come */
    for (int i = 0; i < heads; i++)
        to_probabilities(g->heads[i].loss.loss, p->rows, p->heads[i].columns, t->heads[i]);
    return OK;
}

/* Predictions are for examples that have one answer each. */
static err check_predicted(const struct graph *graph)
{
    for (int i = 0; i < graph->head_count; i++) {
        const struct loss_node *loss = &graph->heads[i].loss;
        if (loss->loss->predicts == PREDICTS_CLASS && loss->logits->shape.rank > 2)
            return fail(ERR_INPUT,
                        "\"%s\" has classes for each of several places of an example: predictions "
                        "are of examples that have one (dtrain sample writes text)",
                        loss->logits->name);
    }
    return OK;
}

static err predict_all(struct session *s, struct replica *r, const struct prediction_taking *t)
{
    struct predictions p = {0};
    for (;; p.first += p.rows) {
        TRY(forward(s, r, &p.rows));
        if (p.rows == 0) return OK;
        TRY(predict_batch(r, t, &p));
        TRY(t->taker->take(t->taker->context, &p));
    }
}

/* Makes the plan again if the present one does not keep the nodes that the taker wants to see. */
static void keep_nodes(struct session *s, const struct prediction_taker *taker)
{
    assert(taker->node_count <= PREDICTED_NODES_MAX);
    if (!taker->node_count) return;
    assert(s->options.only_evaluates);
    plan_close(s->replica.plan);
    s->replica.plan = NULL;
    s->graph->kept = taker->nodes;
    s->graph->kept_count = taker->node_count;
}

static err open_taking(struct prediction_taking *t, const struct graph *graph)
{
    const int heads = t->taker->has_no_heads ? 0 : graph->head_count;
    bool is_short = false;
    for (int i = 0; i < heads; i++) {
        t->heads[i] = malloc(tensor_bytes(graph->heads[i].loss.logits));
        is_short |= !t->heads[i];
    }
    for (int i = 0; i < t->taker->node_count; i++) {
        t->nodes[i] = malloc(tensor_bytes(&graph->nodes[t->taker->nodes[i]].output));
        is_short |= !t->nodes[i];
    }
    return is_short ? fail(ERR_MEMORY, "no memory for predictions") : OK;
}

static void close_taking(struct prediction_taking *t)
{
    for (int i = 0; i < HEADS_MAX; i++) free(t->heads[i]);
    for (int i = 0; i < PREDICTED_NODES_MAX; i++) free(t->nodes[i]);
}

err session_predict(struct session *s, const struct prediction_taker *taker)
{
    struct replica *r;
    struct prediction_taking t = {.taker = taker};
    if (!s->data.evaluation) return OK;
    keep_nodes(s, taker);
    TRY(begin(s, &r));
    if (!taker->has_no_heads) TRY(check_predicted(r->graph));
    err e = open_taking(&t, r->graph);
    if (!e) e = predict_all(s, r, &t);
    close_taking(&t);
    return e;
}

/* ---- rows that somebody brings ---- */

/* Graphs of several batch sizes, each ASKED_GROWTH times the next smaller: one row does not pay for
 * the arithmetic of a large batch, and few graphs have to be made. */
enum { ASKED_SIZES_MAX = 8, ASKED_GROWTH = 8 };

struct asked_size {
    int64_t rows;
    struct replica *replica; /* the session's own, for the largest size */
    struct replica own;      /* for the other sizes */
    struct prepared prepared;
};

struct asked_nodes {
    struct conversion *conversions; /* [column_count] */
    struct column *made;            /* [column_count] of the most rows, as a graph reads them */
    struct block memory;            /* of those */
    float *values[HEADS_MAX];       /* [most, columns] */
    struct asked_size sizes[ASKED_SIZES_MAX];
    int count;
};

bool session_reads_column(const struct session *s, int column)
{
    if (column == LABELS || s->data.evaluation->columns[column].is_label) return false;
    for (int i = 0; i < s->graph->input_count; i++)
        if (s->graph->inputs[i].source == column && s->graph->inputs[i].of_nodes) return true;
    return false;
}

/* Room for the columns that the graph reads: those that only losses read stay zero. */
static err make_columns(struct session *s, struct asked_nodes *a)
{
    const struct batch_source *data = s->data.evaluation;
    const int64_t most = s->graph->batch;
    uint64_t bytes = 0, at = 0;
    for (int i = 0; i < data->column_count; i++) {
        a->made[i] = a->conversions[i].made;
        bytes += whole_lines(column_row_bytes(&a->made[i]) * (uint64_t)most);
    }
    TRY(block_new(bytes, &a->memory));
    for (int i = 0; i < data->column_count; i++) {
        a->made[i].at = (char *)a->memory.at + at;
        at += whole_lines(column_row_bytes(&a->made[i]) * (uint64_t)most);
    }
    return OK;
}

static void find_conversions(struct session *s, struct asked_nodes *a)
{
    const struct transform transform = session_transform(s, &s->options.spec->data.eval);
    struct dataset described = {.column_count = s->data.evaluation->column_count};
    described.columns =
        arena_array(&s->arena, (size_t)described.column_count, sizeof *described.columns);
    memcpy(described.columns, s->data.evaluation->columns,
           (size_t)described.column_count * sizeof *described.columns);
    conversions_of(&transform, &described, a->conversions);
}

static err open_asked(struct session *s)
{
    const size_t columns = (size_t)s->data.evaluation->column_count;
    TRY(check_predicted(s->graph));
    struct asked_nodes *a = arena_new(&s->arena, sizeof *a);
    a->conversions = arena_array(&s->arena, columns, sizeof *a->conversions);
    a->made = arena_array(&s->arena, columns, sizeof *a->made);
    s->evaluation.asked = a;
    find_conversions(s, a);
    TRY(make_columns(s, a));
    for (int i = 0; i < s->graph->head_count; i++)
        a->values[i] = arena_new(&s->arena, tensor_bytes(s->graph->heads[i].loss.logits));
    for (int64_t rows = 1; rows < s->graph->batch && a->count < ASKED_SIZES_MAX - 1;
         rows *= ASKED_GROWTH)
        a->sizes[a->count++].rows = rows;
    a->sizes[a->count].rows = s->graph->batch;
    a->sizes[a->count++].replica = &s->replica;
    return OK;
}

void session_close_asked(struct session *s)
{
    if (!s->evaluation.asked) return;
    for (int i = 0; i < s->evaluation.asked->count; i++)
        replica_close(&s->evaluation.asked->sizes[i].own);
    block_drop(&s->evaluation.asked->memory);
}

/* Each size has memory of its own for the table rows of its batches. */
static err open_size(struct session *s, struct asked_size *size)
{
    const bool is_own = !size->replica;
    struct replica *r = is_own ? &size->own : size->replica;
    if (is_own) {
        r->device = s->options.device;
        TRY(session_make_graph(s, size->rows, false, &s->arena, &r->graph));
    }
    if (rows_are_used(&s->rows)) {
        prepared_open(&s->rows, r->graph, s->data.evaluation->columns,
                      s->data.evaluation->column_count, &s->arena, &size->prepared);
        if (is_own) TRY(replica_hold_tables(r, &s->arena));
    }
    TRY(plan_open(r->graph, r->device, &r->plan));
    size->replica = r;
    return OK;
}

/* The smallest size that has room for this many rows */
static err find_size(struct session *s, int64_t rows, struct asked_size **ret)
{
    struct asked_size *size = s->evaluation.asked->sizes;
    while (size->rows < rows) size++;
    *ret = size;
    if (!size->replica || !size->replica->plan) TRY(open_size(s, size));
    replica_gather_values(&s->replica);
    replica_share(size->replica, &s->replica);
    return OK;
}

static err forward_asked(struct session *s, struct asked_size *size, int64_t rows)
{
    struct replica *r = size->replica;
    s->said += 2; /* a batch of its own, which follows no other */
    struct batch batch = {.rows = rows,
                          .columns = s->evaluation.asked->made,
                          .column_count = s->data.evaluation->column_count,
                          .index = s->said};
    if (rows_are_used(&s->rows)) {
        prepared_make(&size->prepared, r->graph, &batch, 0);
        TRY(rows_fetch(&s->rows, r->graph, &size->prepared));
        batch = size->prepared.batch;
    }
    plan_forward(r->plan, &batch, 0);
    return OK;
}

static err take_answer(struct session *s, struct replica *r, struct predictions *ret)
{
    struct device *d = r->device;
    for (int i = 0; i < r->graph->head_count; i++) {
        const struct tensor *logits = r->graph->heads[i].loss.logits;
        const int64_t columns = shape_count_from(&logits->shape, 1);
        ret->heads[i].columns = columns;
        ret->heads[i].at = s->evaluation.asked->values[i];
        d->kernels->download(d, s->evaluation.asked->values[i], logits->value,
                             (size_t)(ret->rows * columns) * sizeof(float));
    }
    TRY(d->kernels->synchronize(d));
    for (int i = 0; i < r->graph->head_count; i++)
        to_probabilities(r->graph->heads[i].loss.loss, ret->rows, ret->heads[i].columns,
                         s->evaluation.asked->values[i]);
    return OK;
}

err session_predict_rows(struct session *s, const struct column *columns, int64_t rows,
                         struct predictions *ret)
{
    struct asked_size *size;
    assert(s->options.asked && rows >= 1 && rows <= s->graph->batch);
    *ret = (struct predictions){.rows = rows};
    if (!s->evaluation.asked) TRY(open_asked(s));
    TRY(find_size(s, rows, &size));
    for (int i = 0; i < s->data.evaluation->column_count; i++)
        if (columns[i].at && session_reads_column(s, i))
            convert(&s->evaluation.asked->conversions[i], &columns[i], 0, rows,
                    (void *)s->evaluation.asked->made[i].at);
    TRY(forward_asked(s, size, rows));
    return take_answer(s, size->replica, ret);
}

/* ---- texts ---- */

err session_text_model(const struct session *s, struct text_model *ret)
{
    const struct graph *graph = s->graph;
    const struct shape *logits = &graph->heads[0].loss.logits->shape;
    const struct column *ids = batch_source_column(s->data.evaluation, FEATURES_NAME);
    if (!ids || ids->dtype != INT64 || ids->shape.rank != 1)
        return fail(ERR_INPUT, "its data are no ids of a text, as {\"format\": \"text\"} has them");
    *ret = (struct text_model){ids->shape.dim[0], logits->dim[logits->rank - 1]};
    const struct shape wanted = {3, {graph->batch, ret->time, ret->classes}};
    if (graph->heads[0].loss.loss->predicts == PREDICTS_CLASS && shape_equal(logits, &wanted))
        return OK;
    return fail(ERR_INPUT,
                "its loss is not over classes for each of the %lld places of a row, so it does not "
                "say what comes next",
                (long long)ret->time);
}

/* Labels and other columns have no influence here: they are zeros. */
static err next_of(struct session *s, struct replica *r, const int64_t *ids, void *zeros)
{
    const struct batch_source *data = s->data.evaluation;
    struct column *columns = calloc((size_t)data->column_count, sizeof *columns);
    if (!columns) return fail(ERR_MEMORY, "no memory for a row of text");
    for (int i = 0; i < data->column_count; i++) {
        columns[i] = data->columns[i];
        columns[i].at = strcmp(columns[i].name, FEATURES_NAME) ? zeros : ids;
    }
    for (int i = 0; i < r->graph->input_count; i++)
        if (!r->graph->inputs[i].of_nodes)
            columns[r->graph->inputs[i].source].dtype = r->graph->inputs[i].tensor->dtype;
    s->said += 2; /* a batch of its own, which follows no other */
    const struct batch batch = {
        .rows = 1, .columns = columns, .column_count = data->column_count, .index = s->said};
    const err e = forward_batch(s, r, batch);
    free(columns);
    return e;
}

static size_t widest_input(const struct graph *graph)
{
    size_t widest = 0;
    for (int i = 0; i < graph->input_count; i++) {
        const size_t bytes = tensor_bytes(graph->inputs[i].tensor);
        widest = bytes > widest ? bytes : widest;
    }
    return widest;
}

err session_say_next(struct session *s, const int64_t *ids, int64_t count, float *ret_logits)
{
    struct replica *r;
    struct text_model text;
    TRY(session_text_model(s, &text));
    assert(count >= 1 && count <= text.time);
    TRY(begin(s, &r));
    int64_t *row = calloc((size_t)text.time, sizeof *row);
    void *zeros = calloc(1, widest_input(r->graph));
    err e = row && zeros ? OK : fail(ERR_MEMORY, "no memory for a row of text");
    if (!e) {
        memcpy(row, ids, (size_t)count * sizeof *row);
        e = next_of(s, r, row, zeros);
    }
    const float *logits = r->graph->heads[0].loss.logits->value;
    if (!e) {
        r->device->kernels->download(r->device, ret_logits, logits + (count - 1) * text.classes,
                                     (size_t)text.classes * sizeof *logits);
        e = r->device->kernels->synchronize(r->device);
    }
    free(row);
    free(zeros);
    return e;
}
