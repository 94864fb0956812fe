/* scale.c - `dtrain scale --workers=N --ps=M`: changes the number of tasks of a running cluster.
 */
#include <jansson.h>

#include "cmd/cmd.h"
#include "cmd/registry/visited.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/standard_output.h"
#include "core/train/variables/layout.h"

struct scale_flags {
    struct cluster_flags cluster; /* ps_hosts, or coordinator and cluster */
    int64_t ps, workers;
    uint64_t timeout_ms;
};

struct scale {
    struct scale_flags flags;
    struct visited visited;
    struct visitor *visitor; /* of the visited */
    struct arena arena;
};

enum {
    SECONDS_MAX = 24 * 3600,
    ANSWER_MS = SECONDS_MAX * 1000, /* the job's own limits end it earlier */
};

static const struct field fields[] = {
    FIELD_OF("workers", INT, struct scale_flags, workers, .fallback = "0", .max = WORKERS_MAX,
             .help = "new number of workers; 0: unchanged"),
    FIELD_OF("ps", INT, struct scale_flags, ps, .fallback = "0", .max = PS_MAX,
             .help = "new number of parameter servers; 0: unchanged"),
    VISITED_FLAGS(struct scale_flags, "addresses of parameter servers, of which the first is ps/0"),
    FIELD_OF("timeout", SECONDS, struct scale_flags, timeout_ms, .fallback = "60", .min = 0.001,
             .max = SECONDS_MAX,
             .help = "seconds to wait for ps/0 to answer; the checkpoint taken for the change is "
                     "limited by the job's --save_timeout"),
    {0},
};

static const struct object scale_flags_object = {
    .name = "scale",
    .summary = "Changes the number of workers or parameter servers of a running cluster",
    .fields = fields,
    .size = sizeof(struct scale_flags),
};

static err read_words(struct scale *s, int argc, char **argv)
{
    const char *word;
    int count;
    TRY(flags_parse(&scale_flags_object, argc, argv, &s->arena, &s->flags, &word, 1, &count));
    if (count) return fail(ERR_INPUT, "scale: unexpected argument \"%.64s\"", word);
    if (!s->flags.ps && !s->flags.workers)
        return fail(ERR_INPUT, "scale: how many --workers or --ps should there be?");
    return visited_read(&s->visited, &s->flags.cluster, "scale", &s->arena);
}

/* The job may take long for its checkpoint, and a ps may be hung: whoever waits is told. */
static err wait_for_answer(struct scale *s)
{
    const uint64_t started_ms = clock_ms();
    uint64_t noted_ms = started_ms;
    for (;;) { /* ends: ANSWER_MS */
        const err e = visitor_wait_all(s->visitor, LOG_WAIT_NOTE_MS);
        const uint64_t now_ms = clock_ms(), waited_ms = now_ms - started_ms;
        if (e != ERR_TIMEOUT || waited_ms >= ANSWER_MS) return e;
        if (!log_wait_is_due(started_ms, noted_ms, now_ms)) continue;
        noted_ms = now_ms;
        log_line(log_wait_level(waited_ms),
                 "waiting for ps/0 to say what becomes of it, %llu s (the checkpoint for it is "
                 "limited by the job's --save_timeout)",
                 (unsigned long long)waited_ms / 1000);
    }
}

static err ask(struct scale *s)
{
    json_t *ask = json_pack("{ss sI sI}", "do", "scale", "ps", (json_int_t)s->flags.ps, "workers",
                            (json_int_t)s->flags.workers);
    if (!ask) return fail(ERR_MEMORY, "no memory to ask");
    err e = visitor_ask(s->visitor, 0, ask);
    json_decref(ask);
    return e ? e : wait_for_answer(s);
}

static err print(const struct scale *s, int *ret_code)
{
    json_t *answer = visitor_answer(s->visitor, 0);
    struct membership membership;
    json_int_t step;
    char text[MEMBERSHIP_TEXT_MAX];
    const char *error = json_string_value(json_object_get(answer, "error"));
    if (error) {
        *ret_code = (int)json_integer_value(json_object_get(answer, "code"));
        (void)report_error(fail(ERR_PEER, "%s", error));
        return OK;
    }
    if (json_unpack(answer, "{si si sI}", "ps", &membership.count[JOB_PS], "workers",
                    &membership.count[JOB_WORKER], "step", &step))
        return fail(ERR_PROTOCOL, "ps/0 gave an invalid answer");
    printf("resized to %s at step %lld\n", membership_text(&membership, text), (long long)step);
    return standard_output_flush();
}

static err visit(struct scale *s, int *ret_code)
{
    const struct visitor_options options = {.only_first = true, .any_count = true};
    TRY(visited_open(&s->visited, options, s->flags.timeout_ms, &s->arena, &s->visitor));
    TRY(ask(s));
    return print(s, ret_code);
}

static int cmd_scale(int argc, char **argv)
{
    struct scale s = {0};
    int code = EXIT_DONE;
    err e = read_words(&s, argc - 1, argv + 1);
    if (!e) e = visit(&s, &code);
    if (e) code = report_error(e);
    visited_close(&s.visited);
    arena_free(&s.arena);
    return code;
}

static void print_scale_help(FILE *out)
{
    fputs("Resizes a running job to more or fewer workers or parameter servers: the job takes a\n"
          "checkpoint and continues from exactly there, in the same processes.\n\n"
          "  dtrain scale --workers=4 --ps_hosts=HOST:PORT,...\n"
          "  dtrain scale --workers=4 --coordinator=URL --cluster=NAME\n\n"
          "The launcher of a local cluster starts and ends tasks as needed, up to 8 of each job;\n"
          "that of a cluster by ssh, up to the slots of its hostfile.\n"
          "If tasks are started by hand, their lists name all tasks that there may ever be, and\n"
          "--ps and --workers how many take part at first; a task that is listed but not yet\n"
          "needed may be started at any time, and waits. With a coordinator, start the additional\n"
          "tasks with the same command line as the others, before or after this command. If the\n"
          "job cannot be resized, it continues unchanged, and this command says why.\n\n",
          out);
    flags_help(out, &scale_flags_object);
}

const struct command command_scale = {
    .name = "scale",
    .arguments = "[FLAGS]",
    .summary = "change the number of workers or ps of a running cluster",
    .run = cmd_scale,
    .topic = "change the number of workers or ps of a running cluster",
    .print_help = print_scale_help,
};
