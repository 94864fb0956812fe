/* plan.c - placing a graph's buffers, and running steps in them.
 *
 * liveness.c computes when each is needed, packing.c where it goes; here the addresses are set and
 * the ops are called. A graph has one open plan at a time, since its tensors hold the addresses.
 */
#include "core/graph/plan.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/log.h"
#include "core/graph/liveness.h"
#include "kernels/note.h"

/* Bytes that prepare() will take, and those of step_numbers. */
static size_t workspace(const struct graph *graph, struct device *d)
{
    size_t bytes = plan_numbers_bytes(graph);
    for (int i = 0; i < graph->head_count; i++) {
        const struct loss_node *loss = &graph->heads[i].loss;
        if (loss->loss->prepared_bytes) bytes += loss->loss->prepared_bytes(loss, d);
    }
    for (int i = 0; i < graph->node_count; i++) {
        const struct node *node = &graph->nodes[i];
        if (node->op->prepared_bytes && !node->is_view) bytes += node->op->prepared_bytes(node, d);
    }
    return bytes;
}

/* Places the buffers, and returns sizes in bytes. */
static struct plan_size measure(struct liveness *l, const struct graph *graph, struct device *d)
{
    struct plan_size size = {.block = packing_place(l->buffer, l->count, l->order),
                             .workspace = workspace(graph, d)};
    for (int i = 0; i < l->count; i++) {
        const size_t bytes = l->buffer[i].bytes;
        switch (l->use[i].role) {
        case ROLE_GRADIENT:
            size.gradients += bytes;
            break;
        case ROLE_SAVED:
            size.saved += bytes;
            break;
        case ROLE_VALUE:
        case ROLE_LOSSES:
        case ROLE_INPUT:
            size.values += bytes;
            break;
        }
    }
    return size;
}

err plan_measure(struct graph *graph, struct device *device, struct plan_size *ret)
{
    struct liveness l;
    TRY(liveness_open(graph, &l));
    *ret = measure(&l, graph, device);
    liveness_close(&l);
    return OK;
}

/* Stores the address where ops read it. */
static void bind(struct plan *plan, const struct use *use, void *address)
{
    switch (use->role) {
    case ROLE_VALUE:
    case ROLE_SAVED:
        use->tensor->value = address;
        break;
    case ROLE_GRADIENT:
        use->tensor->gradient = address;
        break;
    case ROLE_LOSSES:
        plan->graph->heads[use->head].loss.losses = address;
        break;
    case ROLE_INPUT:
        plan->inputs[graph_input_of(plan->graph, use->tensor)] = address;
        break;
    }
}

/* A view shows its root's gradient. Values of views are set in every step, since the inputs may be
 * used where the batch has them. */
static void bind_view_gradients(struct graph *graph)
{
    for (int i = 0; i < graph->node_count; i++) {
        struct node *node = &graph->nodes[i];
        if (node->is_view) node->output.gradient = node->input[0]->gradient;
    }
}

/* The graph may have had another plan before; a gradient that is not needed must be NULL. */
static void clear_gradients(struct graph *graph)
{
    for (int i = 0; i < graph->node_count; i++) graph->nodes[i].output.gradient = NULL;
}

/* Inputs that only losses read are used in place, unless the device has memory of its own. */
static err place_inputs(struct plan *plan)
{
    const struct graph *graph = plan->graph;
    struct device *d = plan->device;
    for (int i = 0; i < graph->input_count && d->is_separate; i++) {
        const struct graph_input *input = &graph->inputs[i];
        const size_t bytes = tensor_bytes(input->tensor);
        const err e = input->of_nodes ? OK : d->kernels->allocate(d, bytes, &plan->inputs[i]);
        if (e) return fail_prefix(e, "%zu bytes for %s", bytes, input->tensor->name);
    }
    return OK;
}

