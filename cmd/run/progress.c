/* progress.c - see progress.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/out_file.h"
#include "cmd/run/http.h"
#include "cmd/run/progress.h"
#include "cmd/run/task_parts.h"
#include "core/base/clock.h"
#include "core/base/fields/json.h"
#include "core/base/files/local.h"
#include "core/base/log.h"
#include "core/base/standard_output.h"
#include "core/cluster/runner/board.h"
#include "core/train/hooks/values.h"

static const uint64_t draw_every_ns = 200000000;
enum { LINE_MAX_BYTES = 512 };

const char *count_text(double value, char text[COUNT_TEXT_MAX])
{
    char digits[COUNT_TEXT_MAX];
    int length = snprintf(digits, sizeof digits, "%.0f", value), out = 0;
    for (int i = 0; i < length && out < COUNT_TEXT_MAX - 2; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-') text[out++] = ',';
        text[out++] = digits[i];
    }
    text[out] = '\0';
    return text;
}

json_t *value_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* If one command line starts all tasks, they share one file: only the chief writes it. */
static bool writes_metrics(const struct run *run)
{
    const bool is_one_line = run->flags.cluster.slurm || run->flags.cluster.ranks;
    return run->flags.metrics_file && (!is_one_line || run_kind(run) == RUN_CHIEF);
}

static void say_rows(const char *line)
{
    log_line(LOG_INFO, "%s", line);
}

err progress_open(const struct run *run, struct progress *ret)
{
    *ret = (struct progress){
        .run = run,
        .draws = log_is_terminal(),
        .started_ns = clock_ns(),
        .rows = {.say = say_rows},
    };
    if (!writes_metrics(run)) return OK;
    const err e = local_open_output(run->flags.metrics_file, &ret->metrics);
    return e ? fail_prefix(e, "--metrics_file=%s", run->flags.metrics_file) : OK;
}

static err metrics_failure(const struct progress *p)
{
    if (!p->metrics_error) return OK;
    return fail(ERR_IO, "--metrics_file=%s: %s", p->run->flags.metrics_file,
                strerror(p->metrics_error));
}

/* Some file systems report write errors only on close. */
static err close_metrics(struct progress *p)
{
    if (!p->metrics) return OK;
    if (fclose(p->metrics) && !p->metrics_error) p->metrics_error = errno;
    p->metrics = NULL;
    return metrics_failure(p);
}

void progress_close(struct progress *p)
{
    err unheard = close_metrics(p);
    (void)unheard; /* reported at the end, or the run failed for another reason */
}

/* Per global step, over all workers */
static double examples_per_step(const struct run_view *v)
{
    return (double)(spec_replicas(v->spec, v->workers) * v->spec->data.batch_size);
}

/* Examples per second of the whole cluster, from `from` to this worker's last step */
static double rate(const struct progress *p, const struct run_view *v, struct step_time from)
{
    return steps_per_second(from, (struct step_time){p->step, p->step_ns}) * examples_per_step(v);
}

static json_t *metrics_json(const struct progress *p, const struct run_view *v, double examples_s)
{
    const struct graph *graph = v->session->graph;
    json_t *line = json_pack("{sI}", "step", (json_int_t)p->step);
    json_put(&line, "loss", value_json(v->loss));
    for (int i = 0; i < graph->metric_count; i++)
        json_put(&line, graph->metrics[i].name, value_json(session_metric(v->session, i)));
    json_put(&line, "learning_rate", value_json(v->learning_rate));
    json_put(&line, "examples_per_second", value_json(examples_s));
    json_put(&line, "seconds", value_json((double)(p->step_ns - p->started_ns) * 1e-9));
    return line;
}

static void write_metrics(struct progress *p, const struct run_view *v, double examples_s)
{
    json_t *line = metrics_json(p, v, examples_s);
    errno = line ? 0 : ENOMEM;
    const bool is_written = line && json_dumpf(line, p->metrics, JSON_REAL_PRECISION(9)) == 0 &&
                            fputc('\n', p->metrics) != EOF && fflush(p->metrics) == 0;
    json_decref(line);
    if (is_written || p->metrics_error) return;
    p->metrics_error = errno;
    log_line(LOG_WARNING, "--metrics_file=%s: %s: lines are lost", p->run->flags.metrics_file,
             strerror(p->metrics_error));
}

