/* settings.c - see settings.h. */
#include "core/train/spec/settings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/base/text.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/checkpoints.h"
#include "core/train/spec/spec_inside.h"

const struct setting setting_table[SETTING_KEYS] = {
    [SETTING_LEARNING_RATE] =
        {.key = "optimizer.learning_rate",
         .help = "the schedule's learning_rate, with which all of it is scaled; or xF: F times the "
                 "rates that the spec says",
         .min = 1e-12,
         .max = RATE_MAX,
         .is_of_values = true},
    [SETTING_LAST_STEP] = {.key = "train.last_step",
                           .help = "global step at which training ends",
                           .min = 1,
                           .max = STEPS_MAX,
                           .is_integer = true,
                           .is_of_values = true},
    [SETTING_SAVE_SECS] = {.key = "train.save_checkpoint_secs",
                           .help = "seconds between two checkpoints",
                           .min = 0.001,
                           .max = 1e9},
    [SETTING_SAVE_STEPS] = {.key = "train.save_checkpoint_steps",
                            .help = "global steps between two checkpoints",
                            .min = 1,
                            .max = STEPS_MAX,
                            .is_integer = true},
    [SETTING_PUBLISH_SECS] = {.key = "train.publish.every_secs",
                              .help = "seconds between two deltas for servers",
                              .min = 0.001,
                              .max = 1e9},
    [SETTING_LOG_STEPS] = {.key = "train.log_every_steps",
                           .help = "steps of the chief between two lines of progress",
                           .min = 1,
                           .max = STEPS_MAX,
                           .is_integer = true},
};

/* ---- one change ---- */

static bool is_named(const char *key, const char *name)
{
    const char *last = strrchr(key, '.');
    return strcmp(key, name) == 0 || strcmp(last + 1, name) == 0;
}

static err find_key(const char *name, enum setting_key *ret)
{
    char list[512] = "";
    size_t used = 0;
    for (int key = 0; key < SETTING_KEYS; key++) {
        *ret = (enum setting_key)key;
        if (is_named(setting_table[key].key, name)) return OK;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                                 setting_table[key].key);
    }
    return fail(ERR_INPUT, "\"%.64s\" cannot be set while a job runs; these keys can: %s", name,
                list);
}

static err read_number(const struct setting *setting, const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    const bool is_number = end != text && !*end && isfinite(*ret);
    if (is_number && *ret >= setting->min && *ret <= setting->max &&
        (!setting->is_integer || *ret == floor(*ret)))
        return OK;
    return fail(ERR_INPUT, "%s: expected %s from %.9g to %.9g%s or \"spec\", got \"%.32s\"",
                setting->key, setting->is_integer ? "an integer" : "a number", setting->min,
                setting->max, setting == &setting_table[SETTING_LEARNING_RATE] ? ", xF" : "", text);
}

err setting_read(const char *key, const char *value, struct setting_change *ret)
{
    *ret = (struct setting_change){0};
    TRY(find_key(key, &ret->key));
    if (strcmp(value, "spec") == 0) {
        ret->kind = SETTING_SPEC;
        return OK;
    }
    const bool is_factor = ret->key == SETTING_LEARNING_RATE && value[0] == 'x';
    if (is_factor) ret->kind = SETTING_FACTOR;
    return read_number(&setting_table[ret->key], value + is_factor, &ret->number);
}

void setting_text(const struct setting_change *c, char ret[SETTING_VALUE_MAX])
{
    const char *times = c->kind == SETTING_FACTOR ? "x" : "";
    snprintf(ret, SETTING_VALUE_MAX, "%s%.9g", times, c->number);
    if (strtod(ret + strlen(times), NULL) != c->number)
        snprintf(ret, SETTING_VALUE_MAX, "%s%.17g", times, c->number);
    if (c->kind == SETTING_SPEC) strcpy(ret, "spec");
}

static const json_t *value_at(const json_t *json, const char *path)
{
    char step[64];
    for (; path && json; path = *path ? path + 1 : NULL) {
        const size_t length = strcspn(path, ".");
        if (length == 0) break;
        snprintf(step, sizeof step, "%.*s", (int)length, path);
        json = json_object_get(json, step);
        path += length;
    }
    return json;
}

