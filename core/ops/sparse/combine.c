/* combine.c - see combine.h. */
#include "core/ops/sparse/combine.h"

err combine_add_table(struct node *node, struct arena *arena, int input, const struct param *param,
                      int64_t width)
{
    const struct tensor *ids = node->input[input];
    const int64_t named = shape_count(&ids->shape);
    struct param table = *param;
    table.shape = (struct shape){2, {ids->buckets, width}};
    table.ids = ids;
    if (node->holds_batch_rows) table.held = named < ids->buckets ? named : ids->buckets;
    return node_add_param(node, arena, &table);
}

static struct combine combine_of(const struct node *node, int i, enum combiner combiner)
{
    const struct tensor *ids = node->input[i];
    const struct param *table = &node->param[i];
    return (struct combine){.batch = ids->shape.dim[0],
                            .places = shape_count_from(&ids->shape, 1),
                            .rows = table->held ? table->held : table->shape.dim[0],
                            .width = table->shape.dim[1],
                            .combiner = combiner,
                            .ids = ids->value,
                            .weights = ids->weights ? ids->weights->value : NULL};
}

void combine_forward(const struct node *node, struct device *d, int i, enum combiner combiner,
                     bool add)
{
    const struct combine c = combine_of(node, i, combiner);
    d->kernels->rows_combine(d, &c, node->output.value, node->param[i].value, add);
}

void combine_backward(const struct node *node, struct device *d, int i, enum combiner combiner)
{
    const struct combine c = combine_of(node, i, combiner);
    d->kernels->rows_combine_back(d, &c, node->param[i].gradient, node->output.gradient,
                                  node->add_params);
}
