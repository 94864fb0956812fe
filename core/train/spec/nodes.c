/* nodes.c - see expand.h: one pass over the nodes, which copies each or replaces it by the nodes
 * that it stands for.
 *
 * Nodes of a block are in a scope of their own: their names begin with the name of the block's use,
 * and their inputs are looked up among them first, then outside. Every node that is written gets a
 * name, so that "input" can be resolved to one.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "core/ops/layer.h"
#include "core/train/spec/expand.h"

enum {
    LEVELS_MAX = 32,
    WITHIN_MAX = 1024, /* bytes of the beginning of a message */
    UNITS_MAX = 1 << 24,
    LAYERS_MAX = 256,
};

/* ---- what stands for nodes ---- */

struct mlp {
    struct layer layer;
    struct ints units;
    double dropout;
    bool normalizes;
};

static const struct field mlp_fields[] = {
    FIELD_OF("units", INTS, struct mlp, units, .min = 1, .max = UNITS_MAX, .count_min = 1,
             .count_max = LAYERS_MAX, .help = "outputs per example of each layer: [256, 128]"),
    FIELD_OF("dropout", FLOAT, struct mlp, dropout, .fallback = "0", .max = 0.999999,
             .help = "fraction of the outputs of every layer to drop in training; 0: none"),
    FIELD_OF("batch_normalization", BOOL, struct mlp, normalizes, .fallback = "false",
             .help = "behind every layer and its dropout, with momentum 0.999 (as TensorFlow's DNN "
                     "estimators): NAME/batch_normalization_0 ..."),
    FIELD_OF("activation", ENUM, struct mlp, layer.activation, .fallback = "\"relu\"",
             .choices = activation_names,
             .help = "activation applied to the outputs of every layer"),
    LAYER_LINEAR_FIELDS,
    {0},
};

static const struct object mlp_object = {
    "mlp", "a stack of dense layers: nodes NAME/layer_0, NAME/layer_1 ...", mlp_fields,
    sizeof(struct mlp)};

struct repeat {
    int64_t times;
    json_t *block;
    const char *name, *weights_of;
    struct strings inputs;
};

static const struct field repeat_fields[] = {
    FIELD_OF("repeat", INT, struct repeat, times, .min = 1, .max = NODES_MAX,
             .help = "number of repetitions, each of which reads the previous one"),
    FIELD_OF("block", JSON, struct repeat, block,
             .help = "list of nodes, the last of which is the output; \"input\" among their inputs "
                     "names the block's input"),
    FIELD_OF(
        "name", STRING, struct repeat, name, .fallback = "null",
        .help = "nodes are called NAME/block_0/..., NAME/block_1/...; default: repeat, with _1, _2 "
                "... if that is taken"),
    FIELD_OF("inputs", STRINGS, struct repeat, inputs, .fallback = "[]", .count_max = INPUTS_MAX,
             .help = "inputs of the first repetition; default: the previous node"),
    FIELD_OF("weights_of", STRING, struct repeat, weights_of, .fallback = "null",
             .help = "an earlier repeat of the same block with which each node shares its "
                     "variables; null: separate variables"),
    {0},
};

const struct object repeat_object = {"repeat", "nodes that follow one another several times",
                                     repeat_fields, sizeof(struct repeat)};

struct spec_block {
    struct strings parameters;
    json_t *nodes;
};

static const struct field block_fields[] = {
    FIELD_OF("parameters", STRINGS, struct spec_block, parameters, .fallback = "[]",
             .help = "names of the values that a node using the block must give, beside name and "
                     "inputs: \"$filters\" in the block stands for its \"filters\""),
    FIELD_OF("nodes", JSON, struct spec_block, nodes,
             .help = "list of nodes, the last of which is the output; \"input\" among their inputs "
                     "names the block's input. They are called NAME/..."),
    {0},
};

const struct object block_object = {"block",
                                    "nodes that {\"op\": BLOCK, \"name\": NAME, ...} stands for",
                                    block_fields, sizeof(struct spec_block)};

static const struct kind *node_at(int index)
{
    static const struct kind mlp = {&mlp_object, NULL};
    int ops = 0;
    while (op_kinds.at(ops)) ops++;
    return index == ops ? &mlp : index < ops ? op_kinds.at(index) : shipped_at(index - ops - 1);
}

const struct kinds node_kinds = {
    .key = "op", .noun = "op", .at = node_at, .beside = &repeat_object, .has_more = true};

/* ---- scopes ---- */

