/* spec.c - the frame of a spec, and how a file becomes one.
 *
 * Most members are described where they are used: data in core/data, ops in core/ops, optimizers
 * and placement beside this file, "train" in train.c. Only the frame is described here.
 */
#include "core/train/spec/spec.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/files/file_system.h"
#include "core/base/random.h"
#include "core/train/session/device_choice.h"
#include "core/train/spec/spec_inside.h"

const char *const precision_names[] = {
    [PRECISION_FLOAT32] = "float32", [PRECISION_TF32] = "tf32", [PRECISION_BF16] = "bf16", NULL};

static const struct field spec_fields[] = {
    FIELD_OF("name", STRING, struct spec, name, .fallback = "\"model\"", .may_differ = true,
             .help = "name of the run in messages"),
    /* every JSON program keeps it exactly */
    FIELD_OF("seed", INT, struct spec, seed, .fallback = "1", .min = 0, .max = 999999999999999,
             .help =
                 "seed of initial values, shuffling and dropout; the same seed gives the same run"),
    FIELD_OF(
        "define", JSON, struct spec, definitions, .fallback = "null",
        .help = "an object of values that other places use by name: \"$dim\" is what {\"dim\": 16} "
                "has; --set define.dim=32 changes all of them"),
    FIELD_OF("blocks", JSON, struct spec, blocks, .fallback = "null",
             .help = "an object of blocks of nodes: {\"residual\": {\"parameters\": [\"filters\"], "
                     "\"nodes\": [...]}} makes residual an op (dtrain help block)"),
    FIELD_OF("data", OBJECT, struct spec, data, .object = &data_spec_object,
             .help = "training and evaluation data"),
    FIELD_OF("model", VARIANTS, struct spec, model.nodes, .count_min = 1, .count_max = NODES_MAX,
             .object = &node_spec_object, .kinds = &node_kinds,
             .help = "the nodes of the model; each reads the previous one unless it names its "
                     "inputs; the last makes the predictions. {\"repeat\": 3, \"block\": [...]} is "
                     "nodes three times (dtrain help repeat)"),
    FIELD_OF("loss", VARIANT, struct spec, model.loss, .fallback = "null",
             .object = &loss_spec_object, .kinds = &loss_kinds, .group = "objective",
             .group_is_required = true, .help = "the objective that training minimizes"),
    FIELD_OF("heads", OBJECTS, struct spec, model.heads, .fallback = "[]", .count_max = HEADS_MAX,
             .object = &head_spec_object, .group = "objective", .group_is_required = true,
             .help = "several outputs instead of one, each with its label, loss and metrics; "
                     "training minimizes the sum of their losses, each times its weight"),
    FIELD_OF("metrics", VARIANTS, struct spec, model.metrics, .fallback = "[]",
             .count_max = METRICS_MAX, .kinds = &metric_kinds,
             .help = "metrics reported beside the loss; heads have their own"),
    FIELD_OF("optimizer", VARIANT, struct spec, optimizer, .fallback = "null",
             .object = &optimizer_spec_object, .kinds = &optimizer_kinds, .group = "optimizer",
             .group_is_required = true, .help = "how gradients change the variables"),
    FIELD_OF(
        "optimizers", VARIANTS, struct spec, optimizer_list, .fallback = "[]",
        .count_max = OPTIMIZERS_MAX, .object = &optimizer_spec_object, .kinds = &optimizer_kinds,
        .group = "optimizer", .group_is_required = true,
        .help =
            "several optimizers instead of one, each for the variables that its \"match\" selects"),
    FIELD_OF("placement", OBJECT, struct spec, placement, .fallback = "{}",
             .object = &placement_spec_object,
             .help = "placement: which ps task holds which variable"),
    FIELD_OF("train", OBJECT, struct spec, train, .object = &train_spec_object,
             .help = "length and mode of training, checkpoints, summaries, hooks"),
    FIELD_OF(
        "device", STRING, struct spec, device, .fallback = "\"auto\"", .may_differ = true,
        .help =
            "device that workers compute on: cpu; gpu or gpu:N (an error if there is none); auto: "
            "a GPU if there is a working one. A ps keeps its variables in the CPU's memory"),
    FIELD_OF("precision", ENUM, struct spec, precision, .fallback = "\"float32\"",
             .choices = precision_names,
             .help =
                 "type to which the inputs of large matrix products and convolutions are rounded: "
                 "tf32 keeps 10 bits of mantissa (GPUs only), bf16 7 (GPUs, and CPUs with AMX); "
                 "elsewhere they stay float32. Sums and variables are always float32"),
    {0},
};

