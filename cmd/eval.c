/* eval.c - `dtrain eval SPEC.json --checkpoint=CKPT`: the evaluation set at the values of a
 * checkpoint. */
#include <math.h>
#include <string.h>

#include "cmd/out_file.h"
#include "cmd/read_files.h"
#include "cmd/run/progress.h"
#include "cmd/restored_model.h"
#include "core/base/clock.h"
#include "core/base/files/url.h"
#include "core/train/checkpoint/bundle/bundle.h"
#include "core/train/hooks/values.h"

struct eval_flags {
    struct restored_flags shared;
    const char *result;
};

static const struct field own_flags[] = {
    {.name = "result",
     .type = FIELD_STRING,
     .offset = offsetof(struct eval_flags, result),
     .fallback = "null",
     .help = "write loss and metrics to this file, as one JSON object"},
    {0},
};

struct eval {
    struct eval_flags flags;
    struct restored_model model;
    struct evaluation evaluation;
    double seconds; /* of the evaluation alone */
    struct out_file result;
};

static void print_eval_help(FILE *out)
{
    struct arena arena = {0};
    const struct object flags =
        restored_model_flags_with(own_flags, sizeof(struct eval_flags), &arena);
    fputs("  dtrain eval --checkpoint=CKPT [FLAGS] SPEC.json\n\n"
          "Computes loss and metrics over data.eval of the spec, without any ps. Training data\n"
          "need not be there.\n\n",
          out);
    flags_help(out, &flags);
    arena_free(&arena);
}

/* Of the evaluation alone, without startup and opening files. */
static double examples_per_second(const struct eval *eval)
{
    return eval->seconds > 0 ? (double)eval->evaluation.rows / eval->seconds : 0;
}

/* As the end of a training run. */
static void print_evaluation(const struct eval *eval)
{
    char count[COUNT_TEXT_MAX], text[EVALUATION_TEXT_MAX];
    printf("%s, %.2f s, %s examples/s\n",
           evaluation_text(&eval->model.session, &eval->evaluation, (uint64_t)eval->model.step,
                           "test", text),
           eval->seconds, count_text(examples_per_second(eval), count));
}

/* Members that a run's --result also has have the same names. */
static json_t *result_json(const struct eval *eval)
{
    const struct graph *graph = eval->model.session.graph;
    const char *name = eval->model.spec.name;
    char shown[PATH_BYTES_MAX];
    json_t *metrics = json_object();
    json_object_set_new(metrics, "loss", value_json(eval->evaluation.loss));
    for (int i = 0; i < graph->metric_count; i++)
        json_object_set_new(metrics, graph->metrics[i].name,
                            value_json(eval->evaluation.metrics[i]));
    return json_pack("{ss ss sI sI so sf sf}", "name", name ? name : "", "checkpoint",
                     path_shown(bundle_prefix(eval->model.bundle), shown), "step",
                     (json_int_t)eval->model.step, "evaluation_examples",
                     (json_int_t)eval->evaluation.rows, "metrics", metrics, "seconds",
                     eval->seconds, "examples_per_second", examples_per_second(eval));
}

static err write_result(struct eval *eval)
{
    json_t *json = result_json(eval);
    if (!json) return fail(ERR_MEMORY, "--result: no memory");
    json_dumpf(json, eval->result.file, JSON_INDENT(2));
    fputc('\n', eval->result.file);
    json_decref(json);
    return out_file_publish(&eval->result) ? fail(ERR_IO, "--result=%s", error_text()) : OK;
}

static err evaluate(struct eval *eval)
{
    struct restored_model *model = &eval->model;
    TRY(restored_model_open(model, false));
    const uint64_t started_ns = clock_ns();
    TRY(session_evaluate(&model->session, &eval->evaluation));
    eval->seconds = (double)(clock_ns() - started_ns) * 1e-9;
    print_evaluation(eval);
    if (eval->result.file) TRY(write_result(eval));
    return evaluation_check(&eval->evaluation);
}

static err check_result(const struct eval *eval, const char *spec_path)
{
    const struct written_file out = {"result", eval->flags.result};
    TRY(output_check(&out, "is the spec", spec_path));
    TRY(output_check_folder(&out, eval->flags.shared.checkpoint));
    return output_check_data(&out, &eval->model.spec);
}

/* Opens the result file first: if it cannot be written, nothing is computed. */
static err run(struct eval *eval, int argc, char **argv, struct arena *arena)
{
    const struct restored_call call = {argc, argv, own_flags, sizeof eval->flags};
    const char *path;
    TRY(restored_model_parse(&call, arena, &eval->flags, &path));
    TRY(restored_model_load_spec(&eval->model, &eval->flags.shared, path));
    const char *result = eval->flags.result;
    if (result) TRY(check_result(eval, path));
    if (result && out_file_open(&eval->result, result))
        return fail(ERR_INPUT, "--result=%s", error_text());
    return evaluate(eval);
}

static int cmd_eval(int argc, char **argv)
{
    struct arena arena = {0};
    struct eval eval = {0};
    cpu_environment_prepare(argv);
    err e = run(&eval, argc - 1, argv + 1, &arena);
    int code = e ? report_error(e) : EXIT_DONE;
    out_file_close(&eval.result);
    restored_model_close(&eval.model);
    arena_free(&arena);
    return code;
}

const struct command command_eval = {
    .name = "eval",
    .arguments = "[FLAGS] SPEC.json",
    .summary = "evaluate the values of a checkpoint",
    .run = cmd_eval,
    .topic = "evaluate a checkpoint",
    .print_help = print_eval_help,
};