struct scope {
    const struct scope *outer; /* NULL: that of the model */
    const char *prefix;        /* of names: "", "tower/" */
    const char *within;        /* for messages: "", "model[4] (tower \"t\"): " */
    json_t *input;             /* what a block reads: a list of names */
    bool is_explicit;          /* the first node reads these instead of the node before it */
    bool is_begun;
    const char *twin; /* prefix of the nodes whose weights are shared with those of this scope;
                         NULL: none */
    json_t *outputs;  /* a name in this scope: the node that has its output */
    json_t *taken;    /* names in this scope, also those still to come */
};

struct spec_writer {
    const struct definitions *defined;
    json_t *blocks;
    json_t *columns; /* their names, as keys */
    json_t *nodes, *places;
    json_t
        *several; /* for embeddings of several inputs, by name: the nodes that have their tables */
    struct arena *arena;
};

static err no_memory(void)
{
    return fail(ERR_MEMORY, "no memory for the spec");
}

/* The node of this name: in the scope, or outside it; NULL: none. */
static const char *find_output(const struct scope *scope, const char *name)
{
    const char *found = NULL;
    for (; scope && !found; scope = scope->outer)
        found = json_string_value(json_object_get(scope->outputs, name));
    return found;
}

/* As tf.layers counts: the op's name, or with _1, _2 ... where that is taken. */
static const char *pick_name(struct spec_writer *w, struct scope *scope, const char *op)
{
    const char *name = op;
    for (int i = 1; json_object_get(scope->taken, name); i++)
        name = arena_format(w->arena, "%s_%d", op, i);
    json_object_set_new(scope->taken, name, json_true());
    return name;
}

static const char *last_written(const struct spec_writer *w)
{
    const size_t count = json_array_size(w->nodes);
    const json_t *last = count ? json_array_get(w->nodes, count - 1) : NULL;
    return last ? json_string_value(json_object_get(last, "name")) : FEATURES_NAME;
}

/* The prefix of the names of a node, or of those that it stands for; NULL: it has none. */
static const char *find_whole_name(const struct spec_writer *w, const struct scope *scope,
                                   const char *name)
{
    while (scope && !json_object_get(scope->outputs, name)) scope = scope->outer;
    return scope ? arena_format(w->arena, "%s%s", scope->prefix, name) : NULL;
}

static err set_output(struct scope *scope, const char *name, const char *node)
{
    if (json_object_get(scope->outputs, name))
        return fail(ERR_INPUT, "the name \"%.100s\" is taken by an earlier node", name);
    return json_object_set_new(scope->outputs, name, json_string(node)) ? no_memory() : OK;
}

/* ---- inputs ---- */

static err add_matches(json_t *names, const char *pattern, bool are_keys, json_t *list)
{
    const char *key;
    json_t *value;
    json_object_foreach(names, key, value)
    {
        if (fnmatch(pattern, key, 0) != 0) continue;
        if (json_array_append_new(list, are_keys ? json_string(key) : json_incref(value)))
            return no_memory();
    }
    return OK;
}

/* First among the nodes of the block, then outside it; in the model columns come first. */
static err match(const struct spec_writer *w, const struct scope *scope, const char *pattern,
                 json_t *list)
{
    const size_t before = json_array_size(list);
    for (; scope && json_array_size(list) == before; scope = scope->outer) {
        if (!scope->outer) TRY(add_matches(w->columns, pattern, true, list));
        if (json_array_size(list) == before) TRY(add_matches(scope->outputs, pattern, false, list));
    }
    if (json_array_size(list) > before) return OK;
    return fail(ERR_INPUT,
                "\"%.100s\" matches no name of a column in data.columns, nor of an earlier node",
                pattern);
}

static bool is_pattern(const char *text)
{
    return strpbrk(text, "*?") != NULL;
}

/* "input_0", "input_1" ..., "input_last": an input of the block; NULL: it is none of these. */
static json_t *input_at(const struct scope *scope, const char *name)
{
    const size_t count = json_array_size(scope->input);
    char end;
    unsigned index;
    if (!scope->outer || count == 0) return NULL;
    if (strcmp(name, "input_last") == 0) return json_array_get(scope->input, count - 1);
    if (sscanf(name, "input_%4u%c", &index, &end) != 1) return NULL;
    return json_array_get(scope->input, index);
}

