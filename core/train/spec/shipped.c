/* shipped.c - blocks that the program brings along: what a spec may say of each, and the nodes that
 * it stands for, in which "$units" is what was said of units. */
#include <string.h>

#include "core/ops/layer.h"
#include "core/train/spec/expand.h"

struct multi_head_attention {
    int64_t units, heads;
    bool causal, use_bias;
    const char *mask;
    struct variant kernel_initializer;
};

static const struct field multi_head_attention_fields[] = {
    {.name = "units",
     .type = FIELD_INT,
     .offset = offsetof(struct multi_head_attention, units),
     .min = 1,
     .max = 1 << 20,
     .help = "numbers of each place of the output, and of its query, key and value"},
    {.name = "heads",
     .type = FIELD_INT,
     .offset = offsetof(struct multi_head_attention, heads),
     .min = 1,
     .max = 1024,
     .help = "heads that the units are divided among"},
    {.name = "causal",
     .type = FIELD_BOOL,
     .offset = offsetof(struct multi_head_attention, causal),
     .fallback = "false",
     .help = "a place takes of itself and those before it only"},
    {.name = "mask",
     .type = FIELD_STRING,
     .offset = offsetof(struct multi_head_attention, mask),
     .fallback = "null",
     .help = "a node of [batch, places], 0 where nothing is to be taken; null: of all"},
    {.name = "use_bias",
     .type = FIELD_BOOL,
     .offset = offsetof(struct multi_head_attention, use_bias),
     .fallback = "true",
     .help = "add a trained bias per output of each dense layer"},
    {.name = "kernel_initializer",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct multi_head_attention, kernel_initializer),
     .fallback = "\"glorot_uniform\"",
     .kinds = &initializer_kinds,
     .help = "initializer of the four kernels"},
    {0},
};

#define PROJECTION(name, input)                                                                    \
    "{\"op\": \"dense\", \"name\": \"" name "\", \"inputs\": [\"" input "\"], "                    \
    "\"units\": \"$units\", \"use_bias\": \"$use_bias\", "                                         \
    "\"kernel_initializer\": \"$kernel_initializer\"}"

static const char multi_head_attention_nodes[] =
    "[" PROJECTION("query", "input_0") "," PROJECTION("key", "input_last") "," PROJECTION(
        "value", "input_last") ","
                               "{\"op\": \"attention\", \"name\": \"heads\", \"inputs\": "
                               "[\"query\", \"key\", \"value\"], "
                               "\"heads\": \"$heads\", \"causal\": \"$causal\", \"mask\": "
                               "\"$mask\"}," PROJECTION("output", "heads") "]";

struct target_attention {
    struct ints units;
    int activation;
    const char *mask;
};

static const struct field target_attention_fields[] = {
    {.name = "units",
     .type = FIELD_INTS,
     .offset = offsetof(struct target_attention, units),
     .fallback = "[80, 40]",
     .min = 1,
     .max = 1 << 20,
     .count_min = 1,
     .count_max = 64,
     .help = "outputs of the layers that compare a place with the target"},
    {.name = "activation",
     .type = FIELD_ENUM,
     .offset = offsetof(struct target_attention, activation),
     .fallback = "\"sigmoid\"",
     .choices = activation_names,
     .help = "activation of these layers"},
    {.name = "mask",
     .type = FIELD_STRING,
     .offset = offsetof(struct target_attention, mask),
     .fallback = "null",
     .help = "a node of [batch, places], 0 where there is none; null: all are there"},
    {0},
};

/* The target in every place: added to nothing of each */
static const char target_attention_nodes[] =
    "[{\"op\": \"stack\", \"name\": \"target\", \"inputs\": [\"input_0\"], \"axis\": 1},"
    "{\"op\": \"scale\", \"name\": \"nothing\", \"inputs\": [\"input_last\"], \"factor\": 0},"
    "{\"op\": \"add\", \"name\": \"targets\", \"inputs\": [\"nothing\", \"target\"]},"
    "{\"op\": \"subtract\", \"name\": \"difference\", \"inputs\": [\"targets\", \"input_last\"]},"
    "{\"op\": \"multiply\", \"name\": \"product\", \"inputs\": [\"targets\", \"input_last\"]},"
    "{\"op\": \"concat\", \"name\": \"pairs\", \"axis\": -1, \"inputs\": [\"targets\", "
    "\"input_last\", \"difference\", \"product\"]},"
    "{\"op\": \"mlp\", \"name\": \"unit\", \"units\": \"$units\", \"activation\": "
    "\"$activation\"},"
    "{\"op\": \"dense\", \"name\": \"score\", \"units\": 1},"
    "{\"op\": \"reduce\", \"name\": \"scores\", \"reduction\": \"sum\", \"axes\": [-1]},"
    "{\"op\": \"softmax\", \"name\": \"weights\", \"mask\": \"$mask\"},"
    "{\"op\": \"stack\", \"name\": \"row\", \"inputs\": [\"weights\"], \"axis\": 1},"
    "{\"op\": \"matmul\", \"name\": \"taken\", \"inputs\": [\"row\", \"input_last\"]},"
    "{\"op\": \"reduce\", \"name\": \"output\", \"reduction\": \"sum\", \"axes\": [1]}]";

static const struct shipped all[] = {
    {{"multi_head_attention",
      "attention between dense layers: nodes NAME/query, NAME/key, NAME/value, NAME/heads, "
      "NAME/output; inputs: what is read, or the queries and what they read",
      multi_head_attention_fields, sizeof(struct multi_head_attention)},
     1,
     2,
     multi_head_attention_nodes},
    {{"target_attention",
      "DIN's attention: the places of the second input, weighted by how they go with the first; "
      "inputs: [batch, width] and [batch, places, width]; layers NAME/unit, NAME/score",
      target_attention_fields, sizeof(struct target_attention)},
     2,
     2,
     target_attention_nodes},
};
enum { COUNT = sizeof all / sizeof *all };

const struct kind *shipped_at(int i)
{
    static const struct kind kinds[COUNT] = {{&all[0].object, &all[0]}, {&all[1].object, &all[1]}};
    return i < COUNT ? &kinds[i] : NULL;
}

const struct shipped *shipped_find(const char *name)
{
    for (int i = 0; i < COUNT; i++)
        if (strcmp(all[i].object.name, name) == 0) return &all[i];
    return NULL;
}
