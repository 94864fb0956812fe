/* var.c - `dtrain var ls|get|set|add|watch`: reads and changes variables of a running cluster. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/var/variable_view.h"
#include "cmd/var/var.h"
#include "core/base/log.h"
#include "core/base/standard_output.h"
#include "core/cluster/visit/ask.h"
#include "core/cluster/visit/shared.h"

enum {
    WORDS_MAX = 3, /* verb, name, value */
    SECONDS_MAX = 24 * 3600,
    WATCH_MS = 20000, /* how long a ps keeps an answer to itself that nothing changed */
    COUNT_MAX = 1000000000,
};

static const struct field fields[] = {
    VISITED_FLAGS(struct var_flags, "addresses of all parameter servers, in the order of their "
                                    "indices"),
    FIELD_OF("timeout", SECONDS, struct var_flags, timeout_ms, .fallback = "60", .min = 0.001,
             .max = SECONDS_MAX,
             .help = "seconds to wait for each ps to connect, and again for its answer"),
    FIELD_OF("every", SECONDS, struct var_flags, every_ms, .fallback = "1", .max = SECONDS_MAX,
             .help = "watch: minimum seconds between two lines; 0: every observed change"),
    FIELD_OF("count", INT, struct var_flags, count, .fallback = "0", .max = COUNT_MAX,
             .help = "watch: end after N lines; 0: when the job ends"),
    FIELD_OF("json", BOOL, struct var_flags, json, .fallback = "false",
             .help = "ls: print one JSON object (values are always JSON)"),
    {0},
};

static const struct object var_flags_object = {
    .name = "var",
    .summary = "Reads and changes variables of a running cluster",
    .fields = fields,
    .size = sizeof(struct var_flags),
};

static const char usage[] = "usage: dtrain var ls | get NAME | set NAME VALUE | add NAME VALUE | "
                            "watch NAME, with --ps_hosts=HOST:PORT,... or --coordinator=URL "
                            "--cluster=NAME; see dtrain help var";

/* ---- requests ---- */

/* New reference. */
static json_t *make_ask(const struct var *var, const char *verb)
{
    json_t *ask = json_pack("{ss ss}", "do", verb, "name", var->name);
    if (var->selection.index_count == 0) return ask;
    json_t *index = json_array();
    for (int i = 0; i < var->selection.index_count; i++)
        json_array_append_new(index, json_integer(var->selection.index[i]));
    json_object_set_new(ask, "index", index);
    if (var->selection.rows)
        json_object_set_new(ask, "rows", json_integer((json_int_t)var->selection.rows));
    return ask;
}

/* The same of every ps that holds the variable. Takes the reference. */
static err ask_holders(struct var *var, json_t *ask)
{
    err e = OK;
    for (int ps = 0; ps < var->ps_count && !e; ps++)
        if (var->holds[ps]) e = visitor_ask(var->visitor, ps, ask);
    json_decref(ask);
    return e ? e : visitor_wait_all(var->visitor, var->flags.timeout_ms);
}

static err kind_of_code(int code)
{
    return code == EXIT_INPUT       ? ERR_INPUT
           : code == EXIT_TIMEOUT   ? ERR_TIMEOUT
           : code == EXIT_LOST_PEER ? ERR_PEER
                                    : ERR_MEMORY;
}

/* Does the ps say that it cannot answer? */
err var_check_answer(const struct var *var, int ps)
{
    json_t *answer = visitor_answer(var->visitor, ps);
    const char *text = json_string_value(json_object_get(answer, "error"));
    int code = (int)json_integer_value(json_object_get(answer, "code"));
    return text ? fail(kind_of_code(code), "ps/%d: %s", ps, text) : OK;
}

/* Trained hides shared. */
static enum target_kind best_kind(const struct var *var)
{
    bool has[TARGET_STEP + 1] = {false};
    for (int ps = 0; ps < var->ps_count; ps++)
        if (var->holds[ps]) has[variable_view_kind(visitor_answer(var->visitor, ps))] = true;
    return has[TARGET_TRAINED]  ? TARGET_TRAINED
           : has[TARGET_TABLE]  ? TARGET_TABLE
           : has[TARGET_STEP]   ? TARGET_STEP
           : has[TARGET_SHARED] ? TARGET_SHARED
                                : TARGET_NONE;
}