static err add_input(const struct spec_writer *w, const struct scope *scope, json_t *input,
                     json_t *list)
{
    const char *name = json_string_value(input);
    const char *node = name ? find_output(scope, name) : NULL;
    json_t *one = name ? input_at(scope, name) : NULL;
    if (one) return json_array_append(list, one) ? no_memory() : OK;
    if (name && scope->outer && strcmp(name, "input") == 0)
        return json_array_extend(list, scope->input) ? no_memory() : OK;
    if (node) return json_array_append_new(list, json_string(node)) ? no_memory() : OK;
    if (name && is_pattern(name) && !json_object_get(w->columns, name))
        return match(w, scope, name, list);
    return json_array_append(list, input) ? no_memory() : OK;
}

static void resolve_key(struct scope *scope, json_t *node, const char *key)
{
    const char *name = json_string_value(json_object_get(node, key));
    const char *output = name ? find_output(scope, name) : NULL;
    if (output) json_object_set_new(node, key, json_string(output));
}

/* Inputs with keys of their own, beside "inputs" */
static void resolve_named(struct scope *scope, json_t *node)
{
    const char *name = json_string_value(json_object_get(node, "op"));
    const struct kind *kind = name ? kinds_find(&op_kinds, name) : NULL;
    const struct op *op = kind ? kind->descriptor : NULL;
    resolve_key(scope, node, "table");
    for (int k = 0; op && op->named_inputs && op->named_inputs[k]; k++)
        resolve_key(scope, node, op->named_inputs[k]);
}

static void resolve_weights(const struct spec_writer *w, const struct scope *scope, json_t *node)
{
    const char *name = json_string_value(json_object_get(node, "weights_of"));
    const char *whole = name ? find_whole_name(w, scope, name) : NULL;
    if (whole) json_object_set_new(node, "weights_of", json_string(whole));
}

/* Names in the scope become names of nodes. */
static err resolve_inputs(const struct spec_writer *w, struct scope *scope, json_t *node,
                          const struct spec_place *at)
{
    json_t *inputs = json_object_get(node, "inputs"), *input;
    const bool is_first = !scope->is_begun;
    size_t i;
    resolve_named(scope, node);
    resolve_weights(w, scope, node);
    scope->is_begun = true;
    if (json_array_size(inputs) == 0 && (!inputs || json_is_array(inputs))) {
        if (!is_first || !scope->is_explicit) return OK;
        return json_object_set(node, "inputs", scope->input) ? no_memory() : OK;
    }
    if (!json_is_array(inputs)) return OK; /* to be refused */
    const struct spec_place of = spec_place_member(at, "inputs");
    TRY(spread_list(inputs, &of));
    json_t *list = json_array();
    err e = list ? OK : no_memory();
    for (i = 0; !e && i < json_array_size(inputs); i++) {
        input = json_array_get(inputs, i);
        e = add_input(w, scope, input, list);
        if (e) e = fail_prefix(e, "%s", spec_place_item(&of, i).text);
    }
    if (!e && json_object_set(node, "inputs", list)) e = no_memory();
    json_decref(list);
    return e;
}

/* ---- writing ---- */

/* Whose weights the nodes of a use share: those that it names, or their counterpart in the twin of
 * the scope. NULL: nobody's */
static const char *twin_of(const struct spec_writer *w, const struct scope *scope,
                           const json_t *node, const char *name)
{
    const char *said = json_string_value(json_object_get(node, "weights_of"));
    if (said) return said;
    return scope->twin ? arena_format(w->arena, "%s%s", scope->twin, name) : NULL;
}

/* The prefix of a scope that a use opens */
static const char *twin_prefix(const struct spec_writer *w, const struct scope *scope,
                               const json_t *node, const char *name)
{
    const char *twin = twin_of(w, scope, node, name);
    return twin ? arena_format(w->arena, "%s/", twin) : NULL;
}

/* Takes the node. */
static err write_node(struct spec_writer *w, const struct scope *scope, json_t *node,
                      const char *name, const struct spec_place *at)
{
    const char *whole = arena_format(w->arena, "%s%s", scope->prefix, name);
    const char *twin = twin_of(w, scope, node, name);
    if (json_object_set_new(node, "name", json_string(whole)) ||
        (twin && json_object_set_new(node, "weights_of", json_string(twin))) ||
        json_array_append(w->nodes, node) ||
        json_array_append_new(w->places, json_sprintf("%s%s", scope->within, at->text))) {
        json_decref(node);
        return no_memory();
    }
    json_decref(node);
    if (json_array_size(w->nodes) <= NODES_MAX) return OK;
    return fail(ERR_INPUT, "%s: more than %d nodes", at->text, NODES_MAX);
}

