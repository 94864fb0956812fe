/* train.c - the table of the spec's "train", and what must hold between its members.
 *
 * Of two keys that say how often (by time, by steps) at most one is above zero. A default that
 * stands only where neither is given is not a matter of the table: such keys are null there, and
 * what that means is filled in here. Zero turns the thing off.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/files/url.h"
#include "core/data/columns/column.h"
#include "core/data/parts.h"
#include "core/train/checkpoint/best_checkpoints.h"
#include "core/train/checkpoint/shard.h"
#include "core/train/hooks/hook.h"
#include "core/train/session/device_choice.h"
#include "core/train/session/towers.h"
#include "core/train/spec/spec_inside.h"

enum {
    REPLICAS_MAX = 65536,
    HOOKS_MAX = 64,
    ACCUMULATE_MAX = 65536,
    MAPS_MAX = 4096,
    SKIPS_MAX = 4096,
    EXPECTED_MAX = 80 /* bytes of what is expected in words */
};
enum { SAVE_CHECKPOINT_SECS = 600, SAVE_SUMMARIES_STEPS = 100 }; /* TensorFlow's */
static const double secs_max = 1e9;

static const char *const mode_names[] = {[MODE_ASYNC] = "async", [MODE_SYNC] = "sync", NULL};
static const char *const replication_names[] = {"between_graph", "in_graph", NULL};
const char *const number_names[] = {
    [NUMBER_FLOAT32] = "float32", [NUMBER_BF16] = "bf16", [NUMBER_FP16] = "fp16", NULL};
static const char *const corrupt_names[] = {
    [CORRUPT_ERROR] = "error", [CORRUPT_PREVIOUS] = "previous", NULL};

static const char *const absent_names[] = {
    [ABSENT_ERROR] = "error", [ABSENT_INITIAL] = "initial", NULL};

static const struct field warm_start_fields[] = {
    FIELD_OF("checkpoint", STRING, struct warm_start_spec, checkpoint,
             .help = "the folder of another run, or the prefix of one of its checkpoints, relative "
                     "to the current directory"),
    FIELD_OF(
        "map", JSON, struct warm_start_spec, map, .fallback = "null",
        .help = "pairs [\"old/*\", \"new/*\"]: the variable new/x is read from old/x; the star may "
                "stand anywhere ([\"layer*/weights\", \"layer*/kernel\"]); the first pair whose "
                "second name matches is used"),
    FIELD_OF("skip", STRINGS, struct warm_start_spec, skip, .fallback = "[]",
             .count_max = SKIPS_MAX,
             .help = "patterns of variables that keep their initial values"),
    FIELD_OF("slots", BOOL, struct warm_start_spec, slots, .fallback = "false",
             .help = "read the optimizer's slots, too"),
    FIELD_OF("absent", ENUM, struct warm_start_spec, absent, .fallback = "\"error\"",
             .choices = absent_names,
             .help = "what becomes of a variable that is not there, as of a new layer or column: "
                     "an error, or its initial values; the log names each"),
    FIELD_OF("vocabularies", JSON, struct warm_start_spec, vocabularies, .fallback = "null",
             .help = "{\"COLUMN\": \"old_words.txt\"}: the words of a vocabulary column when the "
                     "checkpoint was made, one per line, relative to the current directory; rows "
                     "of its tables follow their words. Not needed where the checkpoint's "
                     "last_spec.json lists the words, or names a file that still has them"),
    {0},
};

static const struct object warm_start_object = {
    .name = "warm_start",
    .summary = "initial values from the checkpoint of another run",
    .fields = warm_start_fields,
    .size = sizeof(struct warm_start_spec)};

static const struct field publish_fields[] = {
    FIELD_OF("every_secs", FLOAT, struct publish_spec, every_secs, .fallback = "10", .min = 0.1,
             .max = secs_max, .help = "seconds between two deltas"),
    FIELD_OF("to", STRING, struct publish_spec, to, .fallback = "null", .may_differ = true,
             .help =
                 "folder or URL for whoever serves: each checkpoint is put there too (a link where "
                 "the file system can), and the deltas that follow it; the last two stay, and "
                 "what is being served; null: checkpoint_dir, and deltas alone"),
    {0},
};

