/* version.c - see version.h. */
#include "cmd/serve/version.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/export/program.h"
#include "cmd/serve/version_inside.h"
#include "core/base/log.h"
#include "core/base/threads/thread.h"
#include "core/data/storage.h"
#include "core/train/checkpoint/delta.h"
#include "core/train/session/fresh.h"
#include "kernels/cpu_threads.h"

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

/* Computes rows of zeros, so that the first requests do not pay for one-time setup. */
static err warm_up(struct version *v)
{
    const int64_t most = v->options.max_batch;
    struct predictions unused;
    bool is_alone = device_is_cpu(&v->model.device);
    for (int64_t at = 1, rows = 0; rows < most; at *= 2) {
        rows = at < most ? at : most;
        const uint64_t shared_out = cpu_shared_out();
        TRY(session_predict_rows(&v->model.session, v->together, rows, &unused));
        is_alone &= cpu_shared_out() == shared_out;
        if (is_alone) v->alone_rows = rows;
    }
    return OK;
}

/* Ops that compare the rows of a batch cannot be served: which rows share a batch is chance. */
static err refuse_comparison(struct spec *spec)
{
    const struct node_spec *nodes = spec->model.nodes.at;
    for (int i = 0; i < spec->model.nodes.count; i++)
        if (program_compares_rows(&nodes[i]))
            return fail(ERR_INPUT,
                        "%s: %s (%s) compares the rows of a batch with each other, and says "
                        "nothing of one alone: dtrain export --outputs=NODE writes either of its "
                        "inputs, and dtrain predict --outputs=NODE what they say of rows",
                        spec->source, node_place(nodes, i, &spec->arena),
                        nodes[i].op.kind->object->name);
    return OK;
}

static err open_model(struct version *v)
{
    struct restored_model *m = &v->model;
    TRY(restored_model_load_spec(m, &v->flags, v->options.spec));
    TRY(refuse_comparison(&m->spec));
    if (!m->spec.data.eval.format.kind) restored_model_use_train(m);
    m->asks = describe;
    m->asks_context = v;
    TRY(restored_model_open(m, true));
    const err e = intake_choose(v->intake, &m->session);
    if (e) return fail_prefix(e, "%s", m->spec.source);
    TRY(make_room(v));
    return warm_up(v);
}

/* ---- its thread ---- */

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
    if (!e) version_compute(v);
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

const char *version_prefix(const struct version *v)
{
    return v->prefix;
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

/* Values that no request has used yet are replaced by the next, which include them. */
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

void version_renew_lease(struct version *v)
{
    if (!v->model.lease) return;
    v->lost_leases = lease_renew(v->model.lease) ? v->lost_leases + 1 : 0;
    if (v->lost_leases && log_again(v->lost_leases))
        log_line(LOG_WARNING,
                 "%s; version %lld stays in service from its open files until the folder has a "
                 "newer checkpoint, which a server that is started now needs (looked %llu times)",
                 error_text(), (long long)version_number(v), (unsigned long long)v->lost_leases);
}
