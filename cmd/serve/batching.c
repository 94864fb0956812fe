/* batching.c - computes waiting requests in batches: from the front of the queue, up to max_batch
 * rows, after --batch_wait_ms or at once; in the version's thread, or, for few rows, in the thread
 * of the first request. */
#include <stdlib.h>
#include <string.h>

#include "cmd/serve/version_inside.h"
#include "core/base/clock.h"
#include "kernels/cpu_threads.h"

/* A waiting request */
struct waiting {
    struct waiting *next;
    const struct taken_rows *rows;
    struct version_answer *answer;
    int64_t taken; /* rows that are computed, or are being */
    uint64_t came_ns;
    err e;
    char text[ERROR_TEXT_MAX];
    bool is_done, has_turn;
    pthread_cond_t told; /* signals is_done or has_turn */
};

/* Whether a request is partly computed: new values wait for its end, so that all its rows use the
 * same ones, and no other request joins its batches. */
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

/* Switches to new values, if any. Fails if the device does, which then could not compute either. */
static err change_over(struct version *v)
{
    struct fresh *coming = take_coming(v);
    if (!coming) return OK;
    const err e = session_freshen(&v->model.session, coming);
    fresh_free(v->fresh);
    v->fresh = coming;
    return e;
}

/* A batch: requests from the front of the queue, as far as there is room */
struct together {
    int64_t rows;
    struct waiting *last; /* of the batch */
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

/* The rows of one request in a batch, from row `at` of the batch on */
struct batch_share {
    struct waiting *of;
    int64_t at, rows;
};

static struct batch_share share_of(struct waiting *w, int64_t at, const struct together *t)
{
    const int64_t left = w->rows->rows - w->taken;
    return (struct batch_share){w, at, left < t->rows - at ? left : t->rows - at};
}

static void copy_in(struct version *v, const struct batch_share *s)
{
    for (int i = 0; i < v->asked.column_count; i++) {
        const size_t bytes = column_row_bytes(&v->together[i]);
        const struct column *from = &s->of->rows->columns[i];
        if (!v->together[i].at || !from->at) continue;
        memcpy((char *)v->together[i].at + bytes * (size_t)s->at,
               (const char *)from->at + bytes * (size_t)s->of->taken, bytes * (size_t)s->rows);
    }
}

static void copy_out(const struct batch_share *s, const struct predictions *p, int heads)
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
    pthread_cond_signal(&w->told);
    pthread_mutex_unlock(&v->lock);
}

/* Removes it from the front of the queue, which only the computing thread touches. */
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
    for (struct waiting *w = v->first; w; w = w == t->last ? NULL : w->next) {
        const struct batch_share s = share_of(w, at, t);
        tally_note_wait(v->options.tally, began_ns - w->came_ns);
        copy_in(v, &s);
        at += s.rows;
    }
    err e = change_over(v);
    if (!e) e = session_predict_rows(&v->model.session, v->together, t->rows, &p);
    tally_note_batch(v->options.tally, t->rows, clock_ns() - began_ns);
    for (at = 0; at < t->rows;) {
        struct waiting *w = v->first;
        const struct batch_share s = share_of(w, at, t);
        if (!e) copy_out(&s, &p, heads);
        w->taken += s.rows;
        at += s.rows;
        if (!e && w->taken < w->rows->rows) break; /* its rest comes first in the next batch */
        take_off(v, w);
        finish(v, w, e);
    }
}

/* ---- turns ---- */

/* Lets the version's thread, or the first request's, compute. Locked, while nobody computes */
static void give_turn(struct version *v)
{
    struct waiting *w = v->first;
    if (!w) return;
    if (v->options.batch_wait_ms || gather(v).rows > v->alone_rows) {
        pthread_cond_signal(&v->came);
        return;
    }
    v->is_computing = w->has_turn = true;
    pthread_cond_signal(&w->told);
}

/* Locked */
static void end_turn(struct version *v)
{
    v->is_computing = false;
    if (v->is_stopping) pthread_cond_signal(&v->came); /* its thread waits for that */
    give_turn(v);
}

/* Locked, in the thread of a waiting request. If too many rows have come since it was given the
 * turn, leaves them to the version's thread. */
static void wait_for_turn(struct version *v, struct waiting *w)
{
    while (!w->has_turn && !w->is_done) pthread_cond_wait(&w->told, &v->lock);
    if (!w->has_turn) return;
    w->has_turn = false;
    const struct together t = gather(v);
    if (t.rows <= v->alone_rows) {
        pthread_mutex_unlock(&v->lock);
        const uint64_t before = cpu_enter();
        compute(v, &t);
        cpu_leave(before);
        pthread_mutex_lock(&v->lock);
    }
    end_turn(v);
}

/* Waits for a batch, and marks it as computing; rows 0: the version is stopping. */
static struct together wait_for_rows(struct version *v)
{
    struct timespec until = {0};
    struct together t;
    pthread_mutex_lock(&v->lock);
    while (v->is_computing || (!v->first && !v->is_stopping)) pthread_cond_wait(&v->came, &v->lock);
    t = gather(v);
    if (v->options.batch_wait_ms && t.rows) until = clock_in_ms(v->options.batch_wait_ms);
    while (v->options.batch_wait_ms && t.rows && t.rows < v->options.max_batch && !v->is_stopping) {
        if (pthread_cond_clockwait(&v->came, &v->lock, CLOCK_MONOTONIC, &until)) break;
        t = gather(v);
    }
    if (t.rows) t = gather(v);
    v->is_computing = t.rows > 0;
    pthread_mutex_unlock(&v->lock);
    return t;
}

void version_compute(struct version *v)
{
    for (struct together t = wait_for_rows(v); t.rows; t = wait_for_rows(v)) {
        compute(v, &t);
        pthread_mutex_lock(&v->lock);
        end_turn(v);
        pthread_mutex_unlock(&v->lock);
    }
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
    pthread_cond_init(&w.told, NULL);
    pthread_mutex_lock(&v->lock);
    *(v->last ? &v->last->next : &v->first) = &w;
    v->last = &w;
    if (!v->is_computing) give_turn(v);
    while (!w.is_done) wait_for_turn(v, &w);
    pthread_mutex_unlock(&v->lock);
    pthread_cond_destroy(&w.told);
    if (!w.e) return OK;
    version_answer_free(ret);
    return fail(w.e, "%s", w.text);
}
