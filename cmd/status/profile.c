/* profile.c - `dtrain profile`: where the time of the next steps of a running job goes.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/json_print.h"
#include "cmd/status/profile.h"
#include "cmd/status/visit_job.h"
#include "core/base/files/replace.h"
#include "core/base/json_foreign.h"
#include "core/base/standard_output.h"
#include "core/train/summary/timeline.h"

struct profile_flags {
    struct job_flags job; /* first */
    const char *out;      /* NULL: no file */
    bool json;
    int64_t steps, nodes;
};

static const struct field fields[] = {
    FIELD_OF("steps", INT, struct profile_flags, steps, .fallback = "5", .min = 1,
             .max = TIMELINE_STEPS_MAX, .help = "steps to record per worker"),
    FIELD_OF("nodes", INT, struct profile_flags, nodes, .fallback = "20", .min = 0, .max = 100000,
             .help = "lines of the table of nodes"),
    FIELD_OF("out", STRING, struct profile_flags, out, .fallback = "null",
             .help = "write the timeline there, for chrome://tracing or Perfetto"),
    FIELD_OF("json", BOOL, struct profile_flags, json, .fallback = "false",
             .help = "print one JSON object instead of tables"),
    JOB_FLAGS,
    {0},
};

static const struct object profile_flags_object = {
    .name = "profile",
    .summary = "Shows where the time of the next steps of a running job goes",
    .fields = fields,
    .size = sizeof(struct profile_flags),
};

/* *ret is borrowed until the next ask. */
static err ask(struct job_visit *v, const struct profile_flags *flags, const char **ret)
{
    json_t *answer;
    TRY(job_visit_ask(
        v, 0, json_pack("{ss sI}", "do", "profile", "steps", (json_int_t)flags->steps), &answer));
    *ret = json_string_value(json_object_get(answer, "timeline"));
    return *ret ? OK : fail(ERR_PROTOCOL, "an answer without a timeline");
}

static err profile(struct job_visit *v, const struct profile_flags *flags)
{
    const char *text;
    json_t *timeline, *summed = NULL;
    TRY(ask(v, flags, &text));
    if (flags->out) TRY(file_replace(flags->out, text, strlen(text)));
    TRY(json_read_foreign(text, strlen(text), 0, &timeline));
    err e = profile_sum(timeline, &summed);
    if (!e && flags->json)
        e = json_print(json_incref(summed));
    else if (!e)
        profile_print(summed, (int)flags->nodes);
    if (!e && flags->out && !flags->json) printf("\nthe timeline is in %s\n", flags->out);
    json_decref(summed);
    json_decref(timeline);
    return e ? e : standard_output_flush();
}

static int cmd_profile(int argc, char **argv)
{
    struct profile_flags flags = {0};
    struct job_visit v = {0};
    err e =
        job_visit_read(&v, &profile_flags_object, argc - 1, argv + 1, &flags, &flags.job, NULL, 0);
    if (!e) e = job_visit_open(&v, &flags.job, false);
    if (!e) e = profile(&v, &flags);
    const int code = e ? report_error(e) : EXIT_DONE;
    job_visit_close(&v);
    return code;
}

static void print_profile_help(FILE *out)
{
    fputs(
        "Has all tasks of a running job record their next steps, and shows where the time went: "
        "of\n"
        "workers computing, waiting for batches, until gradients had left, waiting for parameter\n"
        "servers, hooks; of parameter servers receiving, applying, copying; and of each node of "
        "the\n"
        "model. What continues at the same time counts once, so that parts need not add up to the "
        "step.\n"
        "Steps that take long need a --timeout that is longer; it ends as well when they take "
        "longer\n"
        "than --step_timeout of the job.\n\n"
        "  dtrain profile --ps_hosts=HOST:PORT,...\n"
        "  dtrain profile --steps=20 --out=timeline.json --ready_file=FILE\n\n",
        out);
    flags_help(out, &profile_flags_object);
}

const struct command command_profile = {
    .name = "profile",
    .arguments = "[FLAGS]",
    .summary = "show where the time of steps of a running job goes",
    .run = cmd_profile,
    .topic = "show where the time of steps of a running job goes",
    .print_help = print_profile_help,
};