/* Joins the answers; from here on only the ps that have something of it are asked. */
static err join(struct var *var, struct variable_view *ret)
{
    struct variable_view seen = {0};
    enum target_kind kind = best_kind(var);
    err e = OK;
    for (int ps = 0; ps < var->ps_count; ps++)
        if (var->holds[ps]) TRY(var_check_answer(var, ps));
    for (int ps = 0; ps < var->ps_count && !e; ps++) {
        json_t *answer = visitor_answer(var->visitor, ps);
        if (!var->holds[ps]) continue;
        var->version[ps] = (uint64_t)json_integer_value(json_object_get(answer, "version"));
        if (kind == TARGET_NONE) continue;
        var->holds[ps] = variable_view_kind(answer) == kind;
        if (!var->holds[ps]) continue;
        if (!seen.kind) e = variable_view_open(answer, &var->selection, &seen);
        if (!e) e = variable_view_add(&seen, answer);
    }
    if (!e && kind != TARGET_NONE) e = variable_view_check(&seen);
    if (e)
        variable_view_close(&seen);
    else
        *ret = seen;
    return e ? fail_prefix(e, "%s", var->name) : OK;
}

static err look(struct var *var, struct variable_view *ret)
{
    TRY(ask_holders(var, make_ask(var, "get")));
    return join(var, ret);
}

/* With the nearest of what the ps have. */
static err fail_none(const struct var *var)
{
    const char **near =
        arena_array(&((struct var *)var)->arena, (size_t)var->ps_count, sizeof *near);
    int count = 0;
    for (int ps = 0; ps < var->ps_count; ps++) {
        json_t *answer = visitor_answer(var->visitor, ps);
        const char *name = json_string_value(json_object_get(answer, "near"));
        if (name) near[count++] = name;
    }
    const struct suggestion nearest = suggest(var->name, near, count);
    return fail(ERR_INPUT, "no variable \"%s\"%s", var->name,
                *nearest.text ? nearest.text : "; dtrain var ls lists them, and var set makes one");
}

static err print_line(const char *text)
{
    puts(text);
    return standard_output_flush();
}

static err print(const struct variable_view *seen)
{
    char *text = variable_view_text(seen);
    if (!text) return fail(ERR_MEMORY, "no memory to print it");
    err e = print_line(text);
    free(text);
    return e;
}

/* ---- verbs ---- */

static err get(struct var *var)
{
    struct variable_view seen;
    TRY(look(var, &seen));
    err e = seen.kind ? print(&seen) : fail_none(var);
    variable_view_close(&seen);
    return e;
}

/* Who is to be asked: those that hold it; of a shared one that is to be made, its home. */
static err choose(struct var *var, bool is_add, bool *ret_makes)
{
    struct variable_view seen;
    TRY(look(var, &seen));
    enum target_kind kind = seen.kind;
    variable_view_close(&seen);
    *ret_makes = kind == TARGET_NONE;
    if (kind != TARGET_NONE) return OK;
    if (is_add || var->selection.index_count) return fail_none(var);
    int home = shared_home(var->name, var->ps_count);
    for (int ps = 0; ps < var->ps_count; ps++) var->holds[ps] = ps == home;
    return OK;
}

static err change(struct var *var, const char *verb)
{
    bool makes;
    struct variable_view seen;
    TRY(choose(var, strcmp(verb, "add") == 0, &makes));
    json_t *ask = make_ask(var, verb);
    json_object_set(ask, "value", var->value);
    if (makes) json_object_set_new(ask, "make", json_true());
    TRY(ask_holders(var, ask));
    TRY(join(var, &seen));
    if (makes && seen.kind)
        log_line(LOG_INFO,
                 "%s is a new shared variable: nobody had one of this name (those of a model are "
                 "there once its training has begun, and hide shared ones)",
                 var->name);
    err e = seen.kind ? print(&seen) : fail_none(var);
    variable_view_close(&seen);
    return e;
}

static err set(struct var *var)
{
    return change(var, "set");
}

static err add(struct var *var)
{
    return change(var, "add");
}

/* Is there an answer that is news? One that nothing changed leads to the same question again. */
static err take_news(struct var *var, json_t *ask, bool is_first, bool *ret_is_news)
{
    *ret_is_news = false;
    for (int ps = 0; ps < var->ps_count; ps++) {
        json_t *answer = visitor_answer(var->visitor, ps);
        if (!var->holds[ps]) continue;
        bool is_same = answer && json_object_get(answer, "unchanged");
        if (answer && !is_same && !is_first) *ret_is_news = true;
        if (!is_first && !is_same) continue;
        json_object_set_new(ask, "since", json_integer((json_int_t)var->version[ps]));
        TRY(visitor_ask(var->visitor, ps, ask));
    }
    return OK;
}

