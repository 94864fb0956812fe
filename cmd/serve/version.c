/* version.c - see version.h. */
#include "cmd/serve/version.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/threads/thread.h"
#include "core/data/storage.h"
#include "core/train/checkpoint/checkpoints.h"
#include "core/train/checkpoint/delta.h"
#include "core/train/session/fresh.h"

/* A request that waits */
struct waiting {
    struct waiting *next;
    const struct taken_rows *rows;
    struct version_answer *answer;
    int64_t taken; /* rows that are computed, or are being */
    uint64_t came_ns;
    err e;
    char text[ERROR_TEXT_MAX];
    bool is_done;
    pthread_cond_t done;
};

struct version {
    struct version_options options;
    struct restored_flags flags; /* with its prefix instead of the folder */
    char prefix[CHECKPOINT_PATH_MAX];
    struct restored_model model;
    struct intake *intake;
    struct asked_rows asked;
    struct column *together; /* [asked.column_count] rows of several requests */
    void *memory;            /* of those */
    pthread_t thread;
    struct fresh *fresh;        /* that is computed with; NULL: the checkpoint is */
    const struct fresh *newest; /* of who brings deltas: `coming`, or `fresh` */

    pthread_mutex_t lock; /* of what is below */
    pthread_cond_t came;
    struct waiting *first, *last;
    struct fresh *coming; /* from the next request on; NULL: nothing newer has come */
    bool is_stopping;
    enum version_state state;
    err failure;
    char text[ERROR_TEXT_MAX];
};

/* ---- opening ---- */

static err describe(void *context, struct asked_rows *ret)
{
    struct version *v = context;
    TRY(intake_open(&v->model.spec, &v->intake));
    v->asked = intake_asked(v->intake, v->options.max_batch);
    *ret = v->asked;
    return OK;
}

static err make_room(struct version *v)
{
    const int64_t most = v->options.max_batch;
    size_t bytes = 0, at = 0;
    v->together = calloc((size_t)v->asked.column_count, sizeof *v->together);
    for (int i = 0; v->together && i < v->asked.column_count; i++) {
        v->together[i] = v->asked.columns[i];
        if (session_reads_column(&v->model.session, i))
            bytes += whole_lines(column_row_bytes(&v->together[i]) * (uint64_t)most);
    }
    v->memory = calloc(1, bytes + 1);
    if (!v->together || !v->memory)
        return fail(ERR_MEMORY, "no memory for %lld rows", (long long)most);
    for (int i = 0; i < v->asked.column_count; i++) {
        if (!session_reads_column(&v->model.session, i)) continue;
        v->together[i].at = (char *)v->memory + at;
        at += whole_lines(column_row_bytes(&v->together[i]) * (uint64_t)most);
    }
    return OK;
}

/* So that the first requests find all that is made once; rows of zeros. */
static err warm_up(struct version *v)
{
    struct predictions unused;
    for (int64_t rows = 1; rows < v->options.max_batch; rows *= 2)
        TRY(session_predict_rows(&v->model.session, v->together, rows, &unused));
    return session_predict_rows(&v->model.session, v->together, v->options.max_batch, &unused);
}

static err open_model(struct version *v)
{
    struct restored_model *m = &v->model;
    TRY(restored_model_load_spec(m, &v->flags, v->options.spec));
    if (!m->spec.data.eval.format.kind) restored_model_use_train(m);
    m->asks = describe;
    m->asks_context = v;
    TRY(restored_model_open(m, true));
    const err e = intake_choose(v->intake, &m->session);
    if (e) return fail_prefix(e, "%s", m->spec.source);
    TRY(make_room(v));
    return warm_up(v);
}

/* ---- computing ---- */

/* A request of which some rows were computed ends with the values that it began with: new ones wait
 * for it, and no other request joins its batch meanwhile. */
static bool is_amid_request(const struct version *v)
{
    return v->first && v->first->taken > 0;
}

static struct fresh *take_coming(struct version *v)
{
    struct fresh *coming = NULL;
    pthread_mutex_lock(&v->lock);
    if (!is_amid_request(v)) {
        coming = v->coming;
        v->coming = NULL;
    }
    pthread_mutex_unlock(&v->lock);
    return coming;
}

/* A device that cannot take them is none that could compute. */
static err change_over(struct version *v)
{
    struct fresh *coming = take_coming(v);
    if (!coming) return OK;
    const err e = session_freshen(&v->model.session, coming);
    fresh_free(v->fresh);
    v->fresh = coming;
    return e;
}

/* Requests that are computed together: those at the front, as far as there is room */
struct together {
    int64_t rows;
    struct waiting *last; /* of these */
};

