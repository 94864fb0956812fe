/* models.c - see models.h. */
#include "tests/core/graph/models.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

static const struct field model_fields[] = {
    {.name = "model",
     .type = FIELD_VARIANTS,
     .offset = offsetof(struct model_spec, nodes),
     .object = &node_spec_object,
     .kinds = &op_kinds,
     .help = "nodes"},
    {.name = "heads",
     .type = FIELD_OBJECTS,
     .offset = offsetof(struct model_spec, heads),
     .fallback = "[]",
     .object = &head_spec_object,
     .help = "heads"},
    {.name = "loss",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct model_spec, loss),
     .fallback = "\"mean_squared_error\"",
     .kinds = &loss_kinds,
     .help = "loss"},
    {.name = "metrics",
     .type = FIELD_VARIANTS,
     .offset = offsetof(struct model_spec, metrics),
     .fallback = "[]",
     .kinds = &metric_kinds,
     .help = "metrics"},
    {0},
};

static const struct object model_object = {"spec", "a model", model_fields,
                                           sizeof(struct model_spec)};

err model_parse(struct model *m, const char *text, const struct setting *setting)
{
    *m = (struct model){.json = object_from(text)};
    struct model_spec spec;
    TRY(fields_parse(&model_object, m->json, "", &m->arena, &spec));
    m->columns[0].name = LABELS_NAME;
    m->columns[1] = (struct column){.name = FEATURES_NAME, .shape = setting->features};
    m->column_count = 2;
    for (int i = 0; i < setting->more_count; i++) m->columns[m->column_count++] = setting->more[i];
    const struct graph_options options = {
        .columns = m->columns,
        .column_count = m->column_count,
        .batch = setting->batch,
        .training = setting->training,
        .holds_batch_rows = setting->holds_batch_rows,
        .weight = setting->weight,
        .seed = 1,
    };
    return graph_make(&spec, &options, &m->arena, &m->graph);
}

static void *take(int64_t count)
{
    const size_t bytes = ((size_t)count * sizeof(float) / 64 + 1) * 64;
    void *memory = aligned_alloc(64, bytes);
    assert_non_null(memory);
    memset(memory, 0, bytes);
    return memory;
}

static void draw_params(struct graph *graph)
{
    for (int i = 0; i < graph->param_count; i++) {
        struct param *param = graph->params[i];
        const int64_t count = shape_count(&param->shape);
        param->value = take(count);
        param->gradient = graph->training ? take(count) : NULL;
        /* biases too, so that they are worth a gradient */
        for (int64_t k = 0; k < count; k++)
            param->value[k] = 0.5f * random_normal(random_key(3, param->name), (uint64_t)k);
    }
}

static void draw_batch(struct model *m)
{
    const struct graph *graph = m->graph;
    const struct tensor *labels = &graph->heads[0].loss.labels;
    const struct shape *logits = &graph->heads[0].loss.logits->shape;
    const int64_t count = graph->batch * column_width(&m->columns[1]);
    const int64_t label_count = shape_count(&labels->shape);
    m->features = take(count);
    m->labels = take(label_count);
    for (int64_t i = 0; i < count; i++) m->features[i] = random_normal(5, (uint64_t)i);
    for (int64_t i = 0; i < label_count; i++) {
        const uint64_t draw = random_u64(6, (uint64_t)i);
        if (labels->dtype == INT32)
            ((int32_t *)m->labels)[i] = (int32_t)(draw % (uint64_t)logits->dim[logits->rank - 1]);
        else if (graph->heads[0].loss.loss->predicts != PREDICTS_NUMBER)
            ((float *)m->labels)[i] = (float)(draw & 1);
        else
            ((float *)m->labels)[i] = random_normal(7, (uint64_t)i);
    }
    m->columns[0].dtype = labels->dtype;
    m->columns[0].at = m->labels;
    m->columns[1].at = m->features;
}

void model_open(struct model *m, struct device *device, const char *text,
                const struct setting *setting)
{
    if (model_parse(m, text, setting)) fail_msg("%s\n%s", error_text(), text);
    draw_params(m->graph);
    draw_batch(m);
    if (plan_open(m->graph, device, &m->plan)) fail_msg("%s", error_text());
}

void model_close(struct model *m)
{
    plan_close(m->plan);
    for (int i = 0; m->graph && i < m->graph->param_count; i++) {
        free(m->graph->params[i]->value);
        free(m->graph->params[i]->gradient);
    }
    free(m->features);
    free(m->labels);
    json_decref(m->json);
    arena_free(&m->arena);
}

struct batch model_batch(const struct model *m, int64_t rows)
{
    return (struct batch){.rows = rows, .columns = m->columns, .column_count = m->column_count};
}

void model_forward(struct model *m, int64_t rows, uint64_t draw)
{
    const struct batch batch = model_batch(m, rows);
    plan_forward(m->plan, &batch, draw);
}

double model_loss(struct model *m, int64_t rows, uint64_t draw)
{
    model_forward(m, rows, draw);
    return plan_loss(m->plan, rows, NULL, NULL);
}