static const struct object publish_object = {
    .name = "publish",
    .summary = "what changed since the last checkpoint, for dtrain serve --follow",
    .fields = publish_fields,
    .size = sizeof(struct publish_spec)};

static const struct field train_fields[] = {
    FIELD_OF("mode", ENUM, struct train_spec, mode, .fallback = "\"async\"", .choices = mode_names,
             .help = "async: each gradient is applied as it arrives; sync: the mean of all "
                     "workers' gradients is applied as one step, in worker order"),
    FIELD_OF("last_step", INT, struct train_spec, last_step, .fallback = "0", .min = 0,
             .max = STEPS_MAX, .group = "end",
             .help = "global step at which training ends; 0: see epochs and num_steps"),
    FIELD_OF("epochs", FLOAT, struct train_spec, epochs, .fallback = "0", .min = 0, .max = 1e9,
             .group = "end",
             .help = "passes over the training data; 0: see last_step and num_steps"),
    FIELD_OF(
        "num_steps", INT, struct train_spec, num_steps, .fallback = "0", .min = 0, .max = STEPS_MAX,
        .group = "end",
        .help = "global steps to train from where this run starts or resumes; 0: see last_step and "
                "epochs"),
    FIELD_OF(
        "daily", BOOL, struct train_spec, daily, .fallback = "false",
        .help = "each set of files is trained on by a run of its own: a run that finds a "
                "checkpoint of other files keeps its values, slots and global step, and starts "
                "with the first row of the new files; a run restarted midway resumes where it was"),
    FIELD_OF("replicas_to_aggregate", INT, struct train_spec, replicas_to_aggregate,
             .fallback = "0", .min = 0, .max = REPLICAS_MAX,
             .help = "sync: number of gradients averaged in one step; 0: one from each worker"),
    FIELD_OF("max_staleness", INT, struct train_spec, max_staleness, .fallback = "-1", .min = -1,
             .max = STEPS_MAX,
             .help = "async: maximum staleness in global steps of the values that a gradient was "
                     "computed from; -1: no limit"),
    FIELD_OF("wire", ENUM, struct train_spec, wire, .fallback = "\"float32\"",
             .choices = number_names,
             .help = "type in which gradients are sent from worker to ps; bf16 and fp16 halve the "
                     "bytes. A worker adds the rounding error to its next gradient (error "
                     "feedback); a lost worker's, and that of a resumed run, is dropped. Within "
                     "one process nothing is sent, and nothing is rounded"),
    FIELD_OF("wire_values", ENUM, struct train_spec, wire_values, .fallback = "\"float32\"",
             .choices = number_names,
             .help =
                 "type in which values of dense variables are sent from ps to workers; bf16 and "
                 "fp16 halve the bytes. A ps and checkpoints keep float32; workers, and "
                 "evaluations during training, compute with the rounded values. Rows of tables are "
                 "sent as float32. Within one process nothing is sent, and nothing is rounded"),
    FIELD_OF("replication", ENUM, struct train_spec, replication, .fallback = "\"between_graph\"",
             .choices = replication_names,
             .help = "between_graph: each worker reads its own share of the data; in_graph: the "
                     "chief reads the data for all workers and sends each its batches, "
                     "data.prefetch of them ahead, so that no other worker needs the files"),
    FIELD_OF("towers", JSON, struct train_spec, tower_list, .fallback = "null", .may_differ = true,
             .help = "number of replicas (towers) that split each batch of a task evenly: on a CPU "
                     "they share the threads, with GPUs each has its own; or a list of devices, "
                     "[\"gpu:0\", \"gpu:1\"]. Their gradients are averaged in that order and "
                     "pushed as one; null or 1: one replica"),
    FIELD_OF("accumulate", INT, struct train_spec, accumulate, .fallback = "1", .min = 1,
             .max = ACCUMULATE_MAX,
             .help = "batches of data.batch_size whose gradients a worker averages before it "
                     "pushes them as one, computed one after the other in the memory of one; a "
                     "global step, and its loss, is of all of them"),
    FIELD_OF("log_every_steps", INT, struct train_spec, log_every_steps, .fallback = "100",
             .min = 1, .max = STEPS_MAX, .may_differ = true,
             .help = "global steps between two log lines with the loss"),
    FIELD_OF(
        "checkpoint_dir", STRING, struct train_spec, checkpoint.dir, .fallback = "null",
        .may_differ = true,
        .help =
            "folder of the run's checkpoints, relative to the current directory (not to the spec, "
            "as data are); a restarted run resumes from the newest; null: nothing is saved"),
    FIELD_OF(
        "save_checkpoint_secs", FLOAT, struct train_spec, checkpoint.every_secs, .fallback = "null",
        .min = 0, .max = secs_max, .group = "save_checkpoint", .may_differ = true,
        .help = "seconds between two checkpoints, 600 where neither this nor save_checkpoint_steps "
                "is given; 0: none by time"),
    FIELD_OF("save_checkpoint_steps", INT, struct train_spec, checkpoint.every_steps,
             .fallback = "null", .min = 0, .max = STEPS_MAX, .group = "save_checkpoint",
             .may_differ = true,
             .help = "global steps between two checkpoints (a few more in asynchronous mode with "
                     "several workers); 0: none by steps"),
    FIELD_OF("keep_checkpoint_max", INT, struct train_spec, checkpoint.keep_max, .fallback = "5",
             .min = 0, .max = CHECKPOINTS_MAX, .may_differ = true,
             .help = "number of newest checkpoints to keep; 0: all"),
    FIELD_OF("keep_checkpoint_every_n_hours", FLOAT, struct train_spec,
             checkpoint.keep_every_n_hours, .fallback = "10000", .min = 1e-6, .max = 1e9,
             .may_differ = true, .help = "also keep one checkpoint per this many hours for good"),
    FIELD_OF("on_corrupt", ENUM, struct train_spec, checkpoint.on_corrupt, .fallback = "\"error\"",
             .choices = corrupt_names, .may_differ = true,
             .help = "what to do at the start if the newest checkpoint is damaged or incomplete: "
                     "fail, or try the one before it"),
    FIELD_OF(
        "warm_start", OBJECT, struct train_spec, warm_start, .fallback = "null",
        .object = &warm_start_object, .may_differ = true,
        .help =
            "initial values from another run; used only if checkpoint_dir holds no checkpoint yet"),
    FIELD_OF("freeze", STRINGS, struct train_spec, freeze, .fallback = "[]",
             .count_max = PATTERNS_MAX,
             .help = "patterns of variables that keep their values: they have no optimizer and no "
                     "slots, and do not count in the norms used for clipping"),
    FIELD_OF("weight_decay", OBJECT, struct train_spec, weight_decay, .fallback = "null",
             .object = &weight_decay_object,
             .help = "decoupled weight decay, in addition to the optimizer; null: none"),
    FIELD_OF("average_decay", FLOAT, struct train_spec, average.decay, .fallback = "0", .min = 0,
             .max = 1,
             .help =
                 "decay of exponential moving averages of the dense variables that are trained: "
                 "after each update an average moves by (value - average) * (1 - decay). The run's "
                 "evaluations, eval, predict, serve and export compute with them; training "
                 "continues with the values themselves. Tables have none; 0: there are none"),
    FIELD_OF("average_num_updates", BOOL, struct train_spec, average.num_updates,
             .fallback = "true",
             .help = "the decay of averages is at most (1 + n) / (10 + n), where n is the global "
                     "step after the update, so that they follow faster in a young run"),
    FIELD_OF("worker_timeout_secs", SECONDS, struct train_spec, absence.worker_timeout_ms,
             .fallback = "60", .min = 0, .max = secs_max,
             .help = "seconds to wait for a lost worker"),
    FIELD_OF("min_workers", INT, struct train_spec, absence.min_workers, .fallback = "1", .min = 1,
             .max = WORKERS_MAX, .help = "the job ends if fewer workers than this are left"),
    FIELD_OF("ps_replicas", INT, struct train_spec, absence.ps_replicas, .fallback = "0", .min = 0,
             .max = 1,
             .help = "1: each ps but ps/0 has a follower, another ps, that holds what it has "
                     "acknowledged: of 2n + 1 ps the last n follow ps/1 to ps/n. A ps that is gone "
                     "for --ps_timeout is done without, and no step is lost; with ps/0 the job "
                     "returns to its last checkpoint. Workers push twice what the others hold"),
    FIELD_OF("publish", OBJECT, struct train_spec, checkpoint.publish, .fallback = "null",
             .object = &publish_object,
             .help =
                 "between checkpoints, write into checkpoint_dir, or the folder `to`, what has "
                 "changed since the last one: dense variables, and the rows of tables that updates "
                 "touched. dtrain serve --follow has them some seconds later; null: nothing"),
    FIELD_OF("summary_dir", STRING, struct train_spec, summary.dir, .fallback = "null",
             .may_differ = true,
             .help = "folder for TensorBoard event files; null: checkpoint_dir"),
    FIELD_OF("save_summaries_steps", INT, struct train_spec, summary.every_steps,
             .fallback = "null", .min = 0, .max = STEPS_MAX, .group = "save_summaries",
             .may_differ = true,
             .help = "global steps between two summaries, 100 where neither this nor "
                     "save_summaries_secs is given; 0: none by steps"),
    FIELD_OF("save_summaries_secs", FLOAT, struct train_spec, summary.every_secs,
             .fallback = "null", .min = 0, .max = secs_max, .group = "save_summaries",
             .may_differ = true, .help = "seconds between two summaries; 0: none by time"),
    FIELD_OF("log_step_count_steps", INT, struct train_spec, summary.log_step_count_steps,
             .fallback = "100", .min = 0, .max = STEPS_MAX, .may_differ = true,
             .help = "global steps between two measurements of speed, recorded with the summaries; "
                     "0: never"),
    FIELD_OF("evaluate_every_steps", INT, struct train_spec, evaluation.every_steps,
             .fallback = "0", .min = 0, .max = STEPS_MAX, .group = "evaluate_every",
             .may_differ = true,
             .help = "global steps between two evaluations; 0: only at the end, or by time"),
    FIELD_OF("evaluate_every_secs", FLOAT, struct train_spec, evaluation.every_secs,
             .fallback = "0", .min = 0, .max = secs_max, .group = "evaluate_every",
             .may_differ = true,
             .help = "seconds between two evaluations; 0: only at the end, or by steps"),
    FIELD_OF(
        "keep_best", INT, struct train_spec, evaluation.keep_best, .fallback = "0", .min = 0,
        .max = BEST_MAX, .may_differ = true,
        .help =
            "number of best checkpoints to keep in checkpoint_dir/best, by the evaluations of the "
            "run (evaluate_every_steps or evaluate_every_secs), each of which then begins with a "
            "checkpoint; 0: none (an evaluator task keeps them by its flag --keep_best)"),
    FIELD_OF(
        "best_metric", STRING, struct train_spec, evaluation.best_metric, .fallback = "null",
        .may_differ = true,
        .help =
            "loss or a metric, which decides which checkpoint is best; the direction follows from "
            "it; null: the metric of the early_stopping hook if there is one, or else loss"),
    FIELD_OF("restore_best", BOOL, struct train_spec, evaluation.restore_best, .fallback = "false",
             .may_differ = true,
             .help = "at the end, by last_step as by early_stopping, the last checkpoint gets the "
                     "values of the best one (its step stays the last); implies keep_best 1"),
    FIELD_OF("log_device_placement", BOOL, struct train_spec, log_device_placement,
             .fallback = "false", .may_differ = true,
             .help = "log where each node and variable is placed"),
    FIELD_OF("hooks", VARIANTS, struct train_spec, hooks, .fallback = "[]", .count_max = HOOKS_MAX,
             .kinds = &hook_kinds, .may_differ = true,
             .help = "hooks that run during training; one of a type that the keys above also "
                     "create replaces it"),
    {0},
};

