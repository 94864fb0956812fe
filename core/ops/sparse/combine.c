/* combine.c - see combine.h. */
#include "core/ops/sparse/combine.h"

#include <inttypes.h>
#include <math.h>

enum { CAPACITY_STATIC, CAPACITY_DYNAMIC };
const char *const capacity_names[] = {
    [CAPACITY_STATIC] = "static", [CAPACITY_DYNAMIC] = "dynamic", NULL};

err capacity_growth(const struct capacity *c, const struct growth **ret)
{
    const bool is_idle = c->growth.admit_after == 1 && c->growth.evict_after_steps == 0 &&
                         c->growth.admit_by == SIGHTS_STEPS;
    *ret = c->kind == CAPACITY_DYNAMIC ? &c->growth : NULL;
    if (*ret || is_idle) return OK;
    return fail(ERR_INPUT, "%s: a table has this with \"capacity\": \"dynamic\" only",
                c->growth.admit_after > 1         ? "admit_after"
                : c->growth.evict_after_steps > 0 ? "evict_after_steps"
                                                  : "admit_by");
}

enum { ROWS_OF_BATCH, ROWS_OF_TABLE };
static const char *const rows_names[] = {
    [ROWS_OF_BATCH] = "batch", [ROWS_OF_TABLE] = "table", NULL};

static const struct field row_regularizer_fields[] = {
    FIELD_OF("l1", FLOAT, struct row_regularizer, regularizer.l1, .fallback = "0", .max = 1e9,
             .help = "penalty l1 * sum |w|"),
    FIELD_OF("l2", FLOAT, struct row_regularizer, regularizer.l2, .fallback = "0", .max = 1e9,
             .help = "penalty l2 * sum w^2"),
    FIELD_OF("rows", ENUM, struct row_regularizer, rows, .fallback = "\"batch\"",
             .choices = rows_names,
             .help = "batch: the rows that the batch names, each once; other rows cost nothing and "
                     "keep their values; table: all rows, which the ps change at every update: the "
                     "whole table is then in memory, an update takes as long as the table is "
                     "large, and the reported loss leaves the penalty out"),
    {0},
};

const struct object row_regularizer_object = {
    .name = "row_regularizer",
    .summary = "a penalty on the rows of a table",
    .fields = row_regularizer_fields,
    .size = sizeof(struct row_regularizer),
};

void row_regularizer_apply(const struct row_regularizer *r, struct param *table)
{
    if (r->rows == ROWS_OF_TABLE)
        table->of_all_rows = r->regularizer;
    else
        table->regularizer = r->regularizer;
}

static err check_ids(const struct node *node, const struct tensor *ids, bool grows)
{
    if (!grows && ids->buckets == ANY_ID)
        return fail(ERR_INPUT,
                    "inputs: the ids of \"%s\" are any: it needs a table of \"capacity\": "
                    "\"dynamic\", or a column that says how many there are (\"rows\", \"buckets\")",
                    ids->name);
    if (grows && ids->buckets != ANY_ID)
        return fail(
            ERR_INPUT,
            "capacity: \"%s\" has ids below %lld: a dynamic table is for a column that does "
            "not say how many there are",
            ids->name, (long long)ids->buckets);
    if (grows && !node->holds_batch_rows)
        return fail(ERR_INPUT, "capacity: a dynamic table has no place where all rows are held");
    return OK;
}

/* The shared table's rows are named by one more column. */
static err share_table(struct node *node, int input, const struct tensor *ids,
                       const struct param *param, int64_t width)
{
    const struct node *of = node->sharing.of;
    const char *owner = of->name;
    struct param *table = input < of->param_count ? &of->param[input] : NULL;
    if (!table || !table->ids)
        return fail(ERR_INPUT, "weights_of: \"%s\" has no table for \"%s\"", owner, ids->name);
    const int64_t rows = table->growth ? ANY_ID : table->shape.dim[0];
    const int64_t named = shape_count(&ids->shape);
    TRY(check_ids(node, ids, table->growth));
    if (ids->buckets != rows)
        return fail(ERR_INPUT, "table: that of \"%s\" has %" PRId64 " rows, \"%s\" names %" PRId64,
                    owner, rows, ids->name, ids->buckets);
    if (width != table->shape.dim[1])
        return fail(ERR_INPUT, "table: that of \"%s\" is %" PRId64 " wide, this node %" PRId64,
                    owner, table->shape.dim[1], width);
    if (!regularizer_is_within(&param->regularizer, &table->regularizer) ||
        !regularizer_is_within(&param->of_all_rows, &table->of_all_rows))
        return fail(ERR_INPUT, "regularizer: the table is that of \"%s\": say it there", owner);
    if (table->held) table->held = named < rows - table->held ? table->held + named : rows;
    node->param = of->param;
    node->param_count++;
    return OK;
}

err combine_add_table(struct node *node, struct arena *arena, int input, const struct param *param,
                      int64_t width)
{
    const struct tensor *ids = node->input[input];
    const int64_t named = shape_count(&ids->shape);
    if (node->sharing.of) return share_table(node, input, ids, param, width);
    TRY(check_ids(node, ids, param->growth));
    if (param->growth && !regularizer_is_none(&param->of_all_rows))
        return fail(ERR_INPUT, "regularizer: the rows of a dynamic table are those of its ids: "
                               "\"rows\": \"batch\"");
    struct param table = *param;
    table.shape = (struct shape){2, {param->growth ? 1 : ids->buckets, width}};
    table.ids = ids;
    if (node->holds_batch_rows) table.held = named < ids->buckets ? named : ids->buckets;
    return node_add_param(node, arena, &table);
}

err combine_initialize(int64_t width, struct arena *arena, struct param *table)
{
    const struct kind *kind = kinds_find(&initializer_kinds, "truncated_normal");
    void *attributes = arena_new(arena, kind->object->size);
    TRY(fields_defaults(kind->object, arena, attributes));
    *(double *)fields_at(kind->object, attributes, "stddev") = 1 / sqrt((double)width);
    table->initializer = kind->descriptor;
    table->initializer_attributes = attributes;
    return OK;
}

/* A named input of weights replaces those of the column. */
static const struct tensor *weights_of(const struct node *node, const struct tensor *ids)
{
    const struct tensor *named = node_named(node, COMBINE_WEIGHTS);
    return named ? named : ids->weights;
}

/* If rows are not combined, each id counts as an example of its own. */
static struct combine combine_of(const struct node *node, int i, int combiner)
{
    const struct tensor *ids = node->input[i];
    const struct tensor *weights = weights_of(node, ids);
    const struct param *table = &node->param[i];
    const int64_t all = shape_count(&ids->shape);
    const int64_t batch = combiner == COMBINER_NONE ? all : ids->shape.dim[0];
    return (struct combine){.batch = batch,
                            .places = all / batch,
                            .rows = table->held ? table->held : table->shape.dim[0],
                            .width = table->shape.dim[1],
                            .combiner = combiner == COMBINER_NONE ? COMBINER_SUM : combiner,
                            .ids = ids->value,
                            .weights = weights ? weights->value : NULL};
}

void combine_forward(const struct node *node, struct device *d, int i, int combiner, bool add)
{
    const struct combine c = combine_of(node, i, combiner);
    d->kernels->rows_combine(d, &c, node->output.value, node->param[i].value, add);
}

void combine_backward(const struct node *node, struct device *d, int i, int combiner)
{
    const struct combine c = combine_of(node, i, combiner);
    d->kernels->rows_combine_back(d, &c, node->param[i].gradient, node->output.gradient,
                                  node->add_params);
}
