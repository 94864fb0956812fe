/* logs.c - `dtrain logs`: the last lines that each task of a running job has logged.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/json_print.h"
#include "cmd/status/status.h"
#include "cmd/status/visit_job.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/standard_output.h"

enum { LOOK_MS = 500, GONE_MS = 60000, LINES_MAX = 1 << 20, LINES_OF_TASK_MAX = 500 };

struct logs_flags {
    struct job_flags job; /* first */
    const char *task;     /* NULL: all */
    bool follow, json;
    int64_t lines;
};

static const struct field fields[] = {
    FIELD_OF("task", STRING, struct logs_flags, task, .fallback = "null",
             .help = "only this task, as ps/0 or worker/3"),
    FIELD_OF("follow", BOOL, struct logs_flags, follow, .fallback = "false",
             .help = "keep printing until the job ends; -f is short for it"),
    FIELD_OF("lines", INT, struct logs_flags, lines, .fallback = "20", .min = 1,
             .max = LINES_OF_TASK_MAX, .help = "lines per task"),
    FIELD_OF("json", BOOL, struct logs_flags, json, .fallback = "false",
             .help = "print each line as a JSON object, as --log_format=json of a task does"),
    JOB_FLAGS,
    {0},
};

static const struct object logs_flags_object = {
    .name = "logs",
    .summary = "Prints the last lines that the tasks of a running job have logged",
    .fields = fields,
    .size = sizeof(struct logs_flags),
};

struct logged_line {
    json_int_t unix_ms, number;
    int source;
    json_t *json; /* reference */
};

struct logs {
    const struct logs_flags *flags;
    struct job_visit *v;
    struct log_source { /* a task that has been asked */
        char task[STATUS_NAME_MAX];
        json_int_t last, last_ms; /* its last line that has been seen, and when; 0: none */
        bool has_begun;           /* it has answered before */
        bool is_away;             /* it is unreachable, which has been logged */
    } * sources;
    int source_count;
    struct logged_line *lines; /* of one round */
    int count;
    uint64_t heard_ms; /* when a ps last answered */
};

/* ---- what a task says ---- */

static err source_of(struct logs *l, const char *task, struct log_source **ret)
{
    for (int i = 0; i < l->source_count; i++)
        if (strcmp(l->sources[i].task, task) == 0) {
            *ret = &l->sources[i];
            return OK;
        }
    struct log_source *larger =
        realloc(l->sources, ((size_t)l->source_count + 1) * sizeof *l->sources);
    if (!larger) return fail(ERR_MEMORY, "no memory for %d tasks", l->source_count + 1);
    l->sources = larger;
    *ret = &larger[l->source_count++];
    **ret = (struct log_source){0};
    snprintf((*ret)->task, sizeof(*ret)->task, "%s", task);
    return OK;
}

static bool is_line(json_t *json, struct logged_line *ret)
{
    const char *time, *level, *task, *text;
    return json_unpack(json, "{sI sI ss ss ss ss}", "number", &ret->number, "unix_ms",
                       &ret->unix_ms, "time", &time, "level", &level, "task", &task, "text",
                       &text) == 0;
}

static err add_lines(struct logs *l, int source, json_t *lines)
{
    size_t i;
    json_t *json;
    const size_t more = json_array_size(lines);
    if (!json_is_array(lines) || more > LINES_MAX - (size_t)l->count)
        return fail(ERR_PROTOCOL, "%s: an invalid log", l->sources[source].task);
    struct logged_line *larger =
        realloc(l->lines, ((size_t)l->count + more + 1) * sizeof *l->lines);
    if (!larger) return fail(ERR_MEMORY, "no memory for %zu lines", more);
    l->lines = larger;
    json_array_foreach(lines, i, json)
    {
        struct logged_line line = {.source = source};
        struct log_source *s = &l->sources[source];
        if (!is_line(json, &line)) return fail(ERR_PROTOCOL, "%s: an invalid line", s->task);
        if (line.number == s->last && line.unix_ms == s->last_ms) continue;
        if (line.number <= s->last)
            return fail(ERR_PROTOCOL, "%s: lines that are out of order", s->task);
        s->last = line.number;
        s->last_ms = line.unix_ms;
        line.json = json_incref(json);
        l->lines[l->count++] = line;
    }
    return OK;
}