static struct together gather(const struct version *v)
{
    struct together t = {0};
    for (struct waiting *w = v->first; w && t.rows < v->options.max_batch; w = w->next) {
        if (v->coming && w != v->first && is_amid_request(v)) break;
        const int64_t left = w->rows->rows - w->taken, room = v->options.max_batch - t.rows;
        t.rows += left < room ? left : room;
        t.last = w;
    }
    return t;
}

/* Of so many rows in a batch, which begin at row `at` of it */
struct share {
    struct waiting *of;
    int64_t at, rows;
};

static struct share share_of(struct waiting *w, int64_t at, const struct together *t)
{
    const int64_t left = w->rows->rows - w->taken;
    return (struct share){w, at, left < t->rows - at ? left : t->rows - at};
}

static void copy_in(struct version *v, const struct share *s)
{
    for (int i = 0; i < v->asked.column_count; i++) {
        const size_t bytes = column_row_bytes(&v->together[i]);
        const struct column *from = &s->of->rows->columns[i];
        if (!v->together[i].at || !from->at) continue;
        memcpy((char *)v->together[i].at + bytes * (size_t)s->at,
               (const char *)from->at + bytes * (size_t)s->of->taken, bytes * (size_t)s->rows);
    }
}

static void copy_out(const struct share *s, const struct predictions *p, int heads)
{
    for (int i = 0; i < heads; i++) {
        const int64_t columns = p->heads[i].columns;
        memcpy(s->of->answer->at[i] + s->of->taken * columns, p->heads[i].at + s->at * columns,
               (size_t)(s->rows * columns) * sizeof(float));
    }
}

static void finish(struct version *v, struct waiting *w, err e)
{
    w->e = e;
    if (e) snprintf(w->text, sizeof w->text, "%s", error_text());
    pthread_mutex_lock(&v->lock);
    w->is_done = true;
    pthread_cond_signal(&w->done);
    pthread_mutex_unlock(&v->lock);
}

/* From the queue: nobody else touches those at its front. */
static void take_off(struct version *v, struct waiting *w)
{
    pthread_mutex_lock(&v->lock);
    v->first = w->next;
    if (!v->first) v->last = NULL;
    pthread_mutex_unlock(&v->lock);
}

static void compute(struct version *v, const struct together *t)
{
    const int heads = v->model.session.graph->head_count;
    struct predictions p;
    int64_t at = 0;
    const uint64_t began_ns = clock_ns();
    for (struct waiting *w = v->first; at < t->rows; w = w->next) {
        const struct share s = share_of(w, at, t);
        tally_note_wait(v->options.tally, began_ns - w->came_ns);
        copy_in(v, &s);
        at += s.rows;
    }
    err e = change_over(v);
    if (!e) e = session_predict_rows(&v->model.session, v->together, t->rows, &p);
    tally_note_batch(v->options.tally, t->rows, clock_ns() - began_ns);
    for (at = 0; at < t->rows;) {
        struct waiting *w = v->first;
        const struct share s = share_of(w, at, t);
        if (!e) copy_out(&s, &p, heads);
        w->taken += s.rows;
        at += s.rows;
        if (!e && w->taken < w->rows->rows) break; /* its rest comes first in the next batch */
        take_off(v, w);
        finish(v, w, e);
    }
}

/* Until there is a batch; rows 0: nobody will come any more. */
static struct together wait_for_rows(struct version *v)
{
    struct timespec until = {0};
    struct together t;
    pthread_mutex_lock(&v->lock);
    while (!v->first && !v->is_stopping) pthread_cond_wait(&v->came, &v->lock);
    t = gather(v);
    if (v->options.batch_wait_ms && t.rows) until = clock_in_ms(v->options.batch_wait_ms);
    while (v->options.batch_wait_ms && t.rows && t.rows < v->options.max_batch && !v->is_stopping) {
        if (pthread_cond_clockwait(&v->came, &v->lock, CLOCK_MONOTONIC, &until)) break;
        t = gather(v);
    }
    if (t.rows) t = gather(v);
    pthread_mutex_unlock(&v->lock);
    return t;
}

static void become(struct version *v, enum version_state state, err failure)
{
    pthread_mutex_lock(&v->lock);
    v->failure = failure;
    if (failure) snprintf(v->text, sizeof v->text, "%s", error_text());
    v->state = state;
    pthread_mutex_unlock(&v->lock);
}