/* Every holder answers when it has another version; when the first has, the others are looked at
 * too. Ends with the job, or when a ps is lost. */
static err wait_for_news(struct var *var)
{
    json_t *ask = make_ask(var, "get");
    json_object_set_new(ask, "every_ms", json_integer((json_int_t)var->flags.every_ms));
    json_object_set_new(ask, "limit_ms", json_integer(WATCH_MS));
    bool is_news = false;
    err e = take_news(var, ask, true, &is_news);
    while (!e && !is_news) {
        e = visitor_wait_any(var->visitor, WATCH_MS + var->flags.timeout_ms);
        if (!e) e = take_news(var, ask, false, &is_news);
    }
    json_decref(ask);
    return e;
}

/* The whole of it as it is now: those that have not told news are asked again, without patience. */
static err look_again(struct var *var, struct variable_view *ret)
{
    json_t *ask = make_ask(var, "get");
    err e = OK;
    for (int ps = 0; ps < var->ps_count && !e; ps++)
        if (var->holds[ps] && !visitor_answer(var->visitor, ps))
            e = visitor_ask(var->visitor, ps, ask);
    json_decref(ask);
    if (!e) e = visitor_wait_all(var->visitor, var->flags.timeout_ms);
    return e ? e : join(var, ret);
}

/* A line, unless it is the one before. */
static err print_change(const struct variable_view *seen, char **last, int64_t *printed)
{
    char *text = variable_view_text(seen);
    if (!text) return fail(ERR_MEMORY, "no memory to print it");
    bool is_new = !*last || strcmp(text, *last) != 0;
    free(*last);
    *last = text;
    *printed += is_new;
    return is_new ? print_line(text) : OK;
}

/* Where a recovering cluster does not have it for a while, nothing is printed. */
static err print_changes(struct var *var, struct variable_view *seen, char **last)
{
    for (int64_t printed = 0;;) {
        if (seen->kind) TRY(print_change(seen, last, &printed));
        if (var->flags.count && printed >= var->flags.count) return OK;
        TRY(wait_for_news(var));
        variable_view_close(seen);
        TRY(look_again(var, seen));
    }
}

static err watch(struct var *var)
{
    struct variable_view seen;
    char *last = NULL;
    TRY(look(var, &seen));
    err e = seen.kind ? print_changes(var, &seen, &last) : fail_none(var);
    variable_view_close(&seen);
    free(last);
    const struct visitor_verdict *verdict = visitor_verdict(var->visitor);
    if (!e || !verdict->has_come) return e;
    report_error(e);
    var->code = verdict->code;
    return OK;
}

/* ---- the command line ---- */

static const struct var_verb {
    const char *name;
    int words; /* that it takes: itself, NAME, VALUE */
    err (*run)(struct var *);
} verbs[] = {
    {"ls", 1, var_ls}, {"get", 2, get}, {"set", 3, set}, {"add", 3, add}, {"watch", 2, watch}};

enum { VERB_COUNT_HERE = sizeof verbs / sizeof *verbs };

static const char *var_verb(int index)
{
    return index < VERB_COUNT_HERE ? verbs[index].name : NULL;
}

static err find_verb(const char *name, int words, const struct var_verb **ret)
{
    const char *names[VERB_COUNT_HERE];
    for (int i = 0; i < VERB_COUNT_HERE; i++) {
        names[i] = verbs[i].name;
        if (strcmp(verbs[i].name, name) != 0) continue;
        if (words != verbs[i].words) return fail(ERR_INPUT, "%s", usage);
        *ret = &verbs[i];
        return OK;
    }
    const struct suggestion near = suggest(name, names, VERB_COUNT_HERE);
    return *near.text ? fail(ERR_INPUT, "var: unknown \"%.64s\"%s", name, near.text)
                      : fail(ERR_INPUT, "%s", usage);
}

/* "[7:9]": rows 7 and 8 of a table. false: it is no range. */
static bool read_range(const char *text, struct selection *ret)
{
    long long first, end;
    int used = 0;
    if (sscanf(text, "[%lld:%lld]%n", &first, &end, &used) != 2 || text[used]) return false;
    if (first < 0 || end <= first) return false;
    *ret = (struct selection){.index_count = 1, .index = {first}, .rows = end - first};
    return true;
}