/* Whether the task has restarted. lines: from the last one seen on */
static bool has_begun_anew(const struct log_source *s, json_t *lines)
{
    struct logged_line first;
    if (!s->last || !json_is_array(lines)) return false;
    if (!json_array_size(lines)) return true;
    return is_line(json_array_get(lines, 0), &first) && first.number == s->last &&
           first.unix_ms != s->last_ms;
}

/* Asks for lines from the last one seen on. If that differs or is missing, the task has restarted,
 * and all its lines are new. */
static err ask_from(struct logs *l, struct log_source *s, const struct task_status *status,
                    bool *ret_more)
{
    const int count = job_visit_ps_count(l->v);
    if (status->is_ps && status->index >= count) /* an invalid answer, or it has left since */
        return fail(ERR_PEER, "there are %d ps", count);
    json_t *answer, *ask = json_pack("{ss sI}", "do", "log", "from", s->last);
    if (ask && !s->has_begun) json_object_set_new(ask, "last", json_integer(l->flags->lines));
    if (ask && !status->is_ps) json_object_set_new(ask, "worker", json_integer(status->index));
    TRY(job_visit_ask(l->v, status->is_ps ? status->index : 0, ask, &answer));
    json_t *lines = json_object_get(answer, "lines");
    const int before = l->count;
    s->has_begun = true;
    *ret_more = false;
    if (has_begun_anew(s, lines)) {
        s->last = 0;
        return OK; /* the next round reads them */
    }
    TRY(add_lines(l, (int)(s - l->sources), lines));
    *ret_more = l->count > before;
    return OK;
}

static void say_it_is_away(struct log_source *s, const char *why)
{
    if (!s->is_away) log_line(LOG_WARNING, "%s: %s", s->task, why);
    s->is_away = true;
}

/* Logs once that a task is unreachable; its lines may come later. */
static err ask_task(struct logs *l, const struct task_status *status)
{
    struct log_source *s = NULL;
    bool has_more = true;
    TRY(source_of(l, status->task, &s));
    while (has_more) { /* ends: LINES_MAX */
        const bool may_be_away = !l->flags->task || (l->flags->follow && s->has_begun);
        const err e = ask_from(l, s, status, &has_more);
        if (may_be_away && job_visit_goes_on(l->v, e)) {
            say_it_is_away(s, error_text());
            return OK;
        }
        if (e) return job_visit_goes_on(l->v, e) ? fail_prefix(e, "%s", status->task) : e;
    }
    s->is_away = false;
    return OK;
}

static int compare(const void *a, const void *b)
{
    const struct logged_line *x = a, *y = b;
    if (x->source == y->source) return (x->number > y->number) - (x->number < y->number);
    if (x->unix_ms != y->unix_ms) return (x->unix_ms > y->unix_ms) - (x->unix_ms < y->unix_ms);
    return (x->source > y->source) - (x->source < y->source);
}

/* ---- printed ---- */

static err print_line(const struct logs *l, const struct logged_line *line)
{
    char time[SAFE_TEXT_MAX], level[SAFE_TEXT_MAX], text[SAFE_TEXT_MAX];
    const char *task = l->sources[line->source].task, *mark = "";
    safe_text(json_string_value(json_object_get(line->json, "time")), time);
    safe_text(json_string_value(json_object_get(line->json, "level")), level);
    safe_text(json_string_value(json_object_get(line->json, "text")), text);
    if (l->flags->json) {
        json_t *json =
            json_pack("{ss ss ss ss}", "time", time, "level", level, "task", task, "text", text);
        char *whole = json ? json_dumps(json, JSON_PRESERVE_ORDER) : NULL;
        json_decref(json);
        if (!whole) return fail(ERR_MEMORY, "no memory for a line");
        puts(whole);
        free(whole);
        return OK;
    }
    if (strcmp(level, "error") == 0) mark = "ERROR: ";
    if (strcmp(level, "warning") == 0) mark = "WARNING: ";
    printf("%s %s: %s%s\n", time, task, mark, text);
    return OK;
}