/* A long value is shown by its beginning and a digest. */
static void shorten(const json_t *value, char ret[SETTING_VALUE_MAX])
{
    char *text = value ? spec_value_text(value, JSON_ENSURE_ASCII) : NULL;
    const size_t length = text ? strlen(text) : 0;
    if (length < SETTING_VALUE_MAX)
        strcpy(ret, text ? text : "null");
    else
        snprintf(ret, SETTING_VALUE_MAX, "%.16s...%08x", text, (unsigned)random_key(0, text));
    free(text);
}

/* If there are several optimizers, all of them. */
void setting_of_spec(const struct spec *spec, enum setting_key key, char ret[SETTING_VALUE_MAX])
{
    const json_t *several = json_object_get(spec->json, "optimizers");
    const bool is_of_several = key == SETTING_LEARNING_RATE && json_array_size(several);
    shorten(is_of_several ? several : value_at(spec->json, setting_table[key].key), ret);
}

enum { TOGETHER_MAX = 3 };
/* Keys of the spec that exclude each other. */
static const char *const together[SETTING_KEYS][TOGETHER_MAX] = {
    [SETTING_LAST_STEP] = {"train.last_step", "train.num_steps", "train.epochs"},
    [SETTING_SAVE_SECS] = {"train.save_checkpoint_secs", "train.save_checkpoint_steps"},
    [SETTING_SAVE_STEPS] = {"train.save_checkpoint_secs", "train.save_checkpoint_steps"},
};

void setting_instead_of(const struct spec *spec, enum setting_key key, char ret[SETTING_VALUE_MAX])
{
    const char *const *keys = together[key];
    json_t *list = keys[0] ? json_array() : NULL;
    for (int i = 0; list && i < TOGETHER_MAX && keys[i]; i++) {
        const json_t *value = value_at(spec->json, keys[i]);
        json_array_append_new(list, value ? json_incref((json_t *)value) : json_null());
    }
    if (list)
        shorten(list, ret);
    else
        setting_of_spec(spec, key, ret);
    json_decref(list);
}

void setting_note_who(struct setting_change *c, const char *who)
{
    size_t length = strlen(who);
    if (length >= sizeof c->who) length = text_begin_of_character(who, sizeof c->who - 1);
    memcpy(c->who, who, length);
    c->who[length] = '\0';
}

/* ---- does a change fit the job? ---- */

/* The number in the spec that a set number replaces. */
static bool find_base(const struct spec *spec, double *ret)
{
    return spec->optimizers.count == 1 &&
           schedule_base(optimizer_learning_rate(&spec->optimizers.at[0]), ret) && *ret > 0;
}

static err check_rate(const struct setting_change *c, const struct spec *spec)
{
    double base;
    if (c->kind != SETTING_NUMBER || find_base(spec, &base)) return OK;
    return fail(
        ERR_INPUT, "%s: the spec has %s: set a factor, such as x0.5, which multiplies what it says",
        setting_table[c->key].key,
        spec->optimizers.count > 1 ? "several optimizers" : "a schedule without one learning_rate");
}

static err check_last_step(const struct setting_change *c, const struct spec *spec, uint64_t step,
                           uint64_t end_of_spec)
{
    const char *key = setting_table[c->key].key;
    if (spec->train.epochs > 0)
        return fail(ERR_INPUT, "%s: the job ends by train.epochs, not by steps", key);
    if (c->kind == SETTING_SPEC && !end_of_spec)
        return fail(ERR_INPUT,
                    "%s: the spec has train.num_steps, and from which step they count is not known "
                    "here: set a step",
                    key);
    const uint64_t end = c->kind == SETTING_SPEC ? end_of_spec : (uint64_t)c->number;
    if (end > step) return OK;
    return fail(ERR_INPUT,
                "%s: %" PRIu64 "%s, and the job is at step %" PRIu64 " already: dtrain "
                "stop ends it",
                key, end, c->kind == SETTING_SPEC ? " by the spec" : "", step);
}

static err check_saves(const struct setting_change *c, const struct spec *spec)
{
    const struct variant *list = spec->train.hooks.at;
    for (int i = 0; i < spec->train.hooks.count; i++)
        if (strcmp(list[i].kind->object->name, "checkpoint_saver") == 0)
            return fail(ERR_INPUT, "%s: train.hooks[%d] says when checkpoints are saved",
                        setting_table[c->key].key, i);
    return OK;
}