const struct object train_spec_object = {
    .name = "train",
    .summary = "length and mode of training, checkpoints, summaries, hooks",
    .fields = train_fields,
    .size = sizeof(struct train_spec)};

/* Null is absent, as it is for the table. */
static bool is_given(const json_t *train, const char *key)
{
    const json_t *value = json_object_get(train, key);
    return value && !json_is_null(value);
}

static void set_defaults(struct train_spec *train, const json_t *json)
{
    if (!is_given(json, "save_checkpoint_secs") && !is_given(json, "save_checkpoint_steps"))
        train->checkpoint.every_secs = SAVE_CHECKPOINT_SECS;
    if (!is_given(json, "save_summaries_secs") && !is_given(json, "save_summaries_steps"))
        train->summary.every_steps = SAVE_SUMMARIES_STEPS;
}

/* Where training ends is said once. */
static err check_length(const struct train_spec *train)
{
    const bool is_set[] = {train->last_step > 0, train->epochs > 0, train->num_steps > 0};
    const int count = is_set[0] + is_set[1] + is_set[2];
    if (count == 1) return OK;
    return fail(ERR_INPUT, "train: expected one of last_step, epochs and num_steps, got %s",
                count == 0   ? "none"
                : count == 3 ? "all three"
                             : "two of them");
}

