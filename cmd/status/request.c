/* request.c - `dtrain stop`, `dtrain drain worker/N`, `dtrain save`: requests to a running job.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/status/status.h"
#include "cmd/status/visit_job.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/standard_output.h"

static const struct field fields[] = {JOB_FLAGS, {0}};

static const struct object stop_flags = {
    .name = "stop",
    .summary = "Ends a running job with a last checkpoint",
    .fields = fields,
    .size = sizeof(struct job_flags),
};
static const struct object drain_flags = {
    .name = "drain",
    .summary = "Lets one worker leave a running job",
    .fields = fields,
    .size = sizeof(struct job_flags),
};
static const struct object save_flags = {
    .name = "save",
    .summary = "Has a running job make a checkpoint",
    .fields = fields,
    .size = sizeof(struct job_flags),
};

enum { LOOK_MS = 100, WAIT_MAX_MS = 24 * 3600 * 1000 };

static err open_request(struct job_visit *v, const struct object *object, int argc, char **argv,
                        const char **ret_word)
{
    struct job_flags flags;
    TRY(job_visit_read(v, object, argc, argv, &flags, &flags, ret_word, ret_word ? 1 : 0));
    return job_visit_open(v, &flags, false);
}

static int end_request(struct job_visit *v, err e, const char *done)
{
    if (!e) puts(done);
    if (!e) e = standard_output_flush();
    const int code = e ? report_error(e) : EXIT_DONE;
    job_visit_close(v);
    return code;
}

/* ---- stop ---- */

/* Waits for the job's verdict. If ps/0 waits for a task first, the job's own limits apply. */
static err stop(struct job_visit *v)
{
    json_t *answer;
    TRY(job_visit_ask(v, 0, json_pack("{ss}", "do", "stop"), &answer));
    const char *waits = json_string_value(json_object_get(answer, "waits"));
    const json_int_t more_ms = json_integer_value(json_object_get(answer, "limit_ms"));
    const bool is_delayed = waits && more_ms > 0 && more_ms <= WAIT_MAX_MS;
    const uint64_t until_ms = clock_ms() + v->timeout_ms + (is_delayed ? (uint64_t)more_ms : 0);
    if (is_delayed) log_line(LOG_WARNING, "%s", waits);
    while (!job_visit_rest(v, LOOK_MS))
        if (clock_ms() >= until_ms)
            return fail(ERR_TIMEOUT,
                        "the job was asked to end, and has not within %.3g s (--timeout)",
                        (double)v->timeout_ms / 1000);
    if (is_delayed) log_line(LOG_INFO, "%s", error_text());
    return OK;
}

static int cmd_stop(int argc, char **argv)
{
    struct job_visit v = {0};
    err e = open_request(&v, &stop_flags, argc - 1, argv + 1, NULL);
    if (!e) e = stop(&v);
    return end_request(&v, e, "the job has ended");
}

static void print_stop_help(FILE *out)
{
    fputs("Ends a running job as SIGTERM to ps/0 does: the steps that are computed are the last, "
          "the\n"
          "chief takes a checkpoint, and all tasks exit with 143. A chief that is away is waited\n"
          "for, or another worker leads, within the job's --stop_timeout.\n\n"
          "  dtrain stop --ps_hosts=HOST:PORT,...\n\n",
          out);
    flags_help(out, &stop_flags);
}

const struct command command_stop = {
    .name = "stop",
    .arguments = "[FLAGS]",
    .summary = "end a running job with a last checkpoint",
    .run = cmd_stop,
    .topic = "end a running job with a last checkpoint",
    .print_help = print_stop_help,
};

/* ---- drain ---- */

/* Counts the workers that ps/0 is connected to. */
static err count_workers(struct job_visit *v, double *ret)
{
    struct job_status s = {0};
    json_t *answer;
    TRY(job_visit_ask(v, 0, json_pack("{ss}", "do", "status"), &answer));
    const err e = job_status_add(&s, answer, clock_ms());
    *ret = 0;
    for (int i = 0; i < s.count && !e; i++)
        if (s.tasks[i].is_ps) *ret += s.tasks[i].counters.at[COUNTER_PEERS_UP];
    job_status_free(&s);
    return e;
}

static err wait_gone(struct job_visit *v, double before, const char *name)
{
    const uint64_t until_ms = clock_ms() + v->timeout_ms;
    double now = before;
    while (now >= before && clock_ms() < until_ms) {
        TRY(job_visit_rest(v, LOOK_MS));
        TRY(count_workers(v, &now));
    }
    if (now < before) return OK;
    return fail(ERR_TIMEOUT,
                "%s has not left within %.3g s (--timeout): its log says why; of workers that "
                "dtrain has launched dtrain scale --workers=N takes some away",
                name, (double)v->timeout_ms / 1000);
}