err setting_check(const struct setting_change *c, const struct spec *spec, uint64_t step,
                  uint64_t end_of_spec)
{
    if (!spec->train.checkpoint.dir)
        return fail(ERR_INPUT,
                    "what is set is kept beside checkpoints: the job needs a train.checkpoint_dir");
    switch (c->key) {
    case SETTING_LEARNING_RATE:
        return check_rate(c, spec);
    case SETTING_LAST_STEP:
        return check_last_step(c, spec, step, end_of_spec);
    case SETTING_SAVE_SECS:
    case SETTING_SAVE_STEPS:
        return check_saves(c, spec);
    case SETTING_PUBLISH_SECS:
        if (spec->train.checkpoint.publish.every_secs > 0) return OK;
        return fail(ERR_INPUT, "%s: the job was started without train.publish",
                    setting_table[c->key].key);
    default:
        return OK;
    }
}

/* ---- the file ---- */

static json_t *change_json(const struct setting_change *c)
{
    char value[SETTING_VALUE_MAX], generation[17];
    setting_text(c, value);
    snprintf(generation, sizeof generation, "%016" PRIx64, c->generation);
    return json_pack("{ss ss ss sI sf ss ss}", "key", setting_table[c->key].key, "value", value,
                     "instead_of", c->instead_of, "step", (json_int_t)c->step, "time", c->time_s,
                     "by", c->who, "generation", generation);
}

static err read_change(const json_t *json, struct setting_change *ret)
{
    const char *key, *value, *instead_of, *who, *generation;
    json_int_t step;
    double time_s;
    if (json_unpack((json_t *)json, "{ss ss ss sI sF ss ss}", "key", &key, "value", &value,
                    "instead_of", &instead_of, "step", &step, "time", &time_s, "by", &who,
                    "generation", &generation) ||
        step < 0)
        return fail(ERR_INPUT, "expected key, value, instead_of, step, time, by and generation");
    TRY(setting_read(key, value, ret));
    ret->step = (uint64_t)step;
    ret->time_s = time_s;
    ret->generation = strtoull(generation, NULL, 16);
    setting_note_who(ret, who);
    snprintf(ret->instead_of, sizeof ret->instead_of, "%s", instead_of);
    return OK;
}

static err read_all(const json_t *json, struct settings *ret)
{
    const json_t *list = json_object_get(json, "changes");
    if (!json_is_array(list) || json_array_size(list) > SETTINGS_MAX)
        return fail(ERR_INPUT, "expected \"changes\", a list of at most %d", SETTINGS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const err e = read_change(json_array_get(list, i), &ret->at[ret->count++]);
        if (e) return fail_prefix(e, "changes[%zu]", i);
    }
    return OK;
}

err settings_load(const char *folder, struct settings *ret)
{
    char path[CHECKPOINT_PATH_MAX];
    json_t *json = NULL;
    *ret = (struct settings){0};
    TRY(folder_join(folder, SETTINGS_NAME, path));
    err e = spec_find_kept(path, &json);
    if (!e && json) e = read_all(json, ret);
    json_decref(json);
    if (!e) return OK;
    *ret = (struct settings){0};
    return fail_prefix(e, "%s: the file of dtrain set's changes: without it the spec holds", path);
}

err settings_keep(const char *folder, const struct settings *s)
{
    char path[CHECKPOINT_PATH_MAX];
    TRY(folder_join(folder, SETTINGS_NAME, path));
    json_t *list = json_array();
    bool is_whole = list != NULL;
    for (int i = 0; i < s->count && is_whole; i++)
        is_whole = json_array_append_new(list, change_json(&s->at[i])) == 0;
    json_t *json = json_pack("{so}", "changes", list);
    char *text = json && is_whole ? json_dumps(json, JSON_INDENT(1) | JSON_ENSURE_ASCII) : NULL;
    json_decref(json);
    const err e = text ? output_replace(path, text, strlen(text))
                       : fail(ERR_MEMORY, "%s: what is set cannot be written as JSON", path);
    free(text);
    return e;
}

/* ---- all of them ---- */

static void remove_at(struct settings *s, int index)
{
    s->count--;
    for (int i = index; i < s->count; i++) s->at[i] = s->at[i + 1];
}