/* A key without effect is a misunderstanding. */
static err check_mode(const struct train_spec *train)
{
    if (train->mode == MODE_ASYNC && train->replicas_to_aggregate > 0) {
        return fail(ERR_INPUT, "train.replicas_to_aggregate: has a meaning with mode sync only");
    }
    if (train->mode == MODE_SYNC && train->max_staleness >= 0) {
        return fail(ERR_INPUT, "train.max_staleness: has a meaning with mode async only");
    }
    return OK;
}

static err check_pair(const char *what, double secs, int64_t steps)
{
    if (secs <= 0 || steps <= 0) return OK;
    return fail(ERR_INPUT, "train: expected %s_secs or %s_steps, got both", what, what);
}

/* An empty shell variable in --set must not mean the current folder. */
static err check_path(const char *key, const char *path)
{
    if (!path || *path) return OK;
    return fail(ERR_INPUT, "%s: expected a path, got \"\"", key);
}

static err check_values(const struct train_spec *train)
{
    TRY(check_length(train));
    TRY(check_mode(train));
    TRY(check_pair("save_checkpoint", train->checkpoint.every_secs, train->checkpoint.every_steps));
    TRY(check_pair("save_summaries", train->summary.every_secs, train->summary.every_steps));
    TRY(check_pair("evaluate_every", train->evaluation.every_secs, train->evaluation.every_steps));
    TRY(check_path("train.checkpoint_dir", train->checkpoint.dir));
    TRY(check_path("train.publish.to", train->checkpoint.publish.to));
    TRY(check_path("train.summary_dir", train->summary.dir));
    return check_path("train.warm_start.checkpoint", train->warm_start.checkpoint);
}