static err print_lines(struct logs *l)
{
    err e = OK;
    if (l->count) qsort(l->lines, (size_t)l->count, sizeof *l->lines, compare);
    for (int i = 0; i < l->count; i++) {
        if (!e) e = print_line(l, &l->lines[i]);
        json_decref(l->lines[i].json);
    }
    l->count = 0;
    return e ? e : standard_output_flush();
}

/* ---- all of it ---- */

static bool is_in(const struct job_status *s, const char *task)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->tasks[i].task, task) == 0) return true;
    return false;
}

/* Logs which ps are unreachable; without ps/0 no workers are known. s NULL: all are unreachable */
static void say_who_is_away(struct logs *l, const struct job_status *s)
{
    for (int i = 0; i < l->source_count; i++)
        if (strncmp(l->sources[i].task, "ps/", 3) == 0 && !(s && is_in(s, l->sources[i].task)))
            say_it_is_away(&l->sources[i], "it does not answer");
}

static bool may_come_again(const struct logs *l, err e)
{
    const uint64_t limit_ms = l->v->timeout_ms + GONE_MS;
    return l->flags->follow && job_visit_goes_on(l->v, e) && clock_ms() < l->heard_ms + limit_ms;
}

static err look(struct logs *l)
{
    struct job_status s;
    bool is_known = false;
    err e = job_status_look(l->v, &s);
    if (may_come_again(l, e)) {
        say_who_is_away(l, NULL);
        return OK;
    }
    if (e) return e;
    l->heard_ms = clock_ms();
    say_who_is_away(l, &s);
    for (int i = 0; i < s.count && !e; i++) {
        if (l->flags->task && strcmp(l->flags->task, s.tasks[i].task) != 0) continue;
        is_known = true;
        e = ask_task(l, &s.tasks[i]);
    }
    job_status_free(&s);
    if (!e && l->flags->task && !is_known && !l->source_count)
        e = fail(ERR_INPUT,
                 "logs: --task=%.64s: the job knows of no such task: dtrain status lists "
                 "them",
                 l->flags->task);
    const err printed = print_lines(l);
    return e ? e : printed;
}

static err show(struct logs *l)
{
    l->heard_ms = clock_ms();
    for (;;) { /* ends: with the job, after GONE_MS without a ps, or by a signal */
        TRY(look(l));
        if (!l->flags->follow) return OK;
        TRY(job_visit_rest(l->v, LOOK_MS));
    }
}

/* Replaces short flags, which the flag table does not have. */
static void spell_out(int argc, char **argv)
{
    static char whole[] = "--follow";
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "-f") == 0) argv[i] = whole;
}

static int cmd_logs(int argc, char **argv)
{
    struct logs_flags flags = {0};
    struct job_visit v = {0};
    struct logs l = {.flags = &flags, .v = &v};
    spell_out(argc, argv);
    err e = job_visit_read(&v, &logs_flags_object, argc - 1, argv + 1, &flags, &flags.job, NULL, 0);
    if (!e) e = job_visit_open(&v, &flags.job, true);
    if (!e) e = show(&l);
    const bool has_ended = e == ERR_PEER && flags.follow && job_visit_job_has_ended(&v);
    const int code = e && !has_ended ? report_error(e) : EXIT_DONE;
    if (has_ended && !flags.json) puts(error_text());
    job_visit_close(&v);
    free(l.sources);
    free(l.lines);
    return code;
}

static void print_logs_help(FILE *out)
{
    fputs(
        "Prints the last lines that each task of a running job has logged, by their times. Every\n"
        "task keeps its last 500 lines for this, wherever its standard error goes; lines longer "
        "than\n"
        "511 bytes are cut. With -f it waits for parameter servers that are away for a minute.\n\n"
        "  dtrain logs --ps_hosts=HOST:PORT,...\n"
        "  dtrain logs -f --task=worker/3 --coordinator=URL --cluster=NAME\n"
        "  dtrain logs --json --lines=100 --ready_file=FILE\n\n",
        out);
    flags_help(out, &logs_flags_object);
}

const struct command command_logs = {
    .name = "logs",
    .arguments = "[FLAGS]",
    .summary = "print what the tasks of a running job log",
    .run = cmd_logs,
    .topic = "print what the tasks of a running job log",
    .print_help = print_logs_help,
};