static bool is_replaced(const struct settings *s, int index)
{
    for (int i = index + 1; i < s->count; i++)
        if (s->at[i].key == s->at[index].key) return true;
    return false;
}

void settings_add(struct settings *s, const struct setting_change *c)
{
    int oldest = 0;
    while (s->count == SETTINGS_MAX && !is_replaced(s, oldest)) oldest++; /* ends: keys are few */
    if (s->count == SETTINGS_MAX) remove_at(s, oldest);
    s->at[s->count++] = *c;
}

int settings_forget_after(struct settings *s, uint64_t step)
{
    const int before = s->count;
    for (int i = s->count - 1; i >= 0; i--)
        if (setting_table[s->at[i].key].is_of_values && s->at[i].step > step) remove_at(s, i);
    return before - s->count;
}

int settings_forget_key(struct settings *s, enum setting_key key)
{
    const int before = s->count;
    for (int i = s->count - 1; i >= 0; i--)
        if (s->at[i].key == key) remove_at(s, i);
    return before - s->count;
}

bool settings_hold(const struct settings *s, const struct setting_change *c)
{
    for (int i = 0; i < s->count; i++)
        if (s->at[i].key == c->key && s->at[i].step == c->step && s->at[i].time_s == c->time_s)
            return true;
    return false;
}

const struct setting_change *settings_find(const struct settings *s, const struct spec *spec,
                                           enum setting_key key)
{
    char now[SETTING_VALUE_MAX];
    const struct setting_change *last = NULL;
    for (int i = 0; i < s->count; i++)
        if (s->at[i].key == key) last = &s->at[i];
    if (!last || last->kind == SETTING_SPEC) return NULL;
    setting_instead_of(spec, key, now);
    return strcmp(now, last->instead_of) == 0 ? last : NULL;
}

double settings_rate_factor(const struct settings *s, const struct spec *spec)
{
    const struct setting_change *c = settings_find(s, spec, SETTING_LEARNING_RATE);
    double base;
    if (!c) return 1;
    if (c->kind == SETTING_FACTOR) return c->number;
    return find_base(spec, &base) ? c->number / base : 1;
}

/* The later of the two settings for when checkpoints are saved. */
static void apply_saves(const struct settings *s, struct spec *spec)
{
    const struct setting_change *secs = settings_find(s, spec, SETTING_SAVE_SECS),
                                *steps = settings_find(s, spec, SETTING_SAVE_STEPS);
    struct checkpoint_spec *saves = &spec->train.checkpoint;
    if (secs && steps && secs > steps) steps = NULL;
    if (!secs && !steps) return;
    saves->every_secs = steps ? 0 : secs->number;
    saves->every_steps = steps ? (int64_t)steps->number : 0;
}

void settings_apply(const struct settings *s, const struct train_spec *was, struct spec *spec)
{
    const struct setting_change *publish = settings_find(s, spec, SETTING_PUBLISH_SECS),
                                *log = settings_find(s, spec, SETTING_LOG_STEPS);
    struct checkpoint_spec *saves = &spec->train.checkpoint;
    saves->every_secs = was->checkpoint.every_secs;
    saves->every_steps = was->checkpoint.every_steps;
    apply_saves(s, spec);
    saves->publish.every_secs = publish ? publish->number : was->checkpoint.publish.every_secs;
    spec->train.log_every_steps = log ? (int64_t)log->number : was->log_every_steps;
}

/* A key without a change has the spec's value alone. */
static json_t *setting_json(const struct settings *s, const struct spec *spec, enum setting_key key)
{
    const struct setting_change *c = settings_find(s, spec, key);
    char value[SETTING_VALUE_MAX], said[SETTING_VALUE_MAX];
    setting_of_spec(spec, key, said);
    if (!c) return json_pack("{ss}", "spec", said);
    setting_text(c, value);
    return json_pack("{ss ss sI sf ss}", "spec", said, "value", value, "step", (json_int_t)c->step,
                     "time", c->time_s, "by", c->who);
}

json_t *settings_json(const struct settings *s, const struct spec *spec)
{
    json_t *json = json_object();
    for (int key = 0; key < SETTING_KEYS && json; key++)
        if (json_object_set_new(json, setting_table[key].key,
                                setting_json(s, spec, (enum setting_key)key))) {
            json_decref(json);
            return NULL;
        }
    return json;
}