/* "kernel[3,4]" */
static err read_name(struct var *var, const char *word)
{
    size_t length = strcspn(word, "[");
    var->name = arena_format(&var->arena, "%.*s", (int)length, word);
    if (length == 0 || length >= VISIT_NAME_MAX)
        return fail(ERR_INPUT, "\"%.64s\": a name has 1 to %d characters", word,
                    VISIT_NAME_MAX - 1);
    if (word[length] == '\0' || read_range(word + length, &var->selection)) return OK;
    json_error_t error;
    json_t *index = json_loads(word + length, 0, &error);
    struct selection *selection = &var->selection;
    bool is_index =
        json_is_array(index) && json_array_size(index) > 0 && json_array_size(index) <= RANK_MAX;
    for (size_t i = 0; is_index && i < json_array_size(index); i++) {
        json_t *number = json_array_get(index, i);
        is_index = json_is_integer(number);
        selection->index[selection->index_count++] = json_integer_value(number);
    }
    json_decref(index);
    return is_index ? OK
                    : fail(ERR_INPUT, "\"%.64s\": expected NAME, NAME[3,4] or NAME[3:5]", word);
}

static err read_value(struct var *var, const char *word)
{
    json_error_t error;
    struct value value;
    var->value = json_loads(word, JSON_DECODE_ANY, &error);
    if (!var->value)
        return fail(ERR_INPUT,
                    "\"%.64s\": expected a number or lists of numbers, as in 0.5 or "
                    "[[1, 2], [3, 4]]",
                    word);
    TRY(value_read(var->value, &value));
    value_free(&value);
    return OK;
}

static err read_words(struct var *var, int argc, char **argv, const struct var_verb **ret)
{
    const char *words[WORDS_MAX];
    int count;
    TRY(flags_parse(&var_flags_object, argc, argv, &var->arena, &var->flags, words, WORDS_MAX,
                    &count));
    if (count == 0) return fail(ERR_INPUT, "%s", usage);
    TRY(find_verb(words[0], count, ret));
    const char *who = arena_format(&var->arena, "var %s", words[0]);
    TRY(visited_read(&var->visited, &var->flags.cluster, who, &var->arena));
    if (count > 1) TRY(read_name(var, words[1]));
    return count > 2 ? read_value(var, words[2]) : OK;
}

static err visit(struct var *var, const struct var_verb *verb)
{
    const struct visitor_options options = {0};
    TRY(visited_open(&var->visited, options, var->flags.timeout_ms, &var->arena, &var->visitor));
    var->ps_count = visitor_ps_count(var->visitor);
    var->holds = arena_array(&var->arena, (size_t)var->ps_count, sizeof *var->holds);
    var->version = arena_array(&var->arena, (size_t)var->ps_count, sizeof *var->version);
    for (int ps = 0; ps < var->ps_count; ps++) var->holds[ps] = true;
    return verb->run(var);
}

static int cmd_var(int argc, char **argv)
{
    struct var var = {.code = EXIT_DONE};
    const struct var_verb *verb = NULL;
    err e = read_words(&var, argc - 1, argv + 1, &verb);
    if (!e) e = visit(&var, verb);
    int code = e ? report_error(e) : var.code;
    visited_close(&var.visited);
    json_decref(var.value);
    arena_free(&var.arena);
    return code;
}

static void print_var(FILE *out)
{
    fputs("Reads and changes variables of a running cluster, from any host:\n\n"
          "  dtrain var ls                 all variables\n"
          "  dtrain var get NAME           its value; NAME[3,4]: one element\n"
          "  dtrain var set NAME VALUE     a number goes to every element; lists, as in\n"
          "                                [[1, 2], [3, 4]], must have its shape\n"
          "  dtrain var add NAME VALUE     adds to it; prints the result\n"
          "  dtrain var watch NAME         prints a line whenever the value has changed\n\n"
          "Trained variables change between two updates, on each ps at once; in synchronous\n"
          "training the command waits for the end of the step. global_step can only be read.\n"
          "set with a new name creates a shared variable: doubles, a number or lists, kept by one\n"
          "ps for as long as it runs. This works before training has begun, too.\n",
          out);
    fprintf(out,
            "get prints only a summary and the first elements of a variable of more than %d.\n\n",
            VISIT_ELEMENTS_MAX);
    flags_help(out, &var_flags_object);
}

const struct command command_var = {
    .name = "var",
    .arguments = "VERB ...",
    .summary = "read and change variables of a running cluster",
    .run = cmd_var,
    .topic = "read and change variables of a running cluster",
    .print_help = print_var,
    .verb = var_verb,
};
