/* status.c - `dtrain status`: the state of a running job, and its problems. */
#include "cmd/status/status.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/registry/visited.h"
#include "cmd/status/visit_job.h"
#include "core/base/clock.h"
#include "core/base/standard_output.h"

enum { LOOK_MS = 100 };

struct status_flags {
    struct job_flags job; /* first */
    bool watch, json;
    uint64_t every_ms;
};

static const struct field fields[] = {
    FIELD_OF("watch", BOOL, struct status_flags, watch, .fallback = "false",
             .help = "refresh until the job ends"),
    FIELD_OF("every", SECONDS, struct status_flags, every_ms, .fallback = "2", .min = 0.1,
             .max = 3600, .help = "with --watch: seconds between two refreshes"),
    FIELD_OF("json", BOOL, struct status_flags, json, .fallback = "false",
             .help = "print one JSON object instead: tasks with all counters, and findings"),
    JOB_FLAGS,
    {0},
};

static const struct object status_flags_object = {
    .name = "status",
    .summary = "Shows a running job: its tasks, and what is wrong with it",
    .fields = fields,
    .size = sizeof(struct status_flags),
};

/* ---- answers of ps ---- */

/* Reads the tasks that a ps knows, in several answers if they are many. */
static err add_from(struct job_visit *v, int ps, struct job_status *s)
{
    for (uint64_t from = 0;;) { /* ends: STATUS_TASKS_MAX */
        json_t *answer;
        TRY(job_visit_ask(v, ps, json_pack("{ss sI}", "do", "status", "from", (json_int_t)from),
                          &answer));
        TRY(job_status_add(s, answer, clock_ms()));
        const json_int_t next = json_integer_value(json_object_get(answer, "next"));
        if (next <= (json_int_t)from) return OK;
        from = (uint64_t)next;
    }
}

static err note_unanswered(struct job_status *s, int ps, const char *why, uint64_t waited_ms)
{
    const size_t count = (size_t)s->unanswered_count + 1;
    struct unanswered *larger = realloc(s->unanswered, count * sizeof *larger);
    if (!larger) return fail(ERR_MEMORY, "no memory for %zu ps", count);
    s->unanswered = larger;
    struct unanswered *one = &s->unanswered[s->unanswered_count++];
    *one = (struct unanswered){.ps = ps, .waited_ms = waited_ms};
    snprintf(one->why, sizeof one->why, "%s", why);
    return OK;
}

/* Limits the wait for one ps, so that a stalled one does not use up the others' time. */
static err ask_in_time(struct job_visit *v, int ps, uint64_t since_ms, struct job_status *s)
{
    const uint64_t whole_ms = v->timeout_ms, passed_ms = clock_ms() - since_ms,
                   least_ms = whole_ms / 10 + 1,
                   left_ms = passed_ms < whole_ms ? whole_ms - passed_ms : 0;
    v->timeout_ms = left_ms > least_ms ? left_ms : least_ms;
    const err e = add_from(v, ps, s);
    v->timeout_ms = whole_ms;
    return e;
}

static err look_at(struct job_visit *v, struct job_status *ret)
{
    const uint64_t since_ms = clock_ms();
    err e = OK;
    bool has_answer = false;
    for (int ps = 0; ps < job_visit_ps_count(v); ps++) {
        const uint64_t asked_ms = clock_ms();
        const bool is_up = job_visit_is_up(v, ps);
        e = is_up ? ask_in_time(v, ps, since_ms, ret) : fail(ERR_PEER, "no ps is there");
        has_answer |= !e;
        if (!e) continue;
        if (!job_visit_goes_on(v, e)) return e;
        const uint64_t waited_ms = is_up ? clock_ms() - asked_ms : 0;
        TRY(note_unanswered(ret, ps, job_visit_trouble(v, ps), waited_ms));
    }
    return has_answer ? OK : e;
}

err job_status_look(struct job_visit *v, struct job_status *ret)
{
    *ret = (struct job_status){0};
    const err e = look_at(v, ret);
    if (e)
        job_status_free(ret);
    else
        job_status_sort(ret);
    return e;
}