const struct object spec_object = {.name = "spec",
                                   .summary = "a training job, as a JSON object",
                                   .fields = spec_fields,
                                   .size = sizeof(struct spec)};

/* What the command line says goes into the JSON, so that every task that is shown it sees the same.
 */
static err override(const struct spec_options *options, json_t *json)
{
    if (!json_is_object(json)) return fail(ERR_INPUT, "expected a JSON object, got a list");
    for (int i = 0; i < options->overrides.count; i++) {
        TRY(fields_override(&spec_object, json, options->overrides.at[i]));
    }
    if (options->seed < 0) return OK;
    if (json_object_set_new(json, "seed", json_integer(options->seed)) == 0) return OK;
    return fail(ERR_MEMORY, "no memory for the spec");
}

/* A spec and its data are moved together, so paths begin where the spec lies. */
static const char *directory_of(const struct spec_options *options, struct arena *arena)
{
    if (options->data_dir) return arena_string(arena, options->data_dir);
    const size_t bytes = path_is_url(options->path) ? strcspn(options->path, "?#") : SIZE_MAX;
    const size_t length = strlen(options->path);
    const char *slash = memrchr(options->path, '/', bytes < length ? bytes : length);
    if (!slash) return ".";
    if (slash == options->path) return "/";
    return arena_format(arena, "%.*s", (int)(slash - options->path), options->path);
}

static const char *source_of(const struct spec_options *options, char shown[PATH_BYTES_MAX])
{
    return strcmp(options->path, "-") ? path_shown(options->path, shown) : "standard input";
}

static err check_device(const struct spec *spec)
{
    struct device_choice choice;
    const err e = device_choice_parse(spec->device, &choice);
    return e ? fail_prefix(e, "device") : OK;
}

/* One or several: from here on it is a list. */
static err list_optimizers(struct spec *spec, struct arena *arena)
{
    const bool is_one = spec->optimizer.optimizer.kind, are_several = spec->optimizer_list.count;
    struct objects list = spec->optimizer_list;
    if (is_one == are_several)
        return fail(ERR_INPUT, "expected one of optimizer and optimizers, got %s",
                    is_one ? "both" : "none");
    if (is_one) {
        struct optimizer_spec *one = arena_new(arena, sizeof *one);
        *one = spec->optimizer;
        list = (struct objects){one, 1};
    }
    spec->optimizers = optimizers_make(list.at, list.count, arena);
    spec->optimizers.frozen = spec->train.freeze;
    spec->optimizers.decay = spec->train.weight_decay;
    optimizers_keep_average(&spec->optimizers, &spec->train.average);
    spec->placement.is_held_twice = spec->train.absence.ps_replicas > 0;
    for (int i = 0; i < list.count; i++)
        TRY(optimizer_check(&spec->optimizers.at[i],
                            is_one ? "optimizer" : arena_format(arena, "optimizers[%d]", i)));
    return OK;
}

err spec_make_fingerprint(const json_t *json, const json_t *features, char ret[17])
{
    json_t *shared = json_deep_copy(json);
    fields_keep_shared(&spec_object, shared);
    if (features) json_object_set(shared, "features", (json_t *)features);
    char *text = json_dumps(shared, JSON_SORT_KEYS | JSON_COMPACT);
    json_decref(shared);
    if (!text) return fail(ERR_MEMORY, "no memory for the spec's fingerprint");
    snprintf(ret, 17, "%016" PRIx64, random_key(0, text));
    free(text);
    return OK;
}

static void note_servers(const json_t *json)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_string(json)) url_servers_note(json_string_value(json));
    json_array_foreach(json, i, value) note_servers(value);
    json_object_foreach((json_t *)json, key, value) note_servers(value);
}

/* For messages: where each node was written, of a spec whose nodes are written anew. */
static void set_places(struct spec *spec, const json_t *places, struct arena *arena)
{
    struct node_spec *nodes = spec->model.nodes.at;
    for (int i = 0; i < spec->model.nodes.count && places; i++)
        nodes[i].place = arena_string(arena, json_string_value(json_array_get(places, (size_t)i)));
}