/* "step 512 of 1000, loss 0.3123, accuracy 0.91, 123,456 examples/s" */
static void describe(const struct progress *p, const struct run_view *v, double examples_s,
                     char text[LINE_MAX_BYTES])
{
    const struct graph *graph = v->session->graph;
    char count[COUNT_TEXT_MAX], value[VALUE_TEXT_MAX], of[32] = "";
    if (v->last_step) snprintf(of, sizeof of, " of %llu", (unsigned long long)v->last_step);
    int used = snprintf(text, LINE_MAX_BYTES, "step %llu%s, loss %s", (unsigned long long)p->step,
                        of, value_text(v->loss, value));
    for (int i = 0; i < graph->metric_count && used < LINE_MAX_BYTES - 128; i++)
        used += snprintf(text + used, LINE_MAX_BYTES - (size_t)used, ", %.64s %s",
                         graph->metrics[i].name, value_text(session_metric(v->session, i), value));
    if (examples_s > 0)
        snprintf(text + used, LINE_MAX_BYTES - (size_t)used, ", %s examples/s",
                 count_text(examples_s, count));
}

/* ", 12 s left", ", 1 h 05 min left", at the speed since the first step; "": not known */
static const char *left_text(const struct progress *p, const struct run_view *v,
                             char text[COUNT_TEXT_MAX])
{
    const double examples_s = rate(p, v, p->first);
    text[0] = '\0';
    if (examples_s <= 0 || v->last_step <= p->step) return text;
    const double left_s = (double)(v->last_step - p->step) * examples_per_step(v) / examples_s;
    const long long minutes = (long long)(left_s / 60);
    if (left_s < 100)
        snprintf(text, COUNT_TEXT_MAX, ", %.0f s left", left_s);
    else if (minutes < 60)
        snprintf(text, COUNT_TEXT_MAX, ", %lld min left", minutes);
    else
        snprintf(text, COUNT_TEXT_MAX, ", %lld h %02lld min left", minutes / 60, minutes % 60);
    return text;
}

static void draw(struct progress *p, const struct run_view *v)
{
    char text[LINE_MAX_BYTES], left[COUNT_TEXT_MAX];
    describe(p, v, rate(p, v, p->first), text);
    log_status("%s%s", text, left_text(p, v, left));
    p->drawn_ns = p->step_ns;
}

static void log_step(struct progress *p, const struct run_view *v)
{
    double examples_s = p->has_logged ? rate(p, v, p->logged) : 0;
    if (p->metrics) write_metrics(p, v, examples_s);
    if (!p->draws && log_is_due(&p->pace, p->step_ns)) {
        char text[LINE_MAX_BYTES], left[COUNT_TEXT_MAX];
        describe(p, v, examples_s, text);
        log_asked("%s%s", text, left_text(p, v, left));
    }
    p->has_logged = true;
    p->logged_step = p->step;
    p->logged = p->begun;
}

static const char *kind_of(const struct device *device)
{
    return device->is_separate ? "GPU" : "CPU";
}

/* tower NULL: there are none. Nodes of towers are named as in TensorFlow. */
static void print_nodes(const struct run_view *v, const struct tower *tower, FILE *out)
{
    const struct session *s = v->session;
    const struct device *device = tower ? tower->device : s->options.device;
    char name[32] = "";
    if (tower) snprintf(name, sizeof name, "tower_%d/", tower->index);
    for (int i = 0; i < s->graph->node_count; i++)
        fprintf(out, "%s%s: (%s): /job:worker/task:%d/device:%s:%d\n", name,
                s->graph->nodes[i].name, s->graph->nodes[i].op->object.name, v->worker,
                kind_of(device), device->index);
}

/* Like TensorFlow's log_device_placement: prints the task of every variable and node. */
static void print_devices(const struct run_view *v)
{
    const struct session *s = v->session;
    const struct device *d = s->options.device;
    const bool is_here = s->options.binds_device_memory;
    struct result_lines lines;
    FILE *out = result_lines_begin(&lines);
    for (int i = 0; i < s->layout->slice_count; i++) {
        const struct slice *slice = &s->layout->slices[i];
        char part[32] = "";
        if (slice->parts > 1) snprintf(part, sizeof part, "/part_%d", slice->part);
        fprintf(out, "%s%s: (variable): /job:ps/task:%d/device:%s:%d\n",
                s->layout->variables[slice->variable].name, part, slice->ps,
                is_here ? kind_of(d) : "CPU", is_here ? d->index : 0);
    }
    fprintf(out, "global_step: (variable): /job:ps/task:0/device:CPU:0\n");
    for (int k = 0; k < s->towers.count; k++) print_nodes(v, &s->towers.at[k], out);
    if (!s->towers.count) print_nodes(v, NULL, out);
    result_lines_end(&lines);
}

static void print_layout(const struct progress *p, const struct layout *layout)
{
    struct result_lines lines;
    if (p->run->flags.log.level < LOG_INFO) return;
    FILE *out = result_lines_begin(&lines);
    layout_print(layout, out);
    result_lines_end(&lines);
}