static void *serve(void *context)
{
    struct version *v = context;
    const err e = open_model(v);
    become(v, e ? VERSION_FAILED : VERSION_SERVES, e);
    for (bool goes_on = !e; goes_on;) {
        const struct together t = wait_for_rows(v);
        if (t.rows) compute(v, &t);
        goes_on = t.rows > 0;
    }
    free(v->together);
    free(v->memory);
    struct intake *intake = v->intake; /* borrows the spec */
    intake_close(intake);
    restored_model_close(&v->model);
    fresh_free(v->fresh);
    return NULL;
}

/* ---- life ---- */

err version_start(const struct version_options *options, const char *prefix, struct version **ret)
{
    struct version *v = calloc(1, sizeof *v);
    if (!v) return fail(ERR_MEMORY, "no memory for a model");
    v->options = *options;
    v->flags = *options->flags;
    snprintf(v->prefix, sizeof v->prefix, "%s", prefix);
    v->flags.checkpoint = v->prefix;
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->came, NULL);
    const err e = thread_start(&v->thread, serve, v);
    if (e)
        free(v);
    else
        *ret = v;
    return e;
}

enum version_state version_state(struct version *v, err *ret_failure)
{
    pthread_mutex_lock(&v->lock);
    const enum version_state state = v->state;
    *ret_failure = v->failure;
    pthread_mutex_unlock(&v->lock);
    if (state == VERSION_FAILED) *ret_failure = fail(*ret_failure, "%s", v->text);
    return state;
}

void version_close(struct version *v)
{
    if (!v) return;
    pthread_mutex_lock(&v->lock);
    v->is_stopping = true;
    pthread_cond_signal(&v->came);
    pthread_mutex_unlock(&v->lock);
    pthread_join(v->thread, NULL);
    fresh_free(v->coming);
    pthread_cond_destroy(&v->came);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

int64_t version_number(const struct version *v)
{
    return v->model.step;
}

const struct spec *version_spec(const struct version *v)
{
    return &v->model.spec;
}

struct intake *version_intake(const struct version *v)
{
    return v->intake;
}

const struct graph *version_graph(const struct version *v)
{
    return v->model.session.graph;
}

/* One that nobody has begun to compute with gives way to the next, which has all of it. */
err version_freshen(struct version *v, const char *prefix, int64_t step)
{
    struct bundle *bundle = NULL;
    struct fresh *next = NULL;
    int64_t found = -1;
    TRY(bundle_open(prefix, &bundle));
    err e = delta_read_step(bundle, &found);
    if (!e && found != step)
        e = fail(ERR_INPUT, "%s: is of step %lld, not of %lld", prefix, (long long)found,
                 (long long)step);
    if (!e) e = fresh_read(&v->model.session, bundle, v->newest, &next);
    bundle_close(bundle);
    if (e) return e;
    pthread_mutex_lock(&v->lock);
    struct fresh *before = v->coming;
    v->coming = next;
    pthread_mutex_unlock(&v->lock);
    v->newest = next;
    fresh_free(before);
    return OK;
}

void version_renew_lease(const struct version *v)
{
    if (v->model.lease && lease_renew(v->model.lease))
        log_line(LOG_WARNING, "rows of tables are read from it: %s", error_text());
}

/* ---- requests ---- */

static err open_answer(const struct version *v, int64_t rows, struct version_answer *ret)
{
    const struct graph *g = v->model.session.graph;
    *ret = (struct version_answer){0};
    for (int i = 0; i < g->head_count; i++) {
        ret->columns[i] = shape_count_from(&g->heads[i].loss.logits->shape, 1);
        ret->at[i] = calloc((size_t)(rows * ret->columns[i]), sizeof(float));
        if (ret->at[i]) continue;
        version_answer_free(ret);
        return fail(ERR_MEMORY, "no memory for an answer");
    }
    return OK;
}

void version_answer_free(struct version_answer *a)
{
    for (int i = 0; i < HEADS_MAX; i++) free(a->at[i]);
    *a = (struct version_answer){0};
}

err version_predict(struct version *v, const struct taken_rows *rows, struct version_answer *ret)
{
    struct waiting w = {.rows = rows, .answer = ret, .came_ns = clock_ns()};
    TRY(open_answer(v, rows->rows, ret));
    pthread_cond_init(&w.done, NULL);
    pthread_mutex_lock(&v->lock);
    *(v->last ? &v->last->next : &v->first) = &w;
    v->last = &w;
    pthread_cond_signal(&v->came);
    while (!w.is_done) pthread_cond_wait(&w.done, &v->lock);
    pthread_mutex_unlock(&v->lock);
    pthread_cond_destroy(&w.done);
    if (!w.e) return OK;
    version_answer_free(ret);
    return fail(w.e, "%s", w.text);
}