/* Checked by the spec's table, with the place where it is written. */
static err check_node(struct spec_writer *w, json_t *node, const struct spec_place *at,
                      struct node_spec *ret)
{
    const struct field fields[] = {{.name = at->text,
                                    .type = FIELD_VARIANT,
                                    .object = &node_spec_object,
                                    .kinds = &node_kinds},
                                   {0}};
    const struct object object = {"spec", NULL, fields, sizeof *ret};
    json_t *json = json_pack("{s:O}", at->text, node);
    if (!json) return no_memory();
    const err e = fields_parse(&object, json, "", w->arena, ret);
    json_decref(json);
    return e;
}

/* Takes the node; NULL: no memory for it. */
static err write_after(struct spec_writer *w, const struct scope *scope, json_t *node,
                       const char *name, const struct spec_place *at)
{
    return node ? write_node(w, scope, node, name, at) : no_memory();
}

/* The same for a node without variables, which the twin need not have. */
static err write_plain(struct spec_writer *w, const struct scope *scope, json_t *node,
                       const char *name, const struct spec_place *at)
{
    struct scope own = *scope;
    own.twin = NULL;
    return write_after(w, &own, node, name, at);
}

/* Several inputs are concatenated first, as TensorFlow's input_layer does. */
static err write_concat(struct spec_writer *w, const struct scope *scope, json_t **inputs,
                        const struct spec_place *at)
{
    if (json_array_size(*inputs) < 2) return OK;
    json_t *node = json_pack("{s:s, s:O}", "op", "concat", "inputs", *inputs);
    *inputs = NULL;
    return write_plain(w, scope, node, "concat", at);
}

/* A scope in which the nodes of an mlp share the weights of their twins */
static struct scope scope_of_mlp(const struct spec_writer *w, const struct scope *scope,
                                 const json_t *mlp, const char *name)
{
    struct scope own = *scope;
    own.twin = twin_prefix(w, scope, mlp, name);
    own.prefix = arena_format(w->arena, "%s%s/", scope->prefix, name);
    return own;
}

/* One layer, with the attributes that the mlp gives to all */
static err write_layer(struct spec_writer *w, const struct scope *scope, const json_t *mlp,
                       const struct mlp *of, int index, json_t *inputs, const struct spec_place *at)
{
    json_t *node = json_deep_copy(mlp);
    json_object_del(node, "weights_of");
    json_object_del(node, "dropout");
    json_object_del(node, "batch_normalization");
    json_object_del(node, "inputs");
    json_object_set_new(node, "op", json_string("dense"));
    json_object_set_new(node, "units", json_integer(of->units.at[index]));
    json_object_set_new(node, "activation", json_string(activation_names[of->layer.activation]));
    if (inputs) json_object_set(node, "inputs", inputs);
    TRY(write_node(w, scope, node, arena_format(w->arena, "layer_%d", index), at));
    if (of->dropout > 0)
        TRY(write_plain(w, scope, json_pack("{s:s, s:f}", "op", "dropout", "rate", of->dropout),
                        arena_format(w->arena, "dropout_%d", index), at));
    if (of->normalizes)
        TRY(write_after(w, scope,
                        json_pack("{s:s, s:f}", "op", "batch_normalization", "momentum", 0.999),
                        arena_format(w->arena, "batch_normalization_%d", index), at));
    return OK;
}

static err write_mlp(struct spec_writer *w, struct scope *scope, const json_t *node,
                     const struct mlp *mlp, const char *name, const struct spec_place *at)
{
    json_t *inputs = json_object_get(node, "inputs");
    if (json_array_size(inputs) == 0) inputs = NULL;
    const struct scope own = scope_of_mlp(w, scope, node, name);
    TRY(write_concat(w, &own, &inputs, at));
    for (int i = 0; i < mlp->units.count; i++)
        TRY(write_layer(w, &own, node, mlp, i, i == 0 ? inputs : NULL, at));
    return OK;
}

/* ---- an embedding of several inputs ---- */

static const char EMBEDDING[] = "embedding";

static bool reads_several(const char *op, const json_t *node)
{
    return op && strcmp(op, EMBEDDING) == 0 && json_array_size(json_object_get(node, "inputs")) > 1;
}

/* One that uses the table of another gives no attributes of a table. */
static void use_table(json_t *node, const char *owner)
{
    static const char *const of_table[] = {"initializer", "regularizer", "capacity",
                                           "admit_after", "admit_by",    "evict_after_steps",
                                           "weights_of"};
    for (size_t i = 0; i < sizeof of_table / sizeof *of_table; i++)
        json_object_del(node, of_table[i]);
    json_object_set_new(node, "table", json_string(owner));
}

