/* heads.c - the heads of a model: outputs with a loss, as the spec lists them. */
#include <string.h>

#include "core/graph/graph.h"

static const struct field head_fields[] = {
    FIELD_OF("name", STRING, struct head_spec, name,
             .help = "name of the head: its metrics are \"auc/NAME\", its loss is \"loss/NAME\""),
    FIELD_OF("logits", STRING, struct head_spec, logits, .fallback = "null", .group = "output",
             .help = "the node that the loss reads; null: the last one, or probability"),
    FIELD_OF("probability", STRING, struct head_spec, probability, .fallback = "null",
             .group = "output",
             .help = "as logits, for losses that take probabilities, such as log_loss"),
    FIELD_OF(
        "label", STRING, struct head_spec, label, .fallback = "null",
        .help = "which of the source's \"labels\"; null: the only one, or \"label\" of the source"),
    FIELD_OF("loss", VARIANT, struct head_spec, loss, .object = &loss_spec_object,
             .kinds = &loss_kinds, .help = "the objective of this head"),
    FIELD_OF("row_weight", STRING, struct head_spec, row_weight, .fallback = "null",
             .help = "a numeric column, or one of the source's labels, with the weight of each row "
                     "in this head's loss and metrics, instead of data.weight: rows of weight 0 "
                     "are ignored, as rows without a click by a head that predicts what follows a "
                     "click; null: data.weight, or 1"),
    FIELD_OF("weight", FLOAT, struct head_spec, weight, .fallback = "1", .max = 1e6,
             .help = "factor of this head's loss in the sum that training minimizes; 0: the loss "
                     "is only reported"),
    FIELD_OF("metrics", VARIANTS, struct head_spec, metrics, .fallback = "[]",
             .count_max = METRICS_MAX, .kinds = &metric_kinds,
             .help = "metrics of this head, beside its loss"),
    {0},
};

const struct object head_spec_object = {
    .name = "head",
    .summary = "one of several outputs, with its label, loss and metrics",
    .fields = head_fields,
    .size = sizeof(struct head_spec),
};

struct objects heads_listed(const struct model_spec *spec, struct arena *arena)
{
    if (spec->heads.count > 0) return spec->heads;
    struct head_spec *one = arena_new(arena, sizeof *one);
    *one = (struct head_spec){.loss = spec->loss, .weight = 1, .metrics = spec->metrics};
    return (struct objects){one, 1};
}

static err check_name(const struct head_spec *heads, int index)
{
    const char *name = heads[index].name;
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_.-";
    if (!*name || strlen(name) > HEAD_NAME_MAX || strspn(name, letters) != strlen(name))
        return fail(ERR_INPUT,
                    "name: expected 1 to %d letters, digits, '_', '.' or '-', got \"%s\"",
                    HEAD_NAME_MAX, name);
    for (int i = 0; i < index; i++)
        if (strcmp(heads[i].name, name) == 0)
            return fail(ERR_INPUT, "name: \"%s\" is the name of heads[%d]", name, i);
    return OK;
}

/* All heads must have one reduction: means of one head and sums of another would not compare. */
static err check_head(const struct head_spec *heads, int index)
{
    const struct head_spec *head = &heads[index];
    TRY(check_name(heads, index));
    if (head->logits && head->probability)
        return fail(ERR_INPUT, "expected one of logits and probability, got both");
    if (head->loss.reduction != heads[0].loss.reduction)
        return fail(ERR_INPUT, "loss.reduction: expected the same as of heads[0]");
    return OK;
}

err heads_check(const struct model_spec *spec)
{
    const struct head_spec *heads = spec->heads.at;
    const bool has_loss = spec->loss.loss.kind, has_heads = spec->heads.count > 0;
    if (has_loss == has_heads)
        return fail(ERR_INPUT, "expected one of loss and heads, got %s",
                    has_loss ? "both" : "none");
    if (has_heads && spec->metrics.count > 0)
        return fail(ERR_INPUT, "metrics: where there are heads each has its own");
    for (int i = 0; i < spec->heads.count; i++) {
        const err e = check_head(heads, i);
        if (e) return fail_prefix(e, "heads[%d]", i);
    }
    return OK;
}

const char *head_place(const struct head *head, const struct graph *graph, struct arena *arena)
{
    const char *loss = head->loss.loss->object.name;
    if (!head->name) return arena_format(arena, "loss (%s)", loss);
    return arena_format(arena, "heads[%d] (%s \"%s\")", (int)(head - graph->heads), loss,
                        head->name);
}
