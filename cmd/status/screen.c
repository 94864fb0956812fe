/* screen.c - prints the state of a job for a terminal. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/status/status.h"
#include "core/base/clock.h"

enum { TEXT_MAX = 32 };

static double of(const struct task_status *t, enum counter c)
{
    return t->counters.at[c];
}

/* "3.2 MB" */
static const char *bytes_text(double bytes, char ret[TEXT_MAX])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 1000 && unit < 4; unit++) bytes /= 1000;
    snprintf(ret, TEXT_MAX, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return ret;
}

/* "2 h 3 min" */
static const char *time_text(double seconds, char ret[TEXT_MAX])
{
    const long long s = seconds > 0 && seconds < 1e12 ? (long long)seconds : 0;
    if (s < 120)
        snprintf(ret, TEXT_MAX, "%lld s", s);
    else if (s < 7200)
        snprintf(ret, TEXT_MAX, "%lld min", s / 60);
    else
        snprintf(ret, TEXT_MAX, "%lld h %lld min", s / 3600, s / 60 % 60);
    return ret;
}

struct job_totals {
    double step, last_step, example_rate, examples, uptime;
    int ps, followers, workers;
    const struct task_status *chief; /* NULL: unknown */
};

/* In asynchronous training each worker's step is a global one; in synchronous all share it. */
static struct job_totals total(const struct job_status *s)
{
    struct job_totals t = {.chief = tasks_chief(s->tasks, s->count)};
    for (int i = 0; i < s->count; i++) {
        const struct task_status *status = &s->tasks[i];
        if (of(status, COUNTER_STEP) > t.step) t.step = of(status, COUNTER_STEP);
        if (of(status, COUNTER_UPTIME) > t.uptime) t.uptime = of(status, COUNTER_UPTIME);
        t.ps += status->is_ps;
        t.followers += of(status, COUNTER_FOLLOWS) > 0;
        t.workers += !status->is_ps;
        if (status->is_ps) continue;
        if (of(status, COUNTER_LAST_STEP) > t.last_step)
            t.last_step = of(status, COUNTER_LAST_STEP);
        t.example_rate += of(status, COUNTER_EXAMPLE_RATE);
        t.examples += of(status, COUNTER_EXAMPLES);
    }
    return t;
}

static void print_head(const struct job_totals *t)
{
    char text[TEXT_MAX];
    printf("step %.0f", t->step);
    if (t->last_step > 0) printf(" of %.0f (%.0f %%)", t->last_step, 100 * t->step / t->last_step);
    printf(", %.0f examples/s, %.0f examples", t->example_rate, t->examples);
    if (t->chief) printf(", loss %.4g", of(t->chief, COUNTER_LOSS));
    printf(", up %s\n%d ps", time_text(t->uptime, text), t->ps);
    if (t->followers) printf(" (%d of them followers)", t->followers);
    printf(", %d worker%s", t->workers, t->workers == 1 ? "" : "s");
    if (!t->chief) {
        puts("");
        return;
    }
    printf(", %s leads; ", t->chief->task);
    if (of(t->chief, COUNTER_CHECKPOINT_TIME) > 0)
        printf("checkpoint of step %.0f %s ago, took %.2g s\n",
               of(t->chief, COUNTER_CHECKPOINT_STEP),
               time_text(task_status_clock_s(t->chief, clock_ms()) -
                             of(t->chief, COUNTER_CHECKPOINT_TIME),
                         text),
               of(t->chief, COUNTER_CHECKPOINT_SECONDS));
    else
        puts(of(t->chief, COUNTER_SAVES_TO) > 0 ? "no checkpoint yet" : "saves no checkpoints");
}

static void print_ps(const struct job_status *s)
{
    char sent[TEXT_MAX], came[TEXT_MAX], dense[TEXT_MAX], tables[TEXT_MAX];
    printf("\n%-10s %9s %9s %9s %9s %9s %9s  %s\n", "ps", "updates", "sent", "received", "dense",
           "tables", "rows", "state");
    for (int i = 0; i < s->count; i++) {
        const struct task_status *t = &s->tasks[i];
        if (!t->is_ps) continue;
        double out = 0, in = 0;
        for (int c = COUNTER_SENT_GRADIENTS; c <= COUNTER_SENT_OTHER; c++)
            out += of(t, (enum counter)c);
        for (int c = COUNTER_CAME_GRADIENTS; c <= COUNTER_CAME_OTHER; c++)
            in += of(t, (enum counter)c);
        char follows[TEXT_MAX] = "";
        if (of(t, COUNTER_FOLLOWS) > 0)
            snprintf(follows, sizeof follows, "follows ps/%.0f: ", of(t, COUNTER_FOLLOWS));
        printf("%-10s %9.0f %9s %9s %9s %9s %9.0f  %s%s\n", t->task, of(t, COUNTER_UPDATES),
               bytes_text(out, sent), bytes_text(in, came),
               bytes_text(of(t, COUNTER_DENSE_BYTES), dense),
               bytes_text(of(t, COUNTER_TABLE_BYTES), tables), of(t, COUNTER_TABLE_ROWS), follows,
               t->state);
    }
}

static void print_unanswered(const struct job_status *s)
{
    for (int i = 0; i < s->unanswered_count; i++) {
        const struct unanswered *u = &s->unanswered[i];
        printf("ps/%-7d does not answer", u->ps);
        if (u->waited_ms) printf(" (%.0f s)", (double)u->waited_ms / 1000);
        putchar('\n');
    }
}

/* A share of the task's time, in percent */
static double part_of(const struct task_status *t, enum counter c)
{
    return 100 * task_status_lately(t, c) / (task_status_time_lately(t) + 1e-9);
}

static void print_workers(const struct job_status *s)
{
    char memory[TEXT_MAX];
    printf("\n%-10s %9s %9s %8s %5s %5s %6s %5s %5s %9s  %s\n", "worker", "steps", "steps/s",
           "compute%", "data%", "push%", "others%", "pull%", "hooks%", "memory", "state");
    for (int i = 0; i < s->count; i++) {
        const struct task_status *t = &s->tasks[i];
        if (t->is_ps) continue;
        const double rate = of(t, COUNTER_STEP_RATE);
        printf("%-10s %9.0f %9.*g %8.0f %5.0f %5.0f %7.0f %5.0f %6.0f %9s  %s\n", t->task,
               of(t, COUNTER_STEPS), rate < 1000 ? 3 : 9, rate < 1000 ? rate : round(rate),
               part_of(t, COUNTER_TIME_COMPUTE), part_of(t, COUNTER_TIME_DATA),
               part_of(t, COUNTER_TIME_PUSH), part_of(t, COUNTER_TIME_OTHERS),
               part_of(t, COUNTER_TIME_PULL), part_of(t, COUNTER_TIME_HOOKS),
               bytes_text(of(t, COUNTER_MEMORY), memory), t->state);
    }
}

void status_print(const struct job_status *s, const struct finding *findings, int count)
{
    const struct job_totals totals = total(s);
    print_head(&totals);
    print_ps(s);
    print_unanswered(s);
    if (totals.workers) print_workers(s);
    puts("");
    findings_print(findings, count);
    if (!count) puts("nothing is wrong");
}