/* If the embedding that the key names has several inputs: the table of the input at this place. */
static err name_table(const struct spec_writer *w, json_t *node, const char *key, size_t index,
                      size_t count)
{
    const char *name = json_string_value(json_object_get(node, key));
    const json_t *tables = name ? json_object_get(w->several, name) : NULL;
    const size_t has = json_array_size(tables);
    if (!tables) return OK;
    if (has != 1 && has != count)
        return fail(ERR_INPUT,
                    "%s: \"%s\" has %zu tables, one for each of its inputs, and this embedding has "
                    "%zu input%s: name one of them, as \"%s\"",
                    key, name, has, count, count == 1 ? "" : "s",
                    json_string_value(json_array_get(tables, 0)));
    return json_object_set(node, key, json_array_get(tables, has == 1 ? 0 : index)) ? no_memory()
                                                                                    : OK;
}

/* For one input, the one at this place of `count` */
static err write_embedding(struct spec_writer *w, const struct scope *scope, json_t *node,
                           const char *name, size_t index, size_t count,
                           const struct spec_place *at)
{
    err e = name_table(w, node, "weights_of", index, count);
    if (!e) e = name_table(w, node, "table", index, count);
    if (!e) return write_plain(w, scope, node, name, at);
    json_decref(node);
    return fail_prefix(e, "%s%s (embedding \"%s\")", scope->within, at->text, name);
}

/* The attributes of each of several, without its input. NULL: no memory. */
static json_t *embedding_of_each(const struct spec_writer *w, const struct scope *scope,
                                 const json_t *node, const char *name)
{
    json_t *each = json_copy((json_t *)node);
    const char *twin = twin_of(w, scope, node, name);
    json_object_del(each, "share");
    json_object_del(each, "inputs");
    if (twin) json_object_set_new(each, "weights_of", json_string(twin));
    return each;
}

static err write_stack(struct spec_writer *w, const struct scope *scope, json_t *list, bool shares,
                       const char *name, const struct spec_place *at)
{
    const char *whole = arena_format(w->arena, "%s%s", scope->prefix, name);
    json_t *tables = shares ? json_pack("[O]", json_array_get(list, 0)) : json_incref(list);
    if (json_object_set_new(w->several, whole, tables)) return no_memory();
    return write_plain(
        w, scope, json_pack("{s:s, s:O, s:i}", "op", "stack", "inputs", list, "axis", 1), name, at);
}

/* One for each input, NAME/INPUT, and a concat of them */
static err write_embeddings(struct spec_writer *w, struct scope *scope, const json_t *node,
                            const char *name, const struct spec_place *at)
{
    json_t *inputs = json_object_get(node, "inputs"), *input, *list = json_array();
    json_t *each = embedding_of_each(w, scope, node, name);
    const bool shares = json_is_true(json_object_get(node, "share"));
    const char *owner = NULL;
    size_t i;
    err e = list && each ? OK : no_memory();
    json_array_foreach(inputs, i, input)
    {
        if (e) break;
        json_t *one = json_deep_copy(each);
        const char *own = arena_format(w->arena, "%s/%s", name, json_string_value(input));
        const char *whole = arena_format(w->arena, "%s%s", scope->prefix, own);
        json_object_set_new(one, "inputs", json_pack("[O]", input));
        if (shares && owner) use_table(one, owner);
        if (!owner) owner = whole;
        e = one ? write_embedding(w, scope, one, own, i, json_array_size(inputs), at) : no_memory();
        if (!e && json_array_append_new(list, json_string(whole))) e = no_memory();
    }
    if (!e) e = write_stack(w, scope, list, shares, name, at);
    json_decref(each);
    json_decref(list);
    return e;
}

/* ---- blocks ---- */

static err expand_list(struct spec_writer *w, struct scope *scope, json_t *nodes,
                       const struct spec_place *at, int level);

/* nodes: of this scope itself, which are at `at` in the spec; an error says for which use they were
 * written. */
static err expand_inside(struct spec_writer *w, struct scope *scope, json_t *nodes,
                         const struct spec_place *at, int level)
{
    if (!json_is_array(nodes) || json_array_size(nodes) == 0)
        return fail(ERR_INPUT, "%s: expected a list of nodes", at->text);
    if (level > LEVELS_MAX)
        return fail(ERR_INPUT, "%s: more than %d levels of blocks: does a block use itself?",
                    at->text, LEVELS_MAX);
    scope->outputs = json_object();
    scope->taken = json_object();
    const err e = expand_list(w, scope, nodes, at, level);
    json_decref(scope->outputs);
    json_decref(scope->taken);
    return e;
}

