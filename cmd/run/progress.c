/* progress.c - see progress.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/run/progress.h"
#include "core/base/clock.h"
#include "core/base/log.h"

static const uint64_t draw_every_ns = 200000000;
enum { LINE_MAX_BYTES = 512 };

static double unix_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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

err progress_open(const struct run *run, struct progress *ret)
{
    *ret = (struct progress){
        .run = run,
        .is_chief = run->cluster.task == 0,
        .draws = log_is_terminal(),
        .started_ns = clock_ns(),
    };
    if (!run->flags.metrics_file) return OK;
    ret->metrics = fopen(run->flags.metrics_file, "we");
    if (!ret->metrics)
        return fail(ERR_INPUT, "--metrics_file=%s: %s", run->flags.metrics_file, strerror(errno));
    return OK;
}

void progress_attach(struct progress *p, struct worker_task *worker)
{
    const struct spec *spec = &p->run->spec;
    int workers = p->run->cluster.hosts[JOB_WORKER].count;
    p->session = worker_task_session(worker);
    p->last_step = worker_task_last_step(worker);
    p->examples_per_step = (double)(spec_replicas(spec, workers) * spec->data.batch_size);
}

/* Some file systems tell only when a file is closed that it was not written. */
static err close_metrics(struct progress *p)
{
    if (!p->metrics) return OK;
    if (fclose(p->metrics) && !p->metrics_error) p->metrics_error = errno;
    p->metrics = NULL;
    if (!p->metrics_error) return OK;
    return fail(ERR_IO, "--metrics_file=%s: %s", p->run->flags.metrics_file,
                strerror(p->metrics_error));
}

void progress_close(struct progress *p)
{
    err unheard = close_metrics(p);
    (void)unheard; /* progress_finish has told, or the run has failed otherwise */
}

/* Examples per second of the whole cluster between two moments of this worker. */
static double rate(const struct progress *p, uint64_t from_step, uint64_t from_ns)
{
    double seconds = (double)(p->step_ns - from_ns) * 1e-9;
    return seconds > 0 ? (double)(p->step - from_step) * p->examples_per_step / seconds : 0;
}

static void write_metrics(struct progress *p, struct session *s, double loss, double examples_s)
{
    double learning_rate =
        schedule_rate(optimizer_learning_rate(&p->run->spec.optimizer), (int64_t)p->step - 1);
    fprintf(p->metrics, "{\"step\": %llu, \"loss\": %.9g", (unsigned long long)p->step, loss);
    for (int i = 0; i < s->graph->metric_count; i++)
        fprintf(p->metrics, ", \"%s\": %.9g", s->graph->metrics[i].name, session_metric(s, i));
    fprintf(p->metrics,
            ", \"learning_rate\": %.9g, \"examples_per_second\": %.1f, \"seconds\": %.6f}\n",
            learning_rate, examples_s, (double)(p->step_ns - p->started_ns) * 1e-9);
    if (fflush(p->metrics) == 0 || p->metrics_error) return;
    p->metrics_error = errno;
    log_line(LOG_WARNING, "--metrics_file=%s: %s: lines are lost", p->run->flags.metrics_file,
             strerror(p->metrics_error));
}

/* "step 512 of 1000, loss 0.3123, accuracy 0.91, 123,456 examples/s" */
static void describe(const struct progress *p, struct session *s, double loss, double examples_s,
                     char text[LINE_MAX_BYTES])
{
    char count[COUNT_TEXT_MAX], of[32] = "";
    if (p->last_step) snprintf(of, sizeof of, " of %llu", (unsigned long long)p->last_step);
    int used = snprintf(text, LINE_MAX_BYTES, "step %llu%s, loss %.4f", (unsigned long long)p->step,
                        of, loss);
    for (int i = 0; i < s->graph->metric_count && used < LINE_MAX_BYTES - 128; i++)
        used += snprintf(text + used, LINE_MAX_BYTES - (size_t)used, ", %.64s %.4f",
                         s->graph->metrics[i].name, session_metric(s, i));
    if (examples_s > 0)
        snprintf(text + used, LINE_MAX_BYTES - (size_t)used, ", %s examples/s",
                 count_text(examples_s, count));
}

static void draw(struct progress *p, struct session *s, double loss)
{
    char text[LINE_MAX_BYTES];
    double examples_s = rate(p, p->first_step, p->first_ns);
    describe(p, s, loss, examples_s, text);
    if (examples_s > 0 && p->last_step)
        log_status("%s, %.0f s left", text,
                   (double)(p->last_step - p->step) * p->examples_per_step / examples_s);
    else
        log_status("%s", text);
    p->drawn_ns = p->step_ns;
}

static void log_step(struct progress *p, struct session *s, double loss)
{
    double examples_s = p->logged_ns ? rate(p, p->logged_step, p->logged_ns) : 0;
    if (p->metrics) write_metrics(p, s, loss, examples_s);
    if (!p->draws) {
        char text[LINE_MAX_BYTES];
        describe(p, s, loss, examples_s, text);
        log_line(LOG_INFO, "%s", text);
    }
    p->logged_step = p->step;
    p->logged_ns = p->step_ns;
}