/* Of the keys; hooks of the list look for themselves. */
static err check_evaluation(const struct spec *spec)
{
    const struct train_spec *train = &spec->train;
    const bool is_wanted = train->evaluation.every_secs > 0 || train->evaluation.every_steps > 0;
    if (!is_wanted || spec->data.eval.format.kind) return OK;
    return fail(ERR_INPUT, "train.%s: needs data.eval, which is not given",
                train->evaluation.every_secs > 0 ? "evaluate_every_secs" : "evaluate_every_steps");
}

/* The last evaluation alone has no others to be compared with. */
static err check_best(const struct spec *spec)
{
    const struct train_spec *train = &spec->train;
    if (!train->evaluation.keep_best && !train->evaluation.restore_best) return OK;
    if (hooks_evaluate_while_training(spec)) return OK;
    return fail(ERR_INPUT,
                "train.%s: needs evaluations while training: set train.evaluate_every_steps or "
                "train.evaluate_every_secs",
                train->evaluation.restore_best ? "restore_best" : "keep_best");
}

/* ---- warm_start.map: pairs, which no table can express ---- */

static int stars(const char *name)
{
    int count = 0;
    for (; *name; name++) count += *name == '*';
    return count;
}

/* A star that stands for nothing on the other side would carry nothing over. */
static err check_stars(const struct name_map *map, size_t index)
{
    const int from = stars(map->from), to = stars(map->to);
    if (from == to && from <= 1) return OK;
    return fail(ERR_INPUT,
                "train.warm_start.map[%zu]: expected one star in both names or in neither, got "
                "\"%.128s\" and \"%.128s\"",
                index, map->from, map->to);
}