/* Nodes and losses read them there, so that a replayed recording gets new draws. */
static err place_numbers(struct plan *plan)
{
    const struct graph *graph = plan->graph;
    void *memory;
    TRY(plan->device->kernels->allocate(plan->device, plan_numbers_bytes(graph), &memory));
    plan->numbers = memory;
    for (int i = 0; i < graph->node_count; i++) graph->nodes[i].draw = &plan->numbers->draw;
    for (int i = 0; i < graph->head_count; i++)
        graph->heads[i].loss.scale = &plan->numbers->scale[i];
    return OK;
}

/* Makes the one large allocation of a plan. */
static err place(struct plan *plan)
{
    struct liveness l;
    TRY(liveness_open(plan->graph, &l));
    plan->size = measure(&l, plan->graph, plan->device);
    const err e = plan->device->kernels->allocate(plan->device, plan->size.block, &plan->block);
    clear_gradients(plan->graph);
    for (int i = 0; i < l.count && !e; i++)
        bind(plan, &l.use[i], (char *)plan->block + l.buffer[i].offset);
    liveness_close(&l);
    if (e) return fail_prefix(e, "%zu bytes for the tensors of a step", plan->size.block);

    bind_view_gradients(plan->graph);
    return liveness_mark_adds(plan->graph);
}

static err prepare_heads(struct plan *plan)
{
    for (int i = 0; i < plan->graph->head_count; i++) {
        struct loss_node *loss = &plan->graph->heads[i].loss;
        const err e = loss->loss->prepare ? loss->loss->prepare(loss, plan->device) : OK;
        if (e) return fail_prefix(e, "loss (%s)", loss->loss->object.name);
    }
    return OK;
}

/* Logs what the device has noted so far, or while preparing a node */
static void tell(const struct plan *plan, const struct node *node)
{
    const char *note = device_note(plan->device);
    if (!*note) return;
    if (node)
        log_line(LOG_INFO, "%s \"%s\": %s", node->op->object.name, node->name, note);
    else
        log_line(LOG_INFO, "%s", note);
}

/* Views have nothing to compute. prepared_count says how many nodes plan_close has to release, also
 * if one fails. */
static err prepare_nodes(struct plan *plan)
{
    const struct graph *graph = plan->graph;
    tell(plan, NULL);
    for (; plan->prepared_count < graph->node_count; plan->prepared_count++) {
        struct node *node = &graph->nodes[plan->prepared_count];
        if (!node->op->prepare || node->is_view) continue;
        const err e = node->op->prepare(node, plan->device);
        if (e) return fail_prefix(e, "%s \"%s\"", node->op->object.name, node->name);
        tell(plan, node);
    }
    return OK;
}

/* For logits with `answers`: these are the labels of their loss */
static void bind_answers(struct graph *graph)
{
    for (int i = 0; i < graph->head_count; i++) {
        struct loss_node *loss = &graph->heads[i].loss;
        if (loss->given.name) loss->labels.value = loss->logits->answers->value;
    }
}

/* Names what is queued next, for a device that may report a failure only later. */
static void mark(const struct plan *plan, const char *what, const char *name)
{
    struct device *d = plan->device;
    if (d->kernels->mark) d->kernels->mark(d, what, name);
}

err plan_open(struct graph *graph, struct device *device, struct plan **ret)
{
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan) return fail(ERR_MEMORY, "no memory for a plan");
    plan->graph = graph;
    plan->device = device;
    plan->inputs = calloc((size_t)graph->input_count + 1, sizeof *plan->inputs);
    err e = plan->inputs ? place(plan) : fail(ERR_MEMORY, "no memory for a plan");
    if (!e) e = place_inputs(plan);
    if (!e) e = place_numbers(plan);
    if (!e) e = prepare_heads(plan);
    if (!e) e = prepare_nodes(plan);
    if (!e) bind_answers(graph);
    if (e) {
        plan_close(plan);
        return e;
    }
    *ret = plan;
    return OK;
}