/* The inputs of the block: its own, or the node before it. New reference. */
static json_t *input_of(const struct spec_writer *w, json_t *node, bool *ret_explicit)
{
    json_t *inputs = json_object_get(node, "inputs");
    *ret_explicit = json_array_size(inputs) > 0;
    return *ret_explicit ? json_incref(inputs) : json_pack("[s]", last_written(w));
}

static err expand_repeat(struct spec_writer *w, const struct scope *outer, json_t *node,
                         const char *name, const struct spec_place *at, int level)
{
    struct repeat repeat;
    TRY(fields_parse(&repeat_object, node, at->text, w->arena, &repeat));
    const struct spec_place of = spec_place_member(at, "block");
    for (int i = 0; i < (int)repeat.times; i++) {
        struct scope scope = {.outer = outer, .within = outer->within};
        const char *twin = twin_prefix(w, outer, node, name);
        scope.prefix = arena_format(w->arena, "%s%s/block_%d/", outer->prefix, name, i);
        scope.twin = twin ? arena_format(w->arena, "%sblock_%d/", twin, i) : NULL;
        scope.input = input_of(w, i == 0 ? node : NULL, &scope.is_explicit);
        json_t *nodes = json_deep_copy(repeat.block);
        const err e =
            nodes && scope.input ? expand_inside(w, &scope, nodes, &of, level + 1) : no_memory();
        json_decref(nodes);
        json_decref(scope.input);
        TRY(e);
    }
    return OK;
}

static bool is_of_use(const char *key)
{
    static const char *const keys[] = {"op", "name", "inputs", "weights_of"};
    return text_find(keys, sizeof keys / sizeof *keys, key) >= 0;
}

/* Adds the parameters of a use to the definitions: all that the block takes and no others. */
static err add_arguments(json_t *node, const struct spec_block *block, const char *op,
                         const struct spec_place *at, json_t *defined)
{
    const struct strings *parameters = &block->parameters;
    const char *key;
    json_t *value;
    for (int i = 0; i < parameters->count; i++) {
        value = json_object_get(node, parameters->at[i]);
        if (!value)
            return fail(ERR_INPUT, "%s: required key \"%.100s\" is missing: block %.100s takes it",
                        at->text, parameters->at[i], op);
        if (json_object_set(defined, parameters->at[i], value)) return no_memory();
    }
    json_object_foreach(node, key, value)
    {
        if (strings_have(parameters, key) || is_of_use(key)) continue;
        return fail(ERR_INPUT, "%s: unknown key \"%.100s\"%s: block %.100s has no such parameter",
                    at->text, key, suggest(key, parameters->at, parameters->count).text, op);
    }
    return OK;
}

static err expand_nodes_of(struct spec_writer *w, struct scope *scope,
                           const struct spec_block *block, json_t *defined, const char *op,
                           int level)
{
    struct definitions definitions = {defined, w->defined->uses};
    const struct spec_place blocks = {"blocks"}, of = spec_place_member(&blocks, op),
                            place = spec_place_member(&of, "nodes");
    json_t *nodes = json_deep_copy(block->nodes);
    if (!nodes) return no_memory();
    err e = definitions_use(&definitions, nodes, &place);
    if (!e) e = expand_inside(w, scope, nodes, &place, level + 1);
    json_decref(nodes);
    return e;
}

/* {"op": BLOCK, ...} */
static err expand_block(struct spec_writer *w, const struct scope *outer, json_t *node,
                        const char *op, const char *name, const struct spec_place *at, int level)
{
    const struct spec_place blocks = {"blocks"}, place = spec_place_member(&blocks, op);
    struct spec_block block;
    struct scope scope = {.outer = outer};
    TRY(fields_parse(&block_object, json_object_get(w->blocks, op), place.text, w->arena, &block));
    json_t *defined = w->defined->all ? json_copy((json_t *)w->defined->all) : json_object();
    if (!json_is_object(defined)) { /* "define": null */
        json_decref(defined);
        defined = json_object();
    }
    scope.prefix = arena_format(w->arena, "%s%s/", outer->prefix, name);
    scope.twin = twin_prefix(w, outer, node, name);
    scope.within = arena_format(w->arena, "%.*s%s (%.60s \"%.60s\"): ", WITHIN_MAX - 420,
                                outer->within, at->text, op, name);
    scope.input = input_of(w, node, &scope.is_explicit);
    err e = defined && scope.input ? add_arguments(node, &block, op, at, defined) : no_memory();
    if (!e) {
        e = expand_nodes_of(w, &scope, &block, defined, op, level);
        /* one level at a time: each outer one puts its own in front */
        if (e) e = fail_prefix(e, "%s (%.60s \"%.60s\")", at->text, op, name);
    }
    json_decref(scope.input);
    json_decref(defined);
    return e;
}