/* [from, to] or {"from", "to"}. */
static err parse_pair(const json_t *json, size_t index, struct arena *arena, struct name_map *ret)
{
    const json_t *from = json_object_get(json, "from"), *to = json_object_get(json, "to");
    size_t members = json_object_size(json);
    if (json_is_array(json)) {
        from = json_array_get(json, 0);
        to = json_array_get(json, 1);
        members = json_array_size(json);
    }
    if (!json_is_string(from) || !json_is_string(to) || members != 2) {
        return fail(ERR_INPUT, "train.warm_start.map[%zu]: expected [\"old name\", \"new name\"]",
                    index);
    }
    *ret = (struct name_map){arena_string(arena, json_string_value(from)),
                             arena_string(arena, json_string_value(to))};
    return check_stars(ret, index);
}

/* {"column": "file"} */
static err check_vocabularies(const struct spec *spec)
{
    const char *name;
    json_t *path, *given = spec->train.warm_start.vocabularies;
    if (given && !json_is_object(given))
        return fail(ERR_INPUT, "train.warm_start.vocabularies: expected {\"column\": \"file\"}");
    json_object_foreach(given, name, path)
    {
        const struct column_spec *columns = spec->data.columns.at;
        int at = 0;
        while (at < spec->data.columns.count && strcmp(columns[at].name, name) != 0) at++;
        if (at == spec->data.columns.count ||
            !((const struct column_kind *)columns[at].column.kind->descriptor)->words)
            return fail(ERR_INPUT,
                        "train.warm_start.vocabularies: \"%.128s\" is no vocabulary column", name);
        if (!json_is_string(path) || !json_string_length(path))
            return fail(ERR_INPUT, "train.warm_start.vocabularies.%.128s: expected a path", name);
    }
    return OK;
}

static err parse_map(struct warm_start_spec *warm, struct arena *arena)
{
    if (!warm->map) return OK;
    const size_t count = json_array_size(warm->map);
    if (!json_is_array(warm->map) || count > MAPS_MAX) {
        return fail(ERR_INPUT,
                    "train.warm_start.map: expected a list of 0 to %d pairs [\"old name\", \"new "
                    "name\"]",
                    MAPS_MAX);
    }
    struct name_map *maps = arena_array(arena, count, sizeof *maps);
    for (size_t i = 0; i < count; i++)
        TRY(parse_pair(json_array_get(warm->map, i), i, arena, &maps[i]));
    warm->maps = (struct objects){.at = maps, .count = (int)count};
    return OK;
}

/* ---- towers: a number, or a list of devices ---- */

static err parse_tower_list(const json_t *json, struct arena *arena, struct tower_spec *ret)
{
    struct device_choice choice;
    const size_t count = json_array_size(json);
    ret->devices.at = arena_array(arena, count + 1, sizeof *ret->devices.at);
    ret->devices.count = ret->count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const char *word = json_string_value(json_array_get(json, i));
        if (!word) return fail(ERR_INPUT, "train.towers[%zu]: expected a device, \"gpu:0\"", i);
        const err e = device_choice_parse(word, &choice);
        if (e) return fail_prefix(e, "train.towers[%zu]", i);
        ret->devices.at[i] = arena_string(arena, word);
    }
    return OK;
}

static err parse_towers(const json_t *json, struct arena *arena, struct tower_spec *ret)
{
    const json_int_t count = json_is_integer(json) ? json_integer_value(json) : 0;
    *ret = (struct tower_spec){0};
    if (!json || json_is_null(json)) return OK;
    if (count >= 1 && count <= TOWERS_MAX) {
        ret->count = count > 1 ? (int)count : 0;
        return OK;
    }
    if (json_is_array(json) && json_array_size(json) > 1 && json_array_size(json) <= TOWERS_MAX)
        return parse_tower_list(json, arena, ret);
    char expected[EXPECTED_MAX];
    snprintf(expected, sizeof expected, "an integer from 1 to %d, or a list of 2 to %d devices",
             TOWERS_MAX, TOWERS_MAX);
    return fields_fail_expected("train.towers", expected, json);
}

