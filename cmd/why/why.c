/* why.c - `dtrain why`: how a run ended, and what lost its time. */
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/json_print.h"
#include "cmd/why/causes.h"
#include "core/base/standard_output.h"

enum { PATHS_MAX = 4096 };

struct why_flags {
    bool json;
};

static const struct field fields[] = {
    FIELD_OF("json", BOOL, struct why_flags, json, .fallback = "false",
             .help = "print one JSON object instead: findings, as dtrain status --json has them"),
    {0},
};

static const struct object why_flags_object = {
    .name = "why",
    .summary = "Says how a run ended, and what lost its time",
    .fields = fields,
    .size = sizeof(struct why_flags),
};

struct why {
    struct why_flags flags;
    struct evidence evidence;
    struct finding found[CAUSES_MAX];
    const char *paths[PATHS_MAX];
    struct arena arena;
};

static err read_all(struct why *w, int argc, char **argv)
{
    int count;
    TRY(flags_parse(&why_flags_object, argc, argv, &w->arena, &w->flags, w->paths, PATHS_MAX,
                    &count));
    if (!count)
        return fail(ERR_INPUT, "why: which run? Name what it has left: its --result, its "
                               "--metrics_file, logs, or a folder of these or of checkpoints");
    for (int i = 0; i < count; i++) TRY(evidence_read(w->paths[i], &w->evidence));
    return OK;
}

static err print(struct why *w)
{
    const int count = causes_find(&w->evidence, w->found);
    if (w->flags.json)
        return json_print(json_pack("{so}", "findings", findings_json(w->found, count)));
    findings_print(w->found, count);
    if (!count) puts("nothing that is there tells of an end or of lost time");
    return standard_output_flush();
}

static int cmd_why(int argc, char **argv)
{
    struct why *w = calloc(1, sizeof *w);
    if (!w) return report_error(fail(ERR_MEMORY, "no memory to look at a run"));
    err e = read_all(w, argc - 1, argv + 1);
    if (!e) e = print(w);
    const int code = e ? report_error(e) : EXIT_DONE;
    evidence_free(&w->evidence);
    arena_free(&w->arena);
    free(w);
    return code;
}

static void print_why_help(FILE *out)
{
    fputs("Explains how a run ended and what cost it time, from whatever it left behind: its\n"
          "--result, its --metrics_file, logs of its tasks in any --log_format, its folder of\n"
          "checkpoints. Files are recognised by their content; a folder is searched for all of\n"
          "these.\n\n"
          "  dtrain why result.json metrics.jsonl worker-*.log run\n\n"
          "Lines marked ! are problems to fix. What it looks for:\n\n",
          out);
    causes_help(out);
    fputs("\n", out);
    flags_help(out, &why_flags_object);
}

const struct command command_why = {
    .name = "why",
    .arguments = "[FLAGS] FILE|FOLDER...",
    .summary = "say how a run ended, and what lost its time",
    .run = cmd_why,
    .topic = "say how a run ended, and what lost its time",
    .print_help = print_why_help,
};
