/* memory.c - whether a session fits into the memory of its device, asked before it is
 * taken.
 *
 * Devices that cannot say how much is free (a CPU) are not asked. What is counted is what a run
 * takes until its end: the evaluation's buffers too, which come with the first evaluation, and
 * where a single process binds memory of the device, the store's. Somebody else may take memory
 * meanwhile: then the same table comes of the allocation that fails.
 */
#include <stdio.h>

#include "core/train/session/session_inside.h"
#include "core/train/variables/store.h"

enum { SEARCH_MAX = 64, BATCH_TEXT_MAX = 96 };

struct need { /* bytes */
    size_t values, gradients, slots, activations, evaluation;
    size_t workspace; /* of nodes for their own use, and of stores for updates */
    size_t reserved;  /* for the driver and its libraries */
    size_t free;      /* of the device */
};

static size_t total(const struct need *n)
{
    return n->values + n->gradients + n->slots + n->activations + n->evaluation + n->workspace +
           n->reserved;
}

/* Bytes of the partitioned variables, or of all variables, as separate buffers. */
static size_t variables_bytes(const struct session *s, bool only_partitioned)
{
    size_t bytes = 0;
    for (int i = 0; i < s->graph->param_count; i++)
        if (!only_partitioned || !layout_is_whole(s->layout, i, NULL))
            bytes += (size_t)param_floats(s->graph->params[i]) * sizeof(float);
    return bytes;
}

/* Bytes of the blocks of all ps: their variables and the gaps between them. */
static size_t blocks_bytes(const struct session *s)
{
    size_t bytes = 0;
    for (int ps = 0; ps < s->layout->ps_count; ps++)
        bytes += (size_t)s->layout->block_floats[ps] * sizeof(float);
    return bytes;
}

/* Scratch memory of the stores that update the blocks where they are bound. */
static size_t scratch_bytes(const struct session *s)
{
    size_t bytes = 0;
    for (int ps = 0; ps < s->layout->ps_count; ps++)
        bytes += store_scratch_bytes(s->options.device, s->layout->block_floats[ps]);
    return bytes;
}

/* What a plan takes, in bytes. */
struct taken {
    size_t buffers, workspace;
};

/* Measures a graph that is made for this purpose and thrown away. */
static err measure(const struct session *s, int64_t batch, bool training, struct taken *ret)
{
    struct arena arena = {0};
    struct graph *g;
    struct plan_size size;
    err e = session_make_graph(s, batch, training, &arena, &g);
    if (!e) e = plan_measure(g, s->options.device, &size);
    const size_t inlet = !e && training ? plan_inlet_bytes(g, s->options.device) : 0;
    const size_t beside = !e ? plan_inputs_bytes(g, s->options.device) : 0;
    if (!e) *ret = (struct taken){size.block + beside + inlet, size.workspace};
    arena_free(&arena);
    return e;
}

/* Bytes for a step with batches of this many rows; where nothing is trained, for an evaluation of
 * them */
static err measure_step(const struct session *s, int64_t batch, struct taken *ret)
{
    const int towers =
        s->accumulates ? (int)s->options.spec->train.accumulate : s->options.towers.count;
    return measure(s, towers ? batch / towers : batch, !s->options.only_evaluates, ret);
}

/* Bytes for the evaluation that a session which trains does beside such steps */
static err measure_evaluation(const struct session *s, int64_t batch, struct taken *ret)
{
    *ret = (struct taken){0};
    if (s->options.only_evaluates || !s->data.evaluation) return OK;
    return measure(s, session_evaluation_batch(s, batch), false, ret);
}

/* A single process has the store's values, one copy of them for the worker, and the slots. */
static err count(const struct session *s, struct need *ret)
{
    const struct session_options *o = &s->options;
    const bool trains = !o->only_evaluates;
    const size_t blocks = blocks_bytes(s), parts = variables_bytes(s, true);
    struct need n = {.values = blocks + parts, .reserved = o->device->kernels->reserved};
    if (trains) n.gradients = blocks + parts;
    if (o->number != NUMBER_FLOAT32) /* residuals, and gradients as they are sent */
        n.gradients += blocks + blocks / sizeof(float) * number_bytes(o->number);
    if (o->value_number != NUMBER_FLOAT32) /* values as they arrive */
        n.values += blocks / sizeof(float) * number_bytes(o->value_number);
    if (s->accumulates) n.gradients += variables_bytes(s, false);
    if (session_keeps_sums(s)) n.gradients += variables_bytes(s, false);
    if (trains && o->binds_device_memory) {
        n.values += blocks;
        n.slots = blocks * (size_t)o->spec->optimizers.slot_count;
        n.workspace = scratch_bytes(s);
    }
    struct taken step, evaluation;
    TRY(measure_step(s, s->graph->batch, &step));
    TRY(measure_evaluation(s, s->graph->batch, &evaluation));
    n.activations = step.buffers;
    n.evaluation = evaluation.buffers;
    n.workspace += step.workspace + evaluation.workspace;
    *ret = n;
    return OK;
}

