/* shipped.c - blocks that come with the program: the parameters of each, and the nodes that it
 * stands for, in which "$units" is the value of the parameter units. */
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
    FIELD_OF("units", INT, struct multi_head_attention, units, .min = 1, .max = 1 << 20,
             .help = "size of the output, query, key and value at each position"),
    FIELD_OF("heads", INT, struct multi_head_attention, heads, .min = 1, .max = 1024,
             .help = "number of heads that the units are divided among"),
    FIELD_OF("causal", BOOL, struct multi_head_attention, causal, .fallback = "false",
             .help = "each position attends only to itself and earlier positions"),
    FIELD_OF("mask", STRING, struct multi_head_attention, mask, .fallback = "null",
             .help = "a node of [batch, positions], 0 at positions to ignore; null: none"),
    FIELD_OF("use_bias", BOOL, struct multi_head_attention, use_bias, .fallback = "true",
             .help = "add a trained bias per output of each dense layer"),
    FIELD_OF("kernel_initializer", VARIANT, struct multi_head_attention, kernel_initializer,
             .fallback = "\"glorot_uniform\"", .kinds = &initializer_kinds,
             .help = "initializer of the four kernels"),
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

/* The sum of the vectors of the second input, weighted by the node before */
#define TAKEN                                                                                      \
    "{\"op\": \"stack\", \"name\": \"row\", \"inputs\": [\"weights\"], \"axis\": 1},"              \
    "{\"op\": \"matmul\", \"name\": \"taken\", \"inputs\": [\"row\", \"input_last\"]},"            \
    "{\"op\": \"reduce\", \"name\": \"output\", \"reduction\": \"sum\", \"axes\": [1]}"

struct target_attention {
    struct ints units;
    int activation;
    const char *mask;
};

static const struct field target_attention_fields[] = {
    FIELD_OF("units", INTS, struct target_attention, units, .fallback = "[80, 40]", .min = 1,
             .max = 1 << 20, .count_min = 1, .count_max = 64,
             .help = "units of the layers that compare a position with the target"),
    FIELD_OF("activation", ENUM, struct target_attention, activation, .fallback = "\"sigmoid\"",
             .choices = activation_names, .help = "activation of these layers"),
    FIELD_OF("mask", STRING, struct target_attention, mask, .fallback = "null",
             .help = "a node of [batch, positions], 0 where the list has ended; null: no position "
                     "is masked"),
    {0},
};

static const char target_attention_nodes[] =
    "[{\"op\": \"compare\", \"name\": \"pairs\", \"inputs\": [\"input_0\", \"input_last\"]},"
    "{\"op\": \"mlp\", \"name\": \"unit\", \"units\": \"$units\", \"activation\": "
    "\"$activation\"},"
    "{\"op\": \"dense\", \"name\": \"score\", \"units\": 1},"
    "{\"op\": \"reduce\", \"name\": \"scores\", \"reduction\": \"sum\", \"axes\": [-1]},"
    "{\"op\": \"softmax\", \"name\": \"weights\", \"mask\": \"$mask\"}," TAKEN "]";

struct experts {
    struct ints units;
    int64_t experts;
    int activation;
};

static const struct field experts_fields[] = {
    FIELD_OF("experts", INT, struct experts, experts, .min = 1, .max = INPUTS_MAX,
             .help = "number of experts"),
    FIELD_OF("units", INTS, struct experts, units, .min = 1, .max = 1 << 20, .count_min = 1,
             .count_max = 64, .help = "units of each expert's layers"),
    FIELD_OF("activation", ENUM, struct experts, activation, .fallback = "\"relu\"",
             .choices = activation_names, .help = "activation of these layers"),
    {0},
};

static int64_t said_of(const json_t *said, const char *key)
{
    return json_integer_value(json_object_get(said, key));
}

/* "name_3": a node, or who reads it */
static json_t *numbered(const char *name, int64_t number)
{
    return json_sprintf("%s_%lld", name, (long long)number);
}

static json_t *make_experts(const json_t *said)
{
    json_t *nodes = json_array(), *outputs = json_array();
    for (int64_t i = 0; i < said_of(said, "experts"); i++) {
        json_array_append_new(nodes, json_pack("{s:s, s:o, s:[s], s:s, s:s}", "op", "mlp", "name",
                                               numbered("expert", i), "inputs", "input", "units",
                                               "$units", "activation", "$activation"));
        json_array_append_new(outputs, numbered("expert", i));
    }
    json_array_append_new(nodes, json_pack("{s:s, s:s, s:o, s:i}", "op", "stack", "name", "output",
                                           "inputs", outputs, "axis", 1));
    return nodes;
}