void plan_close(struct plan *plan)
{
    if (!plan) return;
    mark(plan, NULL, NULL); /* names belong to the graph, which may be freed too */
    for (int i = 0; i < plan->prepared_count; i++) {
        struct node *node = &plan->graph->nodes[i];
        if (node->op->release && !node->is_view) node->op->release(node, plan->device);
    }
    for (int i = 0; i < plan->graph->head_count; i++) {
        struct loss_node *loss = &plan->graph->heads[i].loss;
        if (loss->loss->release) loss->loss->release(loss, plan->device);
    }
    if (plan->inlet) plan->device->kernels->async->inlet_close(plan->device, plan->inlet);
    if (plan->block) plan->device->kernels->release(plan->device, plan->block);
    for (int i = 0; i < plan->graph->input_count; i++)
        if (plan->inputs[i] && !plan->graph->inputs[i].of_nodes)
            plan->device->kernels->release(plan->device, plan->inputs[i]);
    if (plan->numbers) plan->device->kernels->release(plan->device, plan->numbers);
    free(plan->inputs);
    free(plan->parts);
    free(plan);
}

/* While nodes are timed, waits for a device that only queues work. A download waits, and leaves it
 * to synchronize() to report a failure. */
static void settle(const struct plan *plan)
{
    struct device *d = plan->device;
    uint64_t draw;
    if (plan->trace && d->is_separate)
        d->kernels->download(d, &draw, &plan->numbers->draw, sizeof draw);
}

/* The loss covers only the caller's rows; the gradient of the others is set to 0, as backward runs
 * over the whole batch. */
static void run_loss(const struct plan *plan, const struct loss_node *loss, int64_t rows)
{
    struct device *d = plan->device;
    const struct tensor *logits = loss->logits;
    loss_forward(loss, d, rows);
    if (!logits->gradient || rows == plan->graph->batch) return;
    const int64_t row = shape_count_from(&logits->shape, 1);
    d->kernels->fill(d, logits->gradient + rows * row, 0.0f, (plan->graph->batch - rows) * row);
}

/* For a head with the same logits as an earlier one: its gradient is added to theirs. */
static void run_second_loss(const struct plan *plan, struct loss_node *loss, int64_t rows)
{
    struct device *d = plan->device;
    const struct tensor *logits = loss->logits;
    loss->apart.value = logits->value;
    loss->logits = &loss->apart;
    loss_forward(loss, d, rows);
    loss->logits = logits;
    d->kernels->axpy(d, logits->gradient, 1.0f, loss->apart.gradient,
                     rows * shape_count_from(&logits->shape, 1));
}

static void run_head(const struct plan *plan, int head, int64_t rows)
{
    struct loss_node *loss = &plan->graph->heads[head].loss;
    const char *name = loss->loss->object.name;
    mark(plan, "loss", name);
    if (loss->apart.gradient)
        run_second_loss(plan, loss, rows);
    else
        run_loss(plan, loss, rows);
    settle(plan);
    mark(plan, "what follows loss", name);
}

static bool owns_params(const struct node *node)
{
    return node->param_count > 0 && !node->sharing.of;
}

int plan_compute(struct plan *plan, int first, plan_needed *needed, void *context)
{
    struct graph *graph = plan->graph;
    for (int i = first; i < graph->node_count; i++) {
        struct node *node = &graph->nodes[i];
        if (node->is_view) {
            node->output.value = node->input[0]->value;
            continue;
        }
        if (needed && owns_params(node) && !needed(context, node)) return i;
        const uint64_t begin_ns = trace_begin(plan->trace);
        mark(plan, "forward of node", node->name);
        node->op->forward(node, plan->device);
        settle(plan);
        trace_end(plan->trace, SPAN_FORWARD, i, begin_ns);
    }
    return graph->node_count;
}

