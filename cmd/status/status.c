/* status.c - `dtrain status`: a living job, and what is wrong with it. */
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
    {.name = "watch",
     .type = FIELD_BOOL,
     .offset = offsetof(struct status_flags, watch),
     .fallback = "false",
     .help = "refresh until the job ends"},
    {.name = "every",
     .type = FIELD_SECONDS,
     .offset = offsetof(struct status_flags, every_ms),
     .fallback = "2",
     .min = 0.1,
     .max = 3600,
     .help = "with --watch: seconds between two refreshes"},
    {.name = "json",
     .type = FIELD_BOOL,
     .offset = offsetof(struct status_flags, json),
     .fallback = "false",
     .help = "print one JSON object instead: tasks with all counters, and findings"},
    JOB_FLAGS,
    {0},
};

static const struct object status_flags_object = {
    .name = "status",
    .summary = "Shows a running job: its tasks, and what is wrong with it",
    .fields = fields,
    .size = sizeof(struct status_flags),
};

/* ---- what the ps say ---- */

/* A ps tells of many tasks in several answers. */
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

/* Fails as the last of those that are away. */
static err look_at_some(struct job_visit *v, struct job_status *ret)
{
    err e = fail(ERR_PEER, "no ps is there");
    bool has_answer = false;
    for (int ps = 0; ps < job_visit_ps_count(v); ps++) {
        if (!job_visit_is_up(v, ps)) continue;
        e = add_from(v, ps, ret);
        if (e && !job_visit_goes_on(v, e)) return e;
        has_answer |= !e;
    }
    return has_answer ? OK : e;
}

static err look_at_all(struct job_visit *v, struct job_status *ret)
{
    err e = OK;
    for (int ps = 0; ps < job_visit_ps_count(v) && !e; ps++)
        if (job_visit_is_up(v, ps)) e = add_from(v, ps, ret);
    return e;
}

err job_status_look(struct job_visit *v, bool may_lack, struct job_status *ret)
{
    *ret = (struct job_status){0};
    const err e = may_lack ? look_at_some(v, ret) : look_at_all(v, ret);
    if (e)
        job_status_free(ret);
    else
        job_status_sort(ret);
    return e;
}

/* A task says something from its first tick on. */
static err look_until_told(struct job_visit *v, struct job_status *ret)
{
    const uint64_t until_ms = clock_ms() + v->timeout_ms;
    for (;;) { /* ends: until_ms */
        TRY(job_status_look(v, false, ret));
        if (ret->count) return OK;
        job_status_free(ret);
        if (clock_ms() >= until_ms)
            return fail(ERR_TIMEOUT, "no task has said anything within %.3g s (--timeout)",
                        (double)v->timeout_ms / 1000);
        TRY(job_visit_rest(v, LOOK_MS));
    }
}

/* ---- what is printed ---- */

static err print_json(const struct job_status *s, const struct finding *findings, int count)
{
    json_t *all =
        json_pack("{sO so}", "tasks", s->json, "findings", findings_json(findings, count));
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
    const struct job_facts facts = {s->tasks, s->count, clock_ms(), clock_unix_s(), true};
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
    err e = job_visit_read(&v, &status_flags_object, argc - 1, argv + 1, &flags, &flags.job, NULL);
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
          "Workers have columns with the percentage of step time spent computing, waiting for\n"
          "batches, sending gradients, waiting for other workers, receiving values, and in\n"
          "hooks. Lines marked ! are findings of the rules below; dtrain help counters explains\n"
          "the numbers of --json. Rules:\n\n",
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
