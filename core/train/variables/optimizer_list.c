/* optimizer_list.c - see optimizer_list.h. */
#include "core/train/variables/optimizer_list.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As TensorFlow makes names unique: the second of a name gets "_1". */
static const char *power_name(const struct optimizers *list, const char *name, struct arena *arena)
{
    int before = 0;
    for (int i = 0; i < list->power_count; i++)
        before += strncmp(list->power_names[i], name, strlen(name)) == 0;
    return before ? arena_format(arena, "%s_%d", name, before) : name;
}

struct optimizers optimizers_make(const struct optimizer_spec *at, int count, struct arena *arena)
{
    struct optimizers list = {.at = at, .count = count};
    assert(count <= OPTIMIZERS_MAX);
    for (int i = 0; i < count; i++) {
        const struct optimizer *optimizer = optimizer_of(&at[i]);
        const int slots = optimizer_slots(optimizer, at[i].optimizer.attributes);
        if (slots > list.slot_count) list.slot_count = slots;
        const char *names[POWERS_MAX];
        for (int k = 0; k < optimizer->power_count; k++)
            names[k] = power_name(&list, optimizer->power[k].name, arena);
        for (int k = 0; k < optimizer->power_count; k++)
            list.power_names[list.power_count++] = names[k];
    }
    return list;
}

void optimizers_keep_average(struct optimizers *list, const struct average_spec *average)
{
    list->average = *average;
    list->slot_count += average->decay > 0;
}

/* In float, as TensorFlow computes it */
float average_share(const struct average_spec *average, int64_t step)
{
    const float n = (float)(step + 1), decay = (float)average->decay;
    const float grown = (1 + n) / (10 + n);
    return 1 - (average->num_updates && grown < decay ? grown : decay);
}

static bool matches(const struct optimizer_spec *spec, const char *variable)
{
    return fnmatch(spec->match, variable, 0) == 0;
}

static bool is_among(const struct strings *patterns, const char *variable)
{
    for (int i = 0; i < patterns->count; i++)
        if (fnmatch(patterns->at[i], variable, 0) == 0) return true;
    return false;
}

bool optimizers_freeze(const struct optimizers *list, const char *variable)
{
    return is_among(&list->frozen, variable);
}

double optimizers_decay(const struct optimizers *list, const char *variable)
{
    const struct weight_decay *decay = &list->decay;
    const bool decays = is_among(&decay->match, variable) && !is_among(&decay->except, variable);
    return decays ? decay->rate : 0;
}

static bool keeps(const struct optimizers *list, const char *variable, float moving)
{
    return moving > 0 || optimizers_freeze(list, variable);
}

int optimizers_find(const struct optimizers *list, const char *variable, float moving)
{
    if (keeps(list, variable, moving)) return OPTIMIZER_NONE;
    for (int i = 0; i < list->count; i++)
        if (matches(&list->at[i], variable)) return i;
    return OPTIMIZER_NONE;
}

/* Where the optimizer's learning rate is in the spec */
static const char *rate_text(const struct optimizers *list, int index,
                             char text[OPTIMIZER_TEXT_MAX])
{
    if (list->count > 1)
        snprintf(text, OPTIMIZER_TEXT_MAX, "optimizers[%d].learning_rate", index);
    else
        snprintf(text, OPTIMIZER_TEXT_MAX, "optimizer.learning_rate");
    return text;
}

const char *optimizers_with_epochs(const struct optimizers *list, char text[OPTIMIZER_TEXT_MAX])
{
    for (int i = 0; i < list->count; i++)
        if (schedule_has_epochs(optimizer_learning_rate(&list->at[i])))
            return rate_text(list, i, text);
    return NULL;
}

err optimizers_count_epochs(const struct optimizers *list, double steps_per_epoch)
{
    char text[OPTIMIZER_TEXT_MAX];
    const char *counting = optimizers_with_epochs(list, text);
    if (!counting) return OK;
    if (!(steps_per_epoch > 0))
        return fail(ERR_INPUT,
                    "%s: counts epochs, and nobody knows how many rows data.train will have: "
                    "give steps",
                    counting);
    for (int i = 0; i < list->count; i++) /* the first member of their attributes */
        TRY(schedule_count_epochs(list->at[i].optimizer.attributes, rate_text(list, i, text),
                                  steps_per_epoch));
    return OK;
}