/* The fields of a block that comes with the program: given, or by default; as JSON */
static err add_fields(json_t *node, const struct object *object, json_t *defined)
{
    for (const struct field *f = object->fields; f->name; f++) {
        json_t *said = json_object_get(node, f->name);
        json_t *value = said ? json_incref(said) : json_loads(f->fallback, JSON_DECODE_ANY, NULL);
        if (json_object_set_new(defined, f->name, value)) return no_memory();
    }
    return OK;
}

static err expand_shipped_in(struct spec_writer *w, struct scope *scope,
                             const struct shipped *shipped, json_t *node, int level)
{
    int uses = 0;
    const struct spec_place place = {"nodes"};
    json_t *defined = json_object(), *nodes = NULL;
    const struct definitions definitions = {defined, &uses};
    err e = defined ? add_fields(node, &shipped->object, defined) : no_memory();
    if (!e) nodes = shipped->nodes ? json_loads(shipped->nodes, 0, NULL) : shipped->make(defined);
    if (!e && !nodes) e = no_memory();
    if (!e) e = definitions_use((struct definitions *)&definitions, nodes, &place);
    if (!e) e = expand_inside(w, scope, nodes, &place, level + 1);
    json_decref(nodes);
    json_decref(defined);
    return e;
}

static err expand_shipped(struct spec_writer *w, const struct scope *outer, json_t *node,
                          const struct shipped *shipped, const char *name,
                          const struct spec_place *at, int level)
{
    const char *op = shipped->object.name;
    struct scope scope = {.outer = outer};
    scope.prefix = arena_format(w->arena, "%s%s/", outer->prefix, name);
    scope.twin = twin_prefix(w, outer, node, name);
    scope.within = arena_format(w->arena, "%.*s%s (%s \"%.60s\"): ", WITHIN_MAX - 420,
                                outer->within, at->text, op, name);
    scope.input = input_of(w, node, &scope.is_explicit);
    const int count = (int)json_array_size(scope.input);
    err e = scope.input ? OK : no_memory();
    if (!e && (count < shipped->inputs_min || count > shipped->inputs_max))
        e = shipped->inputs_min == shipped->inputs_max
                ? fail(ERR_INPUT, "%s: inputs: %s reads %d, got %d: name them in \"inputs\"",
                       at->text, op, shipped->inputs_min, count)
                : fail(ERR_INPUT, "%s: inputs: %s reads %d to %d, got %d: name them in \"inputs\"",
                       at->text, op, shipped->inputs_min, shipped->inputs_max, count);
    if (!e) {
        e = expand_shipped_in(w, &scope, shipped, node, level);
        if (e) e = fail_prefix(e, "%s (%s \"%.60s\")", at->text, op, name);
    }
    json_decref(scope.input);
    return e;
}

/* ---- the pass ---- */

static const char *op_of(const json_t *node)
{
    if (json_is_string(node)) return json_string_value(node);
    if (json_object_get(node, "repeat")) return "repeat";
    return json_string_value(json_object_get(node, "op"));
}

/* nodes: the block's own, the last of which has its output. */
static err expand_named(struct spec_writer *w, struct scope *scope, json_t *node, const char *name,
                        const struct spec_place *at, int level)
{
    const char *op = op_of(node);
    struct node_spec spec = {0};
    TRY(resolve_inputs(w, scope, node, at));
    if (json_object_get(node, "repeat")) return expand_repeat(w, scope, node, name, at, level);
    if (op && json_object_get(w->blocks, op))
        return expand_block(w, scope, node, op, name, at, level);
    /* an mlp may have more inputs than a node: its concat is checked as a node */
    TRY(check_node(w, node, at, &spec));
    if (spec.op.kind->object == &mlp_object)
        return write_mlp(w, scope, node, spec.op.attributes, name, at);
    if (reads_several(op, node)) return write_embeddings(w, scope, node, name, at);
    const struct shipped *shipped = op ? shipped_find(op) : NULL;
    if (shipped) return expand_shipped(w, scope, node, shipped, name, at, level);
    if (op && strcmp(op, EMBEDDING) == 0) {
        const char *twin = twin_of(w, scope, node, name);
        if (twin) json_object_set_new(node, "weights_of", json_string(twin));
        return write_embedding(w, scope, json_incref(node), name, 0, 1, at);
    }
    return write_node(w, scope, json_incref(node), name, at);
}