static err adopted(void *state, const struct run_view *v, const struct occasion *o)
{
    double times;
    if (!o->adopted.is_first) return OK;
    if (v->spec->train.log_device_placement) print_devices(v);
    int ps = layout_overloaded(v->session->layout, &times);
    if (!v->is_chief) return OK;
    print_layout(state, v->session->layout);
    if (ps >= 0)
        log_line(LOG_WARNING, "ps/%d holds %.1f times its share of the bytes (see \"placement\")",
                 ps, times);
    return OK;
}

/* Speed is measured from the beginning of this worker's second step on: its first takes longer than
 * all others, and other workers continue meanwhile. */
static err before(void *state, const struct run_view *v, const struct occasion *o)
{
    struct progress *p = state;
    p->begun = (struct step_time){v->global_step, v->now_ns};
    if (p->own_steps == 1) p->first = p->logged = p->begun;
    return OK;
}

static err stepped(void *state, const struct run_view *v, const struct occasion *o)
{
    struct progress *p = state;
    uint64_t every = (uint64_t)v->spec->train.log_every_steps;
    bool is_first = p->own_steps++ == 0;
    p->step = v->global_step;
    p->step_ns = v->now_ns;
    if (is_first) {
        p->begun = p->first = (struct step_time){p->step, p->step_ns};
        p->first_step_unix = v->wall_s;
    }
    if (is_first || p->step / every != p->logged_step / every) log_step(p, v);
    if (p->draws && p->step_ns - p->drawn_ns >= draw_every_ns) draw(p, v);
    return OK;
}

/* ---- which rows were used ---- */

/* Ignores what a checkpoint written after the end of endless data reports. */
static err covered(void *state, const struct run_view *v, const struct occasion *o)
{
    struct progress *p = state;
    const struct rows_seen *r = o->covered;
    if (r->is_endless && (!r->rows || (p->covered.is_over && !r->is_over))) return OK;
    p->covered = *r;
    if (r->is_over || r->is_endless) epoch_lines_add(&p->rows, r, clock_ns());
    return OK;
}

/* Seconds as in the rate that is printed beside them: without startup, reading of files, the first
 * step and the last evaluation */
static double training_seconds(const struct progress *p)
{
    return (double)(p->step_ns - p->first.ns) * 1e-9;
}

/* Steps of all workers since this one joined */
static uint64_t trained_steps(const struct progress *p, const struct run_view *v)
{
    return p->final_step > v->first_step ? p->final_step - v->first_step : 0;
}

/* For the last line, which else looks like that of any other run */
static const char *nothing_text(const struct progress *p, const struct run_view *v)
{
    return trained_steps(p, v)
               ? ""
               : "; nothing was trained: the checkpoint is of the last step already";
}

/* Includes the unfinished epoch, which no line has reported. */
static void warn_of_lost_rows(const struct rows_seen *r)
{
    if (r->is_endless || (!r->lost && !r->twice)) return;
    log_line(
        LOG_WARNING,
        "rows of the run: %llu used, %llu of them twice, %llu lost: their gradients were dropped, "
        "who was to bring them is gone, or a change of workers, batches, rows or their order left "
        "them out",
        (unsigned long long)r->total, (unsigned long long)r->twice, (unsigned long long)r->lost);
}

static void print_end(const struct progress *p, const struct run_view *v)
{
    char count[COUNT_TEXT_MAX], text[EVALUATION_TEXT_MAX];
    if (!v->is_chief) {
        log_line(LOG_INFO, "done, %llu steps here", (unsigned long long)p->own_steps);
        return;
    }
    if (p->evaluation.rows)
        evaluation_text(v->session, &p->evaluation, p->final_step, "test", text);
    else
        snprintf(text, sizeof text, "step %llu", (unsigned long long)p->final_step);
    warn_of_lost_rows(&p->covered);
    count_text(rate(p, v, p->first), count);
    struct result_lines lines;
    fprintf(result_lines_begin(&lines), "%s, %.2f s, %s examples/s%s\n", text, training_seconds(p),
            count, nothing_text(p, v));
    result_lines_end(&lines);
}

/* Of the whole run, across restarts */
static json_t *rows_json(const struct rows_seen *r)
{
    if (!r->rows) return NULL;
    const uint64_t per_epoch = r->epochs ? r->rows / r->epochs : r->rows;
    const uint64_t whole = r->is_over ? r->epochs : r->epochs > 1 ? r->applied / per_epoch : 0;
    return json_pack("{sI sI sI sI sI sI}", "per_epoch", (json_int_t)per_epoch, "epochs",
                     (json_int_t)(r->epoch + whole), "used", (json_int_t)r->total, "twice",
                     (json_int_t)r->twice, "lost", (json_int_t)r->lost, "late",
                     (json_int_t)r->late);
}