void plan_judge(struct plan *plan, int64_t rows)
{
    const struct graph *graph = plan->graph;
    assert(rows >= 1 && rows <= graph->batch);
    const uint64_t begin_ns = trace_begin(plan->trace);
    for (int i = 0; i < graph->head_count; i++) run_head(plan, i, rows);
    trace_end(plan->trace, SPAN_LOSS, 0, begin_ns);
}

void plan_forward(struct plan *plan, const struct batch *batch, uint64_t draw)
{
    plan_load(plan, batch, draw);
    plan_compute(plan, 0, NULL, NULL);
    plan_judge(plan, batch->rows);
}

/* The gradient of l2 w^2 is 2 l2 w. */
static void add_regularizers(const struct node *node, struct device *d)
{
    for (int i = 0; i < node->param_count; i++) {
        const struct param *param = &node->param[i];
        const struct regularizer *r = &param->regularizer;
        if (r->l1 > 0 || r->l2 > 0)
            d->kernels->regularize(d, param->gradient, param->value, (float)r->l1,
                                   (float)(2 * r->l2), param_floats(param));
    }
}

static bool is_regularized(const struct node *node)
{
    bool found = false;
    for (int i = 0; i < node->param_count; i++)
        found |= node->param[i].regularizer.l1 > 0 || node->param[i].regularizer.l2 > 0;
    return found;
}

/* Whether a later node, which ran before in backward, has left gradients in the same params: the
 * owner, the first one, comes last. */
static bool is_written(const struct node *node)
{
    const struct node *owner = node->sharing.of ? node->sharing.of : node;
    return owner->sharing.last && owner->sharing.last != node;
}

void plan_backward(struct plan *plan, bool add, finished_with *finished, void *context)
{
    struct graph *graph = plan->graph;
    for (int i = graph->node_count - 1; i >= 0; i--) {
        struct node *node = &graph->nodes[i];
        if (node->is_view || !node->output.gradient) continue;
        const bool tells = owns_params(node) && !plan->device->is_separate && !is_regularized(node);
        node->add_params = add || is_written(node);
        node->finished.call = tells ? finished : NULL;
        node->finished.context = context;
        const uint64_t begin_ns = trace_begin(plan->trace);
        mark(plan, "backward of node", node->name);
        node->op->backward(node, plan->device); /* may leave output.gradient changed */
        if (owns_params(node)) add_regularizers(node, plan->device);
        settle(plan);
        trace_end(plan->trace, SPAN_BACKWARD, i, begin_ns);
        mark(plan, "what follows backward of node", node->name);
        if (finished && owns_params(node)) finished(context, node, param_floats(&node->param[0]));
    }
}

/* Divisor 0: all weights are 0, whose mean is 0 in TensorFlow. */
static double mean_of(const struct plan *plan, int head, double sum)
{
    const double divisor = loss_divisor(&plan->graph->heads[head].loss);
    return divisor > 0 ? sum / divisor : 0;
}

double plan_head_loss(struct plan *plan, int head, int64_t rows)
{
    const float *losses = plan->graph->heads[head].loss.losses;
    return mean_of(plan, head, kernels_sum(plan->device, losses, rows));
}

double plan_loss(struct plan *plan, int64_t rows, const struct summed *beside, double *ret_beside)
{
    const struct graph *graph = plan->graph;
    struct device *d = plan->device;
    struct summed of[HEADS_MAX + 1];
    double sums[HEADS_MAX + 1], sum = 0;
    for (int i = 0; i < graph->head_count; i++)
        of[i] = (struct summed){graph->heads[i].loss.losses, rows, SUM_PLAIN};
    if (beside) of[graph->head_count] = *beside;
    d->kernels->sums(d, of, graph->head_count + (beside != NULL), sums);
    for (int i = 0; i < graph->head_count; i++)
        sum += graph->heads[i].loss.factor * mean_of(plan, i, sums[i]);
    if (beside) *ret_beside = sums[graph->head_count];
    return sum;
}