/* The bytes that grow with the batch. SIZE_MAX: they could not be counted. */
static size_t batch_bytes(const struct session *s, int64_t batch)
{
    struct taken step, evaluation;
    if (measure_step(s, batch, &step) || measure_evaluation(s, batch, &evaluation)) return SIZE_MAX;
    return step.buffers + step.workspace + evaluation.buffers + evaluation.workspace;
}

/* The largest batch for which everything fits; 0: none. */
static int64_t find_batch(const struct session *s, const struct need *n)
{
    int64_t fits = 0, too_large = s->graph->batch; /* fits: known to, or 0 */
    const size_t now = batch_bytes(s, too_large);
    if (now == SIZE_MAX) return 0;
    const size_t fixed = total(n) - now;
    for (int i = 0; i < SEARCH_MAX && too_large - fits > 1; i++) {
        const int64_t middle = fits + (too_large - fits) / 2;
        const size_t bytes = batch_bytes(s, middle);
        if (bytes != SIZE_MAX && fixed + bytes <= n->free)
            fits = middle;
        else
            too_large = middle;
    }
    return fits;
}

static double megabytes(size_t bytes)
{
    return (double)bytes / 1e6;
}

/* Which key of the spec to change for a smaller batch. */
static const char *advice(const struct session *s, const struct need *n, char text[BATCH_TEXT_MAX])
{
    const char *key = s->options.only_evaluates ? "data.eval_batch_size" : "data.batch_size";
    const int64_t fits = find_batch(s, n);
    if (fits > 0)
        snprintf(text, BATCH_TEXT_MAX, "%s %lld would fit", key, (long long)fits);
    else if (total(n) - n->evaluation <= n->free)
        snprintf(text, BATCH_TEXT_MAX, "a smaller data.eval_batch_size may fit");
    else
        snprintf(text, BATCH_TEXT_MAX, "no %s would fit", key);
    return text;
}

static err fail_table(const struct session *s, const struct need *n, const char *then)
{
    return fail(ERR_MEMORY,
                "the device has not enough memory for batches of %lld examples\n"
                "    values       %12.3f MB\n"
                "    gradients    %12.3f MB\n"
                "    slots        %12.3f MB\n"
                "    activations  %12.3f MB\n"
                "    evaluation   %12.3f MB\n"
                "    workspace    %12.3f MB\n"
                "    reserved     %12.3f MB\n"
                "    free         %12.3f MB\n"
                "%s",
                (long long)s->graph->batch, megabytes(n->values), megabytes(n->gradients),
                megabytes(n->slots), megabytes(n->activations), megabytes(n->evaluation),
                megabytes(n->workspace), megabytes(n->reserved), megabytes(n->free), then);
}

err session_memory(const struct session *s, size_t *ret)
{
    struct need n;
    TRY(count(s, &n));
    *ret = total(&n);
    return OK;
}

err session_check_memory(struct session *s)
{
    struct device *d = s->options.device;
    char text[BATCH_TEXT_MAX];
    s->free_bytes = d->kernels->available(d);
    if (s->free_bytes == SIZE_MAX) return OK;
    struct need n;
    TRY(count(s, &n));
    n.free = s->free_bytes;
    if (total(&n) <= n.free) return OK;
    return fail_table(s, &n, advice(s, &n, text));
}

/* An allocation may fail all the same: tasks that share a GPU may each have found room, memory may
 * be fragmented, or it is the host's memory that is short, which a batch on its way takes as well.
 */
err session_open_plan(struct session *s)
{
    err e = plan_open(s->graph, s->options.device, &s->replica.plan);
    if (!e) e = plan_open_inlet(s->replica.plan);
    if (e != ERR_MEMORY || s->free_bytes == SIZE_MAX) return e;
    struct need n;
    char then[ERROR_TEXT_MAX / 2];
    snprintf(then, sizeof then, "%.256s; a smaller data.batch_size may fit", error_text());
    TRY(count(s, &n));
    n.free = s->free_bytes;
    return fail_table(s, &n, then);
}
