/* runner_worker_count.c - a worker's counters: steps, and where their time went. */
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/runner/counting.h"
#include "core/cluster/runner/runner_worker_inside.h"

enum { RATE_MS = 5000 }; /* the shortest time over which a rate is computed */

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) * 1e-9 : 0;
}

double runner_worker_apart(const struct runner_worker *w)
{
    const double *at = w->task.counting.counters.at;
    return at[COUNTER_TIME_DATA] + at[COUNTER_TIME_PULL] + at[COUNTER_TIME_HOOKS];
}

/* Reduces *part by `rest`, at most to 0, and `rest` likewise. */
static void take_from(double *part, double *rest)
{
    const double taken = *rest < *part ? *rest : *part;
    *part -= taken;
    *rest -= taken;
}

/* Hooks run while gradients are sent, and are counted separately. */
void runner_worker_count_waited(struct runner_worker *w, uint64_t now_ns)
{
    struct between_steps *m = &w->between;
    double *at = w->task.counting.counters.at;
    if (!w->done.pushed_ns) return;
    const uint64_t answered_ns = m->answered_ns ? m->answered_ns : now_ns;
    const uint64_t left_ns = m->left_ns && m->left_ns < answered_ns ? m->left_ns : answered_ns;
    double hooks = at[COUNTER_TIME_HOOKS] - m->hooks_s;
    double push = seconds(w->done.pushed_ns, left_ns), others = seconds(left_ns, answered_ns),
           pull = seconds(answered_ns, now_ns);
    take_from(&push, &hooks);
    take_from(&others, &hooks);
    take_from(&pull, &hooks);
    at[COUNTER_TIME_PUSH] += push;
    at[COUNTER_TIME_OTHERS] += others;
    at[COUNTER_TIME_PULL] += pull;
    m->data_ns = w->session.taken.data_ns;
}

/* is_one: the step was completed. */
void runner_worker_count_step(struct runner_worker *w, uint64_t begin_ns, double apart, bool is_one)
{
    struct between_steps *m = &w->between;
    double *at = w->task.counting.counters.at;
    const uint64_t now_ns = clock_ns();
    at[COUNTER_TIME_DATA] += seconds(m->data_ns, w->session.taken.data_ns);
    const double computed = seconds(begin_ns, now_ns) - (runner_worker_apart(w) - apart);
    if (computed > 0) at[COUNTER_TIME_COMPUTE] += computed;
    at[COUNTER_STEPS] += is_one;
    at[COUNTER_EXAMPLES] = (double)w->session.taken.examples;
    if (is_one) at[COUNTER_LOSS] = w->done.loss;
    w->done.pushed_ns = now_ns;
    m->left_ns = m->answered_ns = 0;
    m->hooks_s = at[COUNTER_TIME_HOOKS];
    if (w->options.spec->train.mode == MODE_SYNC || at[COUNTER_STEPS] < 2 || !is_one) return;
    counters_note_staleness(&w->task.counting.counters, worker_role_staleness(w->task.role));
}

void runner_worker_count_answered(struct runner_worker *w)
{
    if (w->done.pushed_ns && !w->between.answered_ns) w->between.answered_ns = clock_ns();
}

void runner_worker_count_left(struct runner_worker *w)
{
    if (!w->done.pushed_ns || w->between.left_ns || w->between.answered_ns) return;
    for (int ps = 0; ps < w->task.peer_count; ps++)
        if (w->task.peers[ps].link && !link_is_idle(w->task.peers[ps].link)) return;
    w->between.left_ns = clock_ns();
}

static void rate(struct runner_worker *w, struct counters *c)
{
    struct between_steps *m = &w->between;
    const uint64_t now_ms = clock_ms();
    const double steps = c->at[COUNTER_STEPS] - m->rated_steps,
                 examples = c->at[COUNTER_EXAMPLES] - m->rated_examples,
                 passed = (double)(now_ms - m->rated_ms) / 1000;
    const bool is_first = c->at[COUNTER_STEP_RATE] == 0;
    if (m->rated_ms && (passed <= 0 || (!is_first && now_ms - m->rated_ms < RATE_MS))) return;
    if (m->rated_ms) {
        c->at[COUNTER_STEP_RATE] = steps / passed;
        c->at[COUNTER_EXAMPLE_RATE] = examples / passed;
    }
    m->rated_ms = now_ms;
    m->rated_steps = c->at[COUNTER_STEPS];
    m->rated_examples = c->at[COUNTER_EXAMPLES];
}

/* On the chief: how many ps the job continues without */
static double without_ps(const struct task *t)
{
    int count = 0;
    if (!worker_role_leads(t->role)) return 0;
    for (int ps = 0; ps < t->peer_count; ps++) count += worker_role_is_without(t->role, ps);
    return count;
}

static void count_place(struct batch_source *data, struct counters *c)
{
    struct source_place place = {0};
    if (data->calls->place) data->calls->place(data, &place);
    c->at[COUNTER_DATA_ROW] = (double)place.row;
    c->at[COUNTER_DATA_ROWS] = (double)place.rows;
    c->at[COUNTER_DATA_FILE] = place.file;
    c->at[COUNTER_DATA_FILES] = place.files;
}

bool runner_worker_count(struct task *t, struct counters *c)
{
    struct runner_worker *w = (struct runner_worker *)t;
    struct batch_source *data = w->session.data.train;
    const int ready = data->calls->ready(data);
    count_place(data, c);
    c->at[COUNTER_STEP] = (double)worker_role_global_step(t->role);
    c->at[COUNTER_LAST_STEP] = (double)runner_worker_last_step(w);
    c->at[COUNTER_IS_CHIEF] = worker_role_leads(t->role);
    c->at[COUNTER_TERM] = (double)worker_role_term(t->role);
    c->at[COUNTER_LEARNING_RATE] = w->hooks.view.learning_rate;
    c->at[COUNTER_GRADIENT_NORM] = w->hooks.view.gradient_norm;
    c->at[COUNTER_BATCHES_READY] = ready > 0 ? ready : 0;
    c->at[COUNTER_CHECKPOINT_FAILURES] = (double)w->saving.failures;
    c->at[COUNTER_DELTA_FAILURES] = (double)w->saving.delta_failures;
    c->at[COUNTER_WITHOUT_PS] = without_ps(t);
    c->at[COUNTER_SAVING] = (double)worker_role_saving_ms(t->role) / 1000;
    c->at[COUNTER_SAVES_TO] = w->options.spec->train.checkpoint.dir != NULL;
    rate(w, c);
    return w->has_adopted;
}

/* The chief's report makes every ps answer with its counters. */
void runner_worker_tell_counted(struct task *t, const struct task_status *status)
{
    const int count = worker_role_leads(t->role) ? t->peer_count : 1;
    for (int ps = 0; ps < count; ps++) counting_tell(t, ps, true, t->index, status);
}