void optimizers_powers(const struct optimizers *list, float *ret)
{
    for (int i = 0; i < list->count; i++) {
        const struct optimizer *optimizer = optimizer_of(&list->at[i]);
        for (int k = 0; k < optimizer->power_count; k++)
            *ret++ = optimizer->power[k].factor(list->at[i].optimizer.attributes);
    }
}

static err fail_unmatched(const char *variable)
{
    return fail(ERR_INPUT, "optimizers: none matches the variable \"%s\" (\"match\": \"*\" does)",
                variable);
}

/* A pattern that gets no variable is probably misspelt, or follows one that matches all; "*" is
 * allowed to get none. */
static err check_pattern(const struct optimizers *list, int index, const struct variable *variables,
                         int count, struct arena *arena)
{
    const char *pattern = list->at[index].match, *taken = NULL;
    const char **names = arena_array(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++) {
        names[i] = variables[i].name;
        const bool is_changed = !keeps(list, names[i], variables[i].moving);
        if (!is_changed || !matches(&list->at[index], names[i])) continue;
        if (optimizers_find(list, names[i], 0) == index) return OK;
        taken = names[i];
    }
    if (strcmp(pattern, "*") == 0) return OK;
    if (taken)
        return fail(ERR_INPUT,
                    "optimizers[%d].match: \"%s\" matches nothing that optimizers[%d] "
                    "has not taken before it",
                    index, pattern, optimizers_find(list, taken, 0));
    const struct suggestion near = suggest(pattern, names, count);
    return fail(ERR_INPUT, "optimizers[%d].match: no variable is called \"%s\"%s", index, pattern,
                near.text);
}

/* Optimizers that sweep change all rows in every step, which is not possible for a table that
 * grows. */
static err check_growing(const struct optimizers *list, const struct variable *variable)
{
    if (!variable->table || !variable->table->growth) return OK;
    const struct optimizer *by = optimizer_of(&list->at[optimizers_find(list, variable->name, 0)]);
    if (!by->sweeps) return OK;
    return fail(ERR_INPUT,
                "%s changes all rows at each step, and %s grows: take one that changes the rows of "
                "the batch, as adagrad, ftrl or lazy_adam do",
                by->object.name, variable->name);
}

/* A pattern that matches no variable is probably misspelt. */
static err check_named(const char *what, const struct strings *patterns,
                       const struct variable *variables, int count, struct arena *arena)
{
    const char **names = arena_array(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++) names[i] = variables[i].name;
    for (int k = 0; k < patterns->count; k++) {
        const struct strings one = {&patterns->at[k], 1};
        int i = 0;
        while (i < count && !is_among(&one, names[i])) i++;
        if (i < count) continue;
        const struct suggestion near = suggest(patterns->at[k], names, count);
        return fail(ERR_INPUT, "%s[%d]: no variable is called \"%s\"%s", what, k, patterns->at[k],
                    near.text);
    }
    return OK;
}

static err check_frozen(const struct optimizers *list, const struct variable *variables, int count,
                        struct arena *arena)
{
    TRY(check_named("train.freeze", &list->frozen, variables, count, arena));
    for (int i = 0; i < count; i++)
        if (!keeps(list, variables[i].name, variables[i].moving)) return OK;
    return fail(ERR_INPUT, "train.freeze: there is no variable left to train");
}

/* Weight decay has no effect on values that an optimizer recomputes from sums of their
 * gradients. */
static err check_decay(const struct optimizers *list, const struct variable *variables, int count,
                       struct arena *arena)
{
    const struct weight_decay *decay = &list->decay;
    if (!(decay->rate > 0)) return OK;
    TRY(check_named("train.weight_decay.match", &decay->match, variables, count, arena));
    TRY(check_named("train.weight_decay.except", &decay->except, variables, count, arena));
    for (int i = 0; i < count; i++) {
        const int by = optimizers_find(list, variables[i].name, variables[i].moving);
        if (by < 0 || !(optimizers_decay(list, variables[i].name) > 0)) continue;
        const struct optimizer *optimizer = optimizer_of(&list->at[by]);
        if (optimizer->refuses_decay)
            return fail(ERR_INPUT, "train.weight_decay: %s is updated by %s, which %s",
                        variables[i].name, optimizer->object.name, optimizer->refuses_decay);
    }
    return OK;
}