struct gate {
    int64_t experts;
};

static const struct field gate_fields[] = {
    FIELD_OF("experts", INT, struct gate, experts, .min = 1, .max = 1 << 20,
             .help = "number of experts in the second input"),
    {0},
};

static const char gate_nodes[] =
    "[{\"op\": \"dense\", \"name\": \"score\", \"inputs\": [\"input_0\"], \"units\": "
    "\"$experts\"},"
    "{\"op\": \"softmax\", \"name\": \"weights\"}," TAKEN "]";

struct cin {
    struct ints units;
    int activation;
    bool use_bias;
};

static const struct field cin_fields[] = {
    FIELD_OF("units", INTS, struct cin, units, .min = 1, .max = 1 << 20, .count_min = 1,
             .count_max = 64, .help = "number of vectors of each layer; their sums are the output"),
    FIELD_OF("activation", ENUM, struct cin, activation, .fallback = "\"linear\"",
             .choices = activation_names, .help = "activation of the layers"),
    FIELD_OF("use_bias", BOOL, struct cin, use_bias, .fallback = "true",
             .help = "add a trained bias to each vector"),
    {0},
};

/* The vectors of a layer: weighted sums of the products, number by number, of each vector of the
 * layer before with each of the input. Vectors are the last axis, so that a dense layer makes the
 * sums. */
static void add_cin_layer(json_t *nodes, size_t i, json_t *units)
{
    json_t *before = i ? numbered("vectors", (int64_t)i - 1) : json_string("fields");
    json_array_append_new(nodes,
                          json_pack("{s:s, s:o, s:[o], s:i}", "op", "stack", "name",
                                    numbered("column", (int64_t)i), "inputs", before, "axis", -1));
    json_array_append_new(nodes, json_pack("{s:s, s:o, s:[o, s]}", "op", "multiply", "name",
                                           numbered("products", (int64_t)i), "inputs",
                                           numbered("column", (int64_t)i), "row"));
    json_array_append_new(nodes, json_pack("{s:s, s:o, s:[i, i]}", "op", "reshape", "name",
                                           numbered("pairs", (int64_t)i), "shape", 0, -1));
    json_array_append_new(nodes, json_pack("{s:s, s:o, s:O, s:s, s:s}", "op", "dense", "name",
                                           numbered("vectors", (int64_t)i), "units", units,
                                           "activation", "$activation", "use_bias", "$use_bias"));
    json_array_append_new(nodes,
                          json_pack("{s:s, s:o, s:s, s:[i]}", "op", "reduce", "name",
                                    numbered("sums", (int64_t)i), "reduction", "sum", "axes", 1));
}

static json_t *make_cin(const json_t *said)
{
    json_t *nodes = json_array(), *outputs = json_array(), *units;
    size_t i;
    json_array_append_new(nodes, json_pack("{s:s, s:s, s:[s], s:[i, i]}", "op", "transpose", "name",
                                           "fields", "inputs", "input_0", "perm", 2, 1));
    json_array_append_new(nodes,
                          json_pack("{s:s, s:s, s:i}", "op", "stack", "name", "row", "axis", 2));
    json_array_foreach(json_object_get(said, "units"), i, units)
    {
        add_cin_layer(nodes, i, units);
        json_array_append_new(outputs, numbered("sums", (int64_t)i));
    }
    if (json_array_size(outputs) > 1)
        json_array_append_new(nodes, json_pack("{s:s, s:s, s:O}", "op", "concat", "name", "output",
                                               "inputs", outputs));
    json_decref(outputs);
    return nodes;
}

struct cross_mixture {
    int64_t width, rank, experts;
    int activation;
};

static const struct field cross_mixture_fields[] = {
    FIELD_OF("width", INT, struct cross_mixture, width, .min = 1, .max = 1 << 20,
             .help = "size of the input and output vectors"),
    FIELD_OF("rank", INT, struct cross_mixture, rank, .min = 1, .max = 1 << 20,
             .help = "rank: size of the vector to which each expert projects its input"),
    FIELD_OF("experts", INT, struct cross_mixture, experts, .fallback = "4", .min = 1,
             .max = INPUTS_MAX, .help = "number of experts"),
    FIELD_OF("activation", ENUM, struct cross_mixture, activation, .fallback = "\"tanh\"",
             .choices = activation_names, .help = "activation of the projected vectors"),
    {0},
};