/* What hooks can tell from the spec alone is told by `dtrain check` too. */
static err check_hooks(const struct spec *spec)
{
    const struct variant *list = spec->train.hooks.at;
    for (int i = 0; i < spec->train.hooks.count; i++) {
        const struct hook *hook = list[i].kind->descriptor;
        const err e = hook->check ? hook->check(list[i].attributes, spec) : OK;
        if (e) return fail_prefix(e, "train.hooks[%d]: %s", i, hook->object.name);
    }
    return OK;
}

bool spec_is_in_graph(const struct spec *spec)
{
    return spec->train.replication == IN_GRAPH;
}

/* Synchronous ones have shares, so that bits do not depend on who is faster. */
bool spec_hands_out(const struct spec *spec)
{
    return spec->train.mode == MODE_ASYNC;
}

/* What has no end is not read twice, and has none that a step would be given by. */
static err check_follow(struct spec *spec)
{
    const struct source_spec *source = &spec->data.train;
    struct train_spec *train = &spec->train;
    if (spec->data.eval.format.kind && spec->data.eval.follow)
        return fail(ERR_INPUT, "data.eval.follow: only data.train can be followed");
    if (!source->follow) return OK;
    if (source->skip || source->take)
        return fail(ERR_INPUT, "data.train.follow: has no meaning with skip and take");
    if (train->epochs > 0)
        return fail(ERR_INPUT, "train.epochs: data.train is followed and has no epochs: give "
                               "last_step or num_steps, or neither");
    if (spec_is_in_graph(spec))
        return fail(ERR_INPUT, "data.train.follow: each worker reads for itself: train.replication "
                               "must be between_graph");
    if (!train->last_step && !train->num_steps) train->last_step = STEPS_MAX;
    return OK;
}

static err check_publish(const struct spec *spec)
{
    const struct train_spec *train = &spec->train;
    if (!(train->checkpoint.publish.every_secs > 0) || train->checkpoint.dir) return OK;
    if (spec->trains_nothing) return OK;
    return fail(ERR_INPUT, "train.publish: needs train.checkpoint_dir");
}

static err check_daily(const struct spec *spec)
{
    const struct train_spec *train = &spec->train;
    if (!train->daily) return OK;
    if (spec->data.train.follow)
        return fail(ERR_INPUT, "train.daily: data.train is followed, and continues by itself");
    if (spec->data.train.format.kind && !parts_are_files(spec->data.train.format.kind->descriptor))
        return fail(ERR_INPUT, "train.daily: data.train: its rows come from no file");
    if (!(train->epochs > 0))
        return fail(ERR_INPUT, "train.daily: needs train.epochs, most often 1");
    if (train->checkpoint.dir || spec->trains_nothing) return OK;
    return fail(ERR_INPUT, "train.daily: needs train.checkpoint_dir");
}

/* From here on those batches are one, which is computed in pieces. */
static err join_batches(struct spec *spec)
{
    const int64_t count = spec->train.accumulate, batch = spec->data.batch_size;
    if (count > 1 && spec->train.towers.count)
        return fail(ERR_INPUT, "train.accumulate: not beside train.towers, which share each batch");
    if (batch > BATCH_ROWS_MAX / count)
        return fail(ERR_INPUT,
                    "train.accumulate: %lld batches of %lld rows are more than %lld rows",
                    (long long)count, (long long)batch, (long long)BATCH_ROWS_MAX);
    spec->data.batch_size *= count;
    return OK;
}

err spec_train_finish(struct spec *spec, const json_t *json, struct arena *arena)
{
    set_defaults(&spec->train, json_object_get(json, "train"));
    TRY(check_follow(spec));
    TRY(check_daily(spec));
    TRY(check_publish(spec));
    TRY(check_values(&spec->train));
    TRY(check_evaluation(spec));
    TRY(check_best(spec));
    if (spec->train.evaluation.restore_best && !spec->train.evaluation.keep_best)
        spec->train.evaluation.keep_best = 1;
    TRY(parse_map(&spec->train.warm_start, arena));
    TRY(check_vocabularies(spec));
    TRY(parse_towers(spec->train.tower_list, arena, &spec->train.towers));
    TRY(join_batches(spec));
    return check_hooks(spec);
}