/* Waits until a task has reported, which each does from its first tick on. */
static err look_until_told(struct job_visit *v, struct job_status *ret)
{
    const uint64_t until_ms = clock_ms() + v->timeout_ms;
    for (;;) { /* ends: until_ms */
        TRY(job_status_look(v, ret));
        if (ret->count) return OK;
        job_status_free(ret);
        if (clock_ms() >= until_ms)
            return fail(ERR_TIMEOUT, "no task has answered within %.3g s (--timeout)",
                        (double)v->timeout_ms / 1000);
        TRY(job_visit_rest(v, LOOK_MS));
    }
}

/* ---- printing ---- */

static json_t *unanswered_json(const struct job_status *s)
{
    json_t *list = json_array();
    for (int i = 0; i < s->unanswered_count; i++) {
        const struct unanswered *u = &s->unanswered[i];
        json_array_append_new(list,
                              json_pack("{so ss sf}", "task", json_sprintf("ps/%d", u->ps), "why",
                                        u->why, "waited_secs", (double)u->waited_ms / 1000));
    }
    return list;
}

static err print_json(const struct job_status *s, const struct finding *findings, int count)
{
    json_t *all = json_pack("{sO so so}", "tasks", s->json, "unanswered", unanswered_json(s),
                            "findings", findings_json(findings, count));
    const bool is_printed =
        all &&
        !json_dumpf(all, stdout, JSON_PRESERVE_ORDER | JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(all);
    if (!is_printed) return fail(ERR_MEMORY, "no memory to print the status");
    putchar('\n');
    return OK;
}

static err print(const struct status_flags *flags, const struct job_status *s)
{
    struct finding findings[FINDINGS_MAX];
    const struct job_facts facts = {
        .tasks = s->tasks,
        .count = s->count,
        .now_ms = clock_ms(),
        .unix_s = clock_unix_s(),
        .all_asked = true,
        .unanswered = s->unanswered,
        .unanswered_count = s->unanswered_count,
    };
    const int count = rules_apply(&facts, findings);
    if (flags->json) {
        TRY(print_json(s, findings, count));
    } else {
        if (flags->watch && isatty(STDOUT_FILENO)) fputs("\033[H\033[2J", stdout);
        status_print(s, findings, count);
    }
    return standard_output_flush();
}

static err show(const struct status_flags *flags, struct job_visit *v)
{
    for (;;) { /* ends: with the job, or by a signal */
        struct job_status s;
        TRY(look_until_told(v, &s));
        const err e = print(flags, &s);
        job_status_free(&s);
        if (e || !flags->watch) return e;
        TRY(job_visit_rest(v, flags->every_ms));
    }
}

static int cmd_status(int argc, char **argv)
{
    struct status_flags flags = {0};
    struct job_visit v = {0};
    err e =
        job_visit_read(&v, &status_flags_object, argc - 1, argv + 1, &flags, &flags.job, NULL, 0);
    if (!e) e = job_visit_open(&v, &flags.job, true);
    if (!e) e = show(&flags, &v);
    const bool has_ended = e && flags.watch && job_visit_job_has_ended(&v);
    const int code = e && !has_ended ? report_error(e) : EXIT_DONE;
    if (has_ended) puts(error_text());
    job_visit_close(&v);
    return code;
}

static void print_status_help(FILE *out)
{
    fputs("Shows a running job: where it is, what each task does and waits for, and what is\n"
          "wrong.\n\n"
          "  dtrain status --ps_hosts=HOST:PORT,...\n"
          "  dtrain status --watch --coordinator=URL --cluster=NAME\n"
          "  dtrain status --json --ready_file=FILE\n\n"
          "Workers have columns with the percentage of their time, of the last 15 to 30 s,\n"
          "spent computing, waiting for batches, sending gradients, waiting for other workers,\n"
          "receiving values, and in hooks. Lines marked ! are findings of the rules below;\n"
          "dtrain help counters explains the numbers of --json, where \"recent\" has what was\n"
          "counted in these seconds. A parameter server that does not answer within --timeout is\n"
          "listed as not answering; the others are shown. Exit code: 0; 129 where none answers\n"
          "within --timeout; 128 where they are lost while they are asked, or the job ends. "
          "Rules:\n\n",
          out);
    rules_help(out);
    fputs("\n", out);
    flags_help(out, &status_flags_object);
}

const struct command command_status = {
    .name = "status",
    .arguments = "[FLAGS]",
    .summary = "show a running job and what is wrong with it",
    .run = cmd_status,
    .topic = "show a running job and what is wrong with it",
    .print_help = print_status_help,
};