static json_t *cross_step(const char *name, int64_t number, json_t *input, const char *units,
                          bool is_of_rank)
{
    return json_pack("{s:s, s:o, s:[o], s:s, s:s, s:b}", "op", "dense", "name",
                     numbered(name, number), "inputs", input, "units", units, "activation",
                     is_of_rank ? "$activation" : "linear", "use_bias", !is_of_rank);
}

/* The gate's sum comes before the product with x0, which is the same for all experts. */
static json_t *make_cross_mixture(const json_t *said)
{
    json_t *nodes = json_array(), *outputs = json_array();
    for (int64_t i = 0; i < said_of(said, "experts"); i++) {
        json_array_append_new(nodes,
                              cross_step("down", i, json_string("input_last"), "$rank", true));
        json_array_append_new(nodes, cross_step("core", i, numbered("down", i), "$rank", true));
        json_array_append_new(nodes, cross_step("up", i, numbered("core", i), "$width", false));
        json_array_append_new(outputs, numbered("up", i));
    }
    json_array_append_new(nodes, json_pack("{s:s, s:s, s:o, s:i}", "op", "stack", "name", "experts",
                                           "inputs", outputs, "axis", 1));
    json_array_append_new(nodes,
                          json_pack("{s:s, s:s, s:[s, s], s:s}", "op", "gate", "name", "gate",
                                    "inputs", "input_last", "experts", "experts", "$experts"));
    json_array_append_new(nodes, json_pack("{s:s, s:s, s:[s, s]}", "op", "multiply", "name",
                                           "crossed", "inputs", "input_0", "gate"));
    json_array_append_new(nodes, json_pack("{s:s, s:s, s:[s, s]}", "op", "add", "name", "output",
                                           "inputs", "crossed", "input_last"));
    return nodes;
}

static const struct shipped all[] = {
    {{"multi_head_attention",
      "multi-head attention: nodes NAME/query, NAME/key, NAME/value, NAME/heads, NAME/output; "
      "inputs: one sequence, or queries and the sequence they attend to",
      multi_head_attention_fields, sizeof(struct multi_head_attention)},
     1,
     2,
     multi_head_attention_nodes},
    {{"target_attention",
      "DIN's attention: the positions of the second input, weighted by their relevance to the "
      "first; inputs: [batch, width] and [batch, positions, width]; layers NAME/unit, NAME/score",
      target_attention_fields, sizeof(struct target_attention)},
     2,
     2,
     target_attention_nodes},
    {{"experts",
      "parallel dense layers with a common input: [batch, experts, units]; NAME/expert_0 ...",
      experts_fields, sizeof(struct experts)},
     1,
     INPUTS_MAX,
     .make = make_experts},
    {{"gate",
      "softmax gate over experts, computed from the first input; inputs: [batch, width] and "
      "[batch, experts, units]; layer NAME/score",
      gate_fields, sizeof(struct gate)},
     2,
     2,
     gate_nodes},
    {{"cin",
      "xDeepFM's compressed interaction network: reads [batch, vectors, width]; layers "
      "NAME/vectors_0 ..., the sums of whose vectors are the output",
      cin_fields, sizeof(struct cin)},
     1,
     1,
     .make = make_cin},
    {{"cross_mixture",
      "DCN v2's low-rank mixture of cross layers: x0 (sum of gate U act(C act(V x))) + x, of "
      "inputs x0 and x (one input: both); layers NAME/down_0, NAME/core_0, NAME/up_0 ...",
      cross_mixture_fields, sizeof(struct cross_mixture)},
     1,
     2,
     .make = make_cross_mixture},
};
enum { COUNT = sizeof all / sizeof *all };

const struct kind *shipped_at(int i)
{
    static const struct kind kinds[COUNT] = {{&all[0].object, &all[0]}, {&all[1].object, &all[1]},
                                             {&all[2].object, &all[2]}, {&all[3].object, &all[3]},
                                             {&all[4].object, &all[4]}, {&all[5].object, &all[5]}};
    return i < COUNT ? &kinds[i] : NULL;
}

const struct shipped *shipped_find(const char *name)
{
    for (int i = 0; i < COUNT; i++)
        if (strcmp(all[i].object.name, name) == 0) return &all[i];
    return NULL;
}