/* As TensorFlow's log_device_placement: every variable and node with the task that has it. */
static void print_devices(const struct progress *p, const struct session *s)
{
    const char *where = s->options.device->is_separate ? "GPU:0" : "CPU:0";
    const char *kept = s->options.binds_device_memory ? where : "CPU:0";
    for (int i = 0; i < s->layout->slice_count; i++) {
        const struct slice *slice = &s->layout->slices[i];
        char part[32] = "";
        if (slice->parts > 1) snprintf(part, sizeof part, "/part_%d", slice->part);
        printf("%s%s: (variable): /job:ps/task:%d/device:%s\n",
               s->layout->variables[slice->variable].name, part, slice->ps, kept);
    }
    printf("global_step: (variable): /job:ps/task:0/device:CPU:0\n");
    for (int i = 0; i < s->graph->node_count; i++)
        printf("%s: (%s): /job:worker/task:%d/device:%s\n", s->graph->nodes[i].name,
               s->graph->nodes[i].op->object.name, p->run->cluster.task, where);
    fflush(stdout);
}

void progress_placed(struct progress *p, const struct session *s)
{
    double times;
    if (p->run->spec.train.log_device_placement) print_devices(p, s);
    int ps = layout_overloaded(s->layout, &times);
    if (!p->is_chief) return;
    layout_print(s->layout, stdout);
    fflush(stdout);
    if (ps >= 0)
        log_line(LOG_WARNING, "ps/%d holds %.1f times its share of the bytes (see \"placement\")",
                 ps, times);
}

void progress_stepped(struct progress *p, struct session *s, uint64_t step, double loss)
{
    uint64_t every = (uint64_t)p->run->spec.train.log_every_steps;
    bool is_first = p->own_steps++ == 0;
    p->step = step;
    p->step_ns = clock_ns();
    if (is_first) {
        p->first_step = step;
        p->first_ns = p->step_ns;
        p->first_step_unix = unix_seconds();
    }
    if (is_first || step / every != p->logged_step / every) log_step(p, s, loss);
    if (p->draws && p->step_ns - p->drawn_ns >= draw_every_ns) draw(p, s, loss);
}

void progress_evaluated(struct progress *p, uint64_t global_step, const struct evaluation *e)
{
    p->final_step = global_step;
    p->evaluation_rows = e->rows;
    p->evaluation_loss = e->loss;
    p->evaluation_metrics = e->metrics;
}

static double training_seconds(const struct progress *p)
{
    return (double)(p->step_ns - p->first_ns) * 1e-9;
}

static void print_end(const struct progress *p)
{
    char count[COUNT_TEXT_MAX];
    if (!p->is_chief) {
        log_line(LOG_INFO, "done, %llu steps here", (unsigned long long)p->own_steps);
        return;
    }
    printf("step %llu", (unsigned long long)p->final_step);
    if (p->evaluation_rows) {
        printf(", test loss %.4f", p->evaluation_loss);
        for (int i = 0; i < p->session->graph->metric_count; i++)
            printf(", test %s %.4f", p->session->graph->metrics[i].name, p->evaluation_metrics[i]);
        printf(" (%lld examples)", (long long)p->evaluation_rows);
    }
    printf(", %.2f s, %s examples/s\n", (double)(clock_ns() - p->started_ns) * 1e-9,
           count_text(rate(p, p->first_step, p->first_ns), count));
    fflush(stdout);
}

static json_t *result_json(const struct progress *p, int code, const char *text)
{
    json_t *metrics = json_object();
    if (p->evaluation_rows) {
        json_object_set_new(metrics, "loss", json_real(p->evaluation_loss));
        for (int i = 0; i < p->session->graph->metric_count; i++)
            json_object_set_new(metrics, p->session->graph->metrics[i].name,
                                json_real(p->evaluation_metrics[i]));
    }
    return json_pack(
        "{ss si ss sI sI sI so sf sf sf sf}", "name", p->run->spec.name ? p->run->spec.name : "",
        "code", code, "verdict", code ? text : "done", "step", (json_int_t)p->final_step,
        "own_steps", (json_int_t)p->own_steps, "evaluation_examples",
        (json_int_t)p->evaluation_rows, "metrics", metrics, "seconds", training_seconds(p),
        "wall_seconds", (double)(clock_ns() - p->started_ns) * 1e-9, "examples_per_second",
        rate(p, p->first_step, p->first_ns), "first_step_unix", p->first_step_unix);
}

static err write_result(const struct progress *p, int code, const char *text)
{
    const char *path = p->run->flags.result;
    json_t *json = result_json(p, code, text);
    if (!json) return fail(ERR_MEMORY, "--result: no memory");
    FILE *file = fopen(path, "w");
    bool is_written = file && json_dumpf(json, file, JSON_INDENT(2)) == 0;
    is_written = is_written && fputc('\n', file) != EOF;
    if (file) is_written = fclose(file) == 0 && is_written;
    json_decref(json);
    return is_written ? OK : fail(ERR_IO, "--result=%s: %s", path, strerror(errno));
}

err progress_finish(struct progress *p, int code, const char *text)
{
    if (code == EXIT_DONE) print_end(p);
    err written = p->run->flags.result ? write_result(p, code, text) : OK;
    err closed = close_metrics(p);
    if (closed && code != EXIT_DONE) { /* which says more */
        log_line(LOG_WARNING, "%s", error_text());
        closed = OK;
    }
    return closed ? closed : written;
}