static err drain(struct job_visit *v, const char *name)
{
    json_t *answer;
    double before;
    int worker;
    char rest;
    if (!name) return fail(ERR_INPUT, "drain: which worker? dtrain drain worker/3");
    if (sscanf(name, "worker/%d%c", &worker, &rest) != 1 || worker < 0)
        return fail(ERR_INPUT, "drain: \"%.64s\" is no worker: expected worker/3, say", name);
    TRY(count_workers(v, &before));
    const err e =
        job_visit_ask(v, 0, json_pack("{ss si}", "do", "leave", "worker", worker), &answer);
    if (e) return fail_prefix(e, "drain %s", name);
    return wait_gone(v, before, name);
}

static int cmd_drain(int argc, char **argv)
{
    struct job_visit v = {0};
    const char *name;
    err e = open_request(&v, &drain_flags, argc - 1, argv + 1, &name);
    if (!e) e = drain(&v, name);
    return end_request(&v, e, "it has left; the job continues");
}

static void print_drain_help(FILE *out)
{
    fputs(
        "Lets one worker leave a running job, as SIGTERM to it does: it finishes its push, signs\n"
        "off and exits with 143, and the others go on without it. Where too few would be left\n"
        "(train.min_workers), the job ends instead. A worker that a launcher has started, or with\n"
        "--on_sigterm=stop, does not leave.\n\n"
        "  dtrain drain worker/3 --ps_hosts=HOST:PORT,...\n\n",
        out);
    flags_help(out, &drain_flags);
}

const struct command command_drain = {
    .name = "drain",
    .arguments = "worker/N [FLAGS]",
    .summary = "let one worker leave a running job",
    .run = cmd_drain,
    .topic = "let one worker leave a running job",
    .print_help = print_drain_help,
};

/* ---- save ---- */

struct saves {
    double done, failed, step, takes_any;
};

/* Reads the chief's counts of saves, as last reported to ps/0. */
static err count_saves(struct job_visit *v, struct saves *ret)
{
    struct job_status s = {0};
    json_t *answer;
    *ret = (struct saves){0};
    TRY(job_visit_ask(v, 0, json_pack("{ss}", "do", "status"), &answer));
    const err e = job_status_add(&s, answer, clock_ms());
    const struct task_status *chief = e ? NULL : tasks_chief(s.tasks, s.count);
    if (chief) {
        const double *at = chief->counters.at;
        *ret = (struct saves){at[COUNTER_CHECKPOINTS], at[COUNTER_CHECKPOINT_FAILURES],
                              at[COUNTER_CHECKPOINT_STEP], at[COUNTER_SAVES_TO]};
    }
    job_status_free(&s);
    return e;
}

static err save(struct job_visit *v, struct saves *ret)
{
    struct saves before;
    json_t *answer;
    TRY(count_saves(v, &before));
    if (!(before.takes_any > 0))
        return fail(ERR_INPUT,
                    "the job saves no checkpoints: its spec has no train.checkpoint_dir, "
                    "or its chief has not told yet");
    TRY(job_visit_ask(v, 0, json_pack("{ss}", "do", "save"), &answer));
    const uint64_t until_ms = clock_ms() + v->timeout_ms;
    do {
        TRY(job_visit_rest(v, LOOK_MS));
        TRY(count_saves(v, ret));
        if (ret->done > before.done) return OK;
        if (ret->failed > before.failed)
            return fail(ERR_PEER, "the checkpoint failed: the log of the chief says why");
    } while (clock_ms() < until_ms);
    return fail(ERR_TIMEOUT, "there was no checkpoint within %.3g s (--timeout)",
                (double)v->timeout_ms / 1000);
}

static int cmd_save(int argc, char **argv)
{
    struct job_visit v = {0};
    struct saves saved = {0};
    char done[64];
    err e = open_request(&v, &save_flags, argc - 1, argv + 1, NULL);
    if (!e) e = save(&v, &saved);
    snprintf(done, sizeof done, "saved at step %.0f", saved.step);
    return end_request(&v, e, done);
}

static void print_save_help(FILE *out)
{
    fputs("Has a running job make a checkpoint now, as SIGUSR2 to the chief does, and waits for "
          "it.\n\n"
          "  dtrain save --timeout=600 --ps_hosts=HOST:PORT,...\n\n",
          out);
    flags_help(out, &save_flags);
}

const struct command command_save = {
    .name = "save",
    .arguments = "[FLAGS]",
    .summary = "have a running job make a checkpoint",
    .run = cmd_save,
    .topic = "have a running job make a checkpoint",
    .print_help = print_save_help,
};