static err expand_node(struct spec_writer *w, struct scope *scope, const json_t *written,
                       const struct spec_place *at, int level)
{
    const char *op = op_of(written);
    struct node_spec spec;
    json_t *node = json_is_string(written) ? json_pack("{s:s}", "op", op) : json_deep_copy(written);
    const json_t *given = json_object_get(node, "name");
    if (!node) return no_memory();
    err e = OK;
    if (!op || !json_is_object(node) || (given && !json_is_null(given) && !json_is_string(given)))
        e = check_node(w, node, at, &spec);
    if (e || !op) {
        json_decref(node);
        return e ? e : fail(ERR_INPUT, "%s: expected a node", at->text);
    }
    const char *name = json_is_string(given) ? arena_string(w->arena, json_string_value(given))
                                             : pick_name(w, scope, op);
    e = expand_named(w, scope, node, name, at, level);
    json_decref(node);
    if (e) return e;
    e = set_output(scope, name, last_written(w));
    return e ? fail_prefix(e, "%s", at->text) : OK;
}

static err expand_list(struct spec_writer *w, struct scope *scope, json_t *nodes,
                       const struct spec_place *at, int level)
{
    json_t *node;
    size_t i;
    json_array_foreach(nodes, i, node)
    {
        const char *name = json_string_value(json_object_get(node, "name"));
        if (name) json_object_set_new(scope->taken, name, json_true());
    }
    json_array_foreach(nodes, i, node)
    {
        const struct spec_place place = spec_place_item(at, i);
        TRY(expand_node(w, scope, node, &place, level));
    }
    return OK;
}

/* Whether a node stands for others, or has a pattern among its inputs. If none does, nothing is
 * rewritten. */
static bool is_in_short(json_t *node, const json_t *blocks)
{
    const char *op = op_of(node);
    json_t *input;
    size_t i;
    if (json_object_get(node, "repeat") || reads_several(op, node)) return true;
    if (op && (strcmp(op, mlp_object.name) == 0 || shipped_find(op) || json_object_get(blocks, op)))
        return true;
    json_array_foreach(json_object_get(node, "inputs"), i, input)
    {
        if (json_is_string(input) && is_pattern(json_string_value(input))) return true;
    }
    return false;
}

static err check_blocks(json_t *blocks)
{
    const char *name;
    json_t *block;
    if (blocks && !json_is_object(blocks) && !json_is_null(blocks))
        return fail(ERR_INPUT, "blocks: expected an object");
    json_object_foreach(blocks, name, block)
    {
        if (kinds_find(&node_kinds, name) || strcmp(name, repeat_object.name) == 0)
            return fail(ERR_INPUT, "blocks.%s: an op is called that", name);
        if (!json_is_object(block))
            return fail(ERR_INPUT, "blocks.%.100s: expected an object with \"nodes\"", name);
    }
    return OK;
}

static json_t *names_of_columns(json_t *spec)
{
    json_t *names = json_object(), *column;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(spec, "data"), "columns"), i, column)
    {
        const char *name = json_string_value(json_object_get(column, "name"));
        if (name) json_object_set_new(names, name, json_true());
    }
    return names;
}

static err expand_model(struct spec_writer *w, json_t *spec, json_t *model)
{
    struct scope scope = {.prefix = "", .within = "", .outputs = json_object()};
    scope.taken = json_copy(w->columns);
    err e = expand_list(w, &scope, model, &(struct spec_place){"model"}, 0);
    if (!e && json_object_set(spec, "model", w->nodes)) e = no_memory();
    json_decref(scope.outputs);
    json_decref(scope.taken);
    return e;
}

err nodes_expand(json_t *spec, const struct definitions *defined, json_t *blocks,
                 json_t **ret_places)
{
    json_t *model = json_object_get(spec, "model"), *node;
    bool any = false;
    size_t i;
    TRY(check_blocks(blocks));
    json_array_foreach(model, i, node) any = any || is_in_short(node, blocks);
    if (!any) return OK;
    struct arena arena = {0};
    struct spec_writer w = {
        defined, blocks, names_of_columns(spec), json_array(), json_array(), json_object(), &arena};
    const err e =
        w.columns && w.nodes && w.places && w.several ? expand_model(&w, spec, model) : no_memory();
    if (!e) *ret_places = json_incref(w.places);
    json_decref(w.columns);
    json_decref(w.nodes);
    json_decref(w.places);
    json_decref(w.several);
    arena_free(&arena);
    return e;
}