/* An epoch of what has no end, or another length each day, is no measure of time. */
static err check_epochs(const struct spec *spec)
{
    char text[OPTIMIZER_TEXT_MAX];
    const char *counting = optimizers_with_epochs(&spec->optimizers, text);
    if (!counting) return OK;
    if (spec->data.train.follow)
        return fail(ERR_INPUT, "%s: data.train is followed and has no epochs: give steps",
                    counting);
    if (!spec->train.daily) return OK;
    return fail(ERR_INPUT, "%s: with train.daily an epoch has another length each day: give steps",
                counting);
}

static err expand_and_parse(json_t *json, struct arena *arena, struct spec *ret)
{
    json_t *places;
    TRY(spec_expand(json, &places));
    note_servers(json);
    const err e = fields_parse(&spec_object, json, "", arena, ret);
    if (!e) set_places(ret, places, arena);
    json_decref(places);
    return e;
}

/* json is borrowed here and becomes the spec's when all went well. */
static err make(const struct spec_options *options, json_t *json, struct arena *arena,
                struct spec *ret)
{
    struct spec spec = {0};
    char shown[PATH_BYTES_MAX];
    TRY(override(options, json));
    TRY(expand_and_parse(json, arena, &spec));
    spec.trains_nothing = options->trains_nothing;
    TRY(check_device(&spec));
    TRY(heads_check(&spec.model));
    TRY(spec_train_finish(&spec, json, arena));
    TRY(list_optimizers(&spec, arena));
    TRY(check_epochs(&spec));
    spec.json = json;
    spec.source = arena_string(arena, source_of(options, shown));
    spec.directory = directory_of(options, arena);
    TRY(spec_make_fingerprint(json, NULL, spec.fingerprint));
    spec.accepts_changed_features = options->accepts_changed_features;
    memcpy(spec.as_written, spec.fingerprint, sizeof spec.as_written);
    spec.arena = *arena;
    *ret = spec;
    return OK;
}

err spec_load(const struct spec_options *options, struct spec *ret)
{
    json_t *json = NULL;
    struct arena arena = {0};
    char shown[PATH_BYTES_MAX];
    const char *source = source_of(options, shown);
    err e = spec_read(options->path, &json);
    if (!e) e = make(options, json, &arena, ret);
    if (!e) return OK;
    json_decref(json);
    arena_free(&arena);
    const bool is_named = strncmp(error_text(), source, strlen(source)) == 0;
    return is_named ? e : fail_prefix(e, "%s", source);
}

err spec_fail_data(const struct spec *spec, const char *section, err e)
{
    if (e == ERR_INPUT && spec->data.origin)
        e = fail(e, "%s; the data are %s", error_text(), spec->data.origin);
    return fail_prefix(e, "%s", section);
}

void spec_free(struct spec *spec)
{
    json_decref(spec->json);
    json_decref(spec->features);
    json_decref(spec->kept_features);
    arena_free(&spec->arena);
    *spec = (struct spec){0};
}

char *spec_text(const struct spec *spec)
{
    char *text = json_dumps(spec->json, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    if (text) urls_hide(text);
    return text;
}

char *spec_value_text(const json_t *value, size_t flags)
{
    const size_t always = JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(9);
    return json_dumps(value, always | flags);
}

int64_t spec_replicas(const struct spec *spec, int workers)
{
    if (spec->train.mode == MODE_ASYNC) return 1; /* every gradient is a step of its own */
    return spec->train.replicas_to_aggregate > 0 ? spec->train.replicas_to_aggregate : workers;
}

int64_t spec_last_step(const struct spec *spec, int64_t train_rows, int workers)
{
    if (spec->train.last_step > 0) return spec->train.last_step;
    if (spec->train.num_steps > 0) return spec->train.num_steps;
    const int64_t steps = spec_steps_of(spec, spec->train.epochs * (double)train_rows, workers);
    return steps > 1 ? steps : 1;
}

static double rows_per_step(const struct spec *spec, int workers)
{
    return (double)spec->data.batch_size * (double)spec_replicas(spec, workers);
}

double spec_steps_per_epoch(const struct spec *spec, int64_t train_rows, int workers)
{
    return (double)train_rows / rows_per_step(spec, workers);
}

int64_t spec_steps_of(const struct spec *spec, double rows, int workers)
{
    const double per_step = rows_per_step(spec, workers);
    /* 1.1 epochs of 50,000 rows in batches of 50 are 1,100 steps, not the 1,101 that rounding up
     * 1100.0000000000002 would make of them. */
    const double whole = ceil(rows / per_step * (1.0 - 1e-12));
    return (int64_t)fmin(fmax(whole, 0.0), STEPS_MAX);
}