/* What is known of all tasks, as in /status.json; read by `dtrain why` and `dtrain plan`. */
static json_t *tasks_json(const struct progress *p)
{
    json_t *board =
        board_json(task_http_board(p->run->http), false, 0, PS_MAX + WORKERS_MAX, clock_ms());
    json_t *tasks = json_incref(json_object_get(board, "tasks"));
    json_decref(board);
    return tasks;
}

static json_t *result_json(const struct progress *p, const struct run_view *v,
                           const struct occasion *o)
{
    const struct graph *graph = v->session->graph;
    json_t *metrics = json_object();
    if (p->evaluation.rows) {
        json_object_set_new(metrics, "loss", value_json(p->evaluation.loss));
        for (int i = 0; i < graph->metric_count; i++)
            json_object_set_new(metrics, graph->metrics[i].name,
                                value_json(p->evaluation.metrics[i]));
    }
    return json_pack(
        "{ss si ss sI sI sI sI so so* sf sf sf sf so*}", "name", v->spec->name ? v->spec->name : "",
        "code", o->end.code, "verdict", o->end.code ? o->end.text : "done", "step",
        (json_int_t)p->final_step, "trained", (json_int_t)trained_steps(p, v), "own_steps",
        (json_int_t)p->own_steps, "evaluation_examples", (json_int_t)p->evaluation.rows, "metrics",
        metrics, "rows", rows_json(&p->covered), "seconds", training_seconds(p), "wall_seconds",
        (double)(clock_ns() - p->started_ns) * 1e-9, "examples_per_second", rate(p, v, p->first),
        "first_step_unix", p->first_step_unix, "tasks", tasks_json(p));
}

static err write_result(const struct progress *p, const struct run_view *v,
                        const struct occasion *o)
{
    json_t *json = result_json(p, v, o);
    if (!json) return fail(ERR_MEMORY, "--result: no memory");
    struct out_file out = {0};
    err e = out_file_open(&out, p->run->flags.result);
    if (!e) {
        json_dumpf(json, out.file, JSON_INDENT(2));
        fputc('\n', out.file);
        e = out_file_publish(&out);
    }
    json_decref(json);
    out_file_close(&out);
    return e ? fail(ERR_IO, "--result=%s", error_text()) : OK;
}

/* The chief writes --result before the job ends, so that an error reaches all tasks, which end with
 * the same code. */
static err evaluated(void *state, const struct run_view *v, const struct occasion *o)
{
    static const struct occasion done = {OCCASION_END, .end = {EXIT_DONE, ""}};
    struct progress *p = state;
    if (!o->evaluated.is_last) return OK;
    p->final_step = v->global_step;
    p->evaluation = *o->evaluated.evaluation;
    if (!v->is_chief) return OK;
    TRY(metrics_failure(p));
    return p->run->flags.result ? write_result(p, v, &done) : OK;
}

/* Prints the result for people (standard output) and for scripts (--result). */
static err end(void *state, const struct run_view *v, const struct occasion *o)
{
    struct progress *p = state;
    if (!p->evaluation.rows) p->final_step = v->global_step;
    epoch_lines_end(&p->rows, &p->covered, clock_ns());
    if (o->end.code == EXIT_DONE || p->evaluation.rows) print_end(p, v);
    err written = v->is_chief && p->run->flags.result ? write_result(p, v, o) : OK;
    const bool is_told = p->metrics_error;
    err closed = close_metrics(p);
    if (closed && (o->end.code != EXIT_DONE || !v->is_chief)) { /* the job's end says more */
        if (!is_told) log_line(LOG_WARNING, "%s", error_text());
        closed = OK;
    }
    return closed ? closed : written;
}

const struct hook hook_progress = {
    .object = {.name = "progress",
               .summary = "shows the progress of a worker and writes its result"},
    .on = {[OCCASION_ADOPTED] = adopted,
           [OCCASION_BEFORE] = before,
           [OCCASION_STEPPED] = stepped,
           [OCCASION_EVALUATED] = evaluated,
           [OCCASION_COVERED] = covered,
           [OCCASION_END] = end},
};

struct runner_worker_options worker_options_of(struct run *run, struct loop *loop,
                                               struct task_devices *devices,
                                               struct progress *progress)
{
    return (struct runner_worker_options){
        .task = task_options_of(run, loop),
        .spec = &run->spec,
        .device = &devices->device,
        .towers = devices->towers,
        .own_hook = {&hook_progress, progress},
    };
}