err optimizers_check(const struct optimizers *list, const struct variable *variables, int count,
                     struct arena *arena)
{
    TRY(check_frozen(list, variables, count, arena));
    for (int i = 0; i < list->count; i++) TRY(check_pattern(list, i, variables, count, arena));
    TRY(check_decay(list, variables, count, arena));
    for (int i = 0; i < count; i++) {
        if (keeps(list, variables[i].name, variables[i].moving)) continue;
        if (optimizers_find(list, variables[i].name, 0) < 0)
            return fail_unmatched(variables[i].name);
        TRY(check_growing(list, &variables[i]));
    }
    return OK;
}

err optimizers_of_slices(const struct optimizers *list, const struct slice *slices, int count,
                         struct arena *arena, const int **ret)
{
    int *found = arena_array(arena, (size_t)count + 1, sizeof *found);
    for (int i = 0; i < count; i++) {
        found[i] = optimizers_find(list, slices[i].name, slices[i].moving);
        if (found[i] < 0 && !keeps(list, slices[i].name, slices[i].moving))
            return fail_unmatched(slices[i].name);
    }
    *ret = found;
    return OK;
}

struct start {
    int64_t offset;
    int optimizer;
    float moving;
    double decay;
};

static int compare_starts(const void *a, const void *b)
{
    const int64_t x = ((const struct start *)a)->offset, y = ((const struct start *)b)->offset;
    return (x > y) - (x < y);
}

static bool is_alike(const struct section *section, const struct start *start)
{
    return section->optimizer == start->optimizer && section->moving == start->moving &&
           section->decay == start->decay;
}

/* Adjacent slices with the same optimizer and decay, or the same `moving`, form one section; a gap
 * between two slices belongs to the section of the first. Frozen variables do not decay. */
int sections_make(const struct optimizers *list, const struct slice *slices,
                  const int *optimizer_of, int count, int64_t floats, struct arena *arena,
                  const struct section **ret)
{
    struct start *starts = arena_array(arena, (size_t)count + 1, sizeof *starts);
    struct section *sections = arena_array(arena, (size_t)count + 1, sizeof *sections);
    int made = 0;
    for (int i = 0; i < count; i++) {
        const bool decays = optimizer_of[i] != OPTIMIZER_NONE;
        starts[i] = (struct start){slices[i].offset, optimizer_of[i], slices[i].moving,
                                   decays ? optimizers_decay(list, slices[i].name) : 0};
    }
    qsort(starts, (size_t)count, sizeof *starts, compare_starts);
    for (int i = 0; i < count; i++) {
        const int64_t end = i + 1 < count ? starts[i + 1].offset : floats;
        if (!made || !is_alike(&sections[made - 1], &starts[i]))
            sections[made++] = (struct section){.optimizer = starts[i].optimizer,
                                                .moving = starts[i].moving,
                                                .decay = starts[i].decay};
        sections[made - 1].end = end;
    }
    *ret = sections;
    return made;
}

int64_t sections_moved(const struct section *sections, int count, int64_t floats)
{
    const struct section *last = count ? &sections[count - 1] : NULL;
    if (!last || last->optimizer != OPTIMIZER_NONE || last->moving > 0) return floats;
    return count > 1 ? last[-1].end : LAYOUT_ALIGN;
}

static const struct field decay_fields[] = {
    FIELD_OF(
        "rate", FLOAT, struct weight_decay, rate, .min = 0, .max = RATE_MAX,
        .help =
            "each update first subtracts this fraction of every value, times the learning rate"),
    FIELD_OF("match", STRINGS, struct weight_decay, match, .fallback = "[\"*\"]",
             .count_max = PATTERNS_MAX, .help = "patterns of variables that decay"),
    FIELD_OF("except", STRINGS, struct weight_decay, except, .fallback = "[]",
             .count_max = PATTERNS_MAX,
             .help = "patterns of variables that are spared, such as \"*bias\""),
    {0},
};

const struct object weight_decay_object = {
    .name = "weight_decay",
    .summary = "decoupled weight decay, in addition to the optimizer",
    .fields = decay_fields,
    .size = sizeof(struct weight_decay)};

const char *optimizers_text(const struct optimizers *list, struct arena *arena)
{
    const char *text = "";
    for (int i = 0; i < list->count; i++)
        text = arena_format(arena, "%s%s%s", text, i ? ", " : "",
                            optimizer_of(&list->at[i])->object.name);
    return text;
}
