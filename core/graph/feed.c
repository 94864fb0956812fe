/* feed.c - moving a batch to where a plan's nodes read it: loaded at once, or sent ahead through an
 * inlet, in which the inputs and then the step_numbers lie one behind the other.
 *
 * Missing rows are zeros, and have no ids: every op gets a whole batch, and never reads beyond the
 * caller's rows.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "core/graph/packing.h"
#include "core/graph/plan.h"

/* Bytes of this many rows */
static size_t bytes_of(const struct graph_input *input, int64_t rows)
{
    const struct tensor *tensor = input->tensor;
    if (input->is_whole) return tensor_bytes(tensor);
    return (size_t)(rows * shape_count_from(&tensor->shape, 1)) * dtype_size(tensor->dtype);
}

static const void *column_of(const struct graph_input *input, const struct batch *batch)
{
    const struct column *column = &batch->columns[input->column];
    assert(input->column < batch->column_count && column->dtype == input->tensor->dtype);
    return column->at;
}

size_t plan_inputs_bytes(const struct graph *graph, const struct device *d)
{
    size_t bytes = 0;
    for (int i = 0; i < graph->input_count && d->is_separate; i++)
        if (!graph->inputs[i].of_nodes) bytes += tensor_bytes(graph->inputs[i].tensor);
    return bytes;
}

/* A float with the bits of one half of the id -1, "no id" */
static float no_ids(void)
{
    const int32_t bits = -1;
    float ret;
    memcpy(&ret, &bits, sizeof ret);
    return ret;
}

/* Fills the inputs of nodes behind the rows that came */
static void clear_rest(struct plan *plan, int64_t rows)
{
    const struct graph *graph = plan->graph;
    for (int i = 0; i < graph->input_count && rows < graph->batch; i++) {
        const size_t came = bytes_of(&graph->inputs[i], rows);
        const size_t rest = bytes_of(&graph->inputs[i], graph->batch - rows);
        const bool is_ids = graph->inputs[i].tensor->dtype == INT64;
        if (graph->inputs[i].of_nodes && !graph->inputs[i].is_whole)
            plan->device->kernels->fill(plan->device, (float *)((char *)plan->inputs[i] + came),
                                        is_ids ? no_ids() : 0.0f, (int64_t)(rest / sizeof(float)));
    }
}

static void load_input(struct plan *plan, int i, const struct batch *batch)
{
    const struct graph_input *input = &plan->graph->inputs[i];
    struct device *d = plan->device;
    const void *at = column_of(input, batch);
    const bool is_usable =
        batch->rows == plan->graph->batch && !d->is_separate && (uintptr_t)at % PACKING_ALIGN == 0;
    input->tensor->value = (void *)at;
    if (is_usable || !plan->inputs[i]) return; /* used where it lies */

    d->kernels->upload(d, plan->inputs[i], at, bytes_of(input, batch->rows));
    input->tensor->value = plan->inputs[i];
}

/* State that nodes carry over is advanced, or restarted if the batch does not follow the last one
 * in the same epoch. */
static void advance(struct plan *plan, const struct batch *to)
{
    const struct batch at = plan->carried_to;
    const bool is_fresh = at.rows == 0 || to->index != at.index + 1 || to->epoch != at.epoch;
    plan->carried_to = *to;
    if (at.rows > 0 && to->index == at.index && to->epoch == at.epoch) return; /* again */
    for (int i = 0; i < plan->graph->node_count; i++) {
        const struct node *node = &plan->graph->nodes[i];
        if (node->carries) node->op->advance(node, plan->device, is_fresh);
    }
}

size_t plan_numbers_bytes(const struct graph *graph)
{
    return offsetof(struct step_numbers, scale) + (size_t)graph->head_count * sizeof(float);
}

static const void *column_for(const struct graph *graph, const struct tensor *tensor,
                              const struct batch *batch)
{
    return column_of(&graph->inputs[graph_input_of(graph, tensor)], batch);
}

/* Counts labels and weights while the batch is in host memory. */
static struct step_numbers count(const struct graph *graph, const struct batch *batch,
                                 uint64_t draw, struct loss_counts *ret_counts)
{
    struct step_numbers ret = {.draw = draw};
    for (int i = 0; i < graph->head_count; i++) {
        const struct loss_node *loss = &graph->heads[i].loss;
        const void *labels = column_for(graph, loss_given(loss), batch);
        const float *weights =
            loss_is_weighted(loss) ? column_for(graph, &loss->weights, batch) : NULL;
        ret_counts[i] = loss_count(loss, labels, weights, batch->rows);
        ret.scale[i] = loss_scale(loss, &ret_counts[i]);
    }
    return ret;
}

static void tell_counts(struct graph *graph, const struct loss_counts *counts)
{
    for (int i = 0; i < graph->head_count; i++) graph->heads[i].loss.counts = counts[i];
}

void plan_load(struct plan *plan, const struct batch *batch, uint64_t draw)
{
    struct loss_counts counts[HEADS_MAX];
    const struct step_numbers numbers = count(plan->graph, batch, draw, counts);
    const size_t bytes = plan_numbers_bytes(plan->graph);
    advance(plan, batch);
    tell_counts(plan->graph, counts);
    for (int i = 0; i < plan->graph->input_count; i++) load_input(plan, i, batch);
    clear_rest(plan, batch->rows);
    plan->device->kernels->upload(plan->device, plan->numbers, &numbers, bytes);
    plan->loaded = *batch;
    plan->loaded_draw = draw;
}

void plan_load_again(struct plan *plan)
{
    const struct batch batch = plan->loaded;
    plan_load(plan, &batch, plan->loaded_draw);
}

/* ---- ahead ---- */

/* In the inlet, each input begins at a multiple of PACKING_ALIGN, which copies within the device
 * need; then the numbers. */
static size_t inputs_bytes(const struct graph *graph)
{
    size_t bytes = 0;
    for (int i = 0; i < graph->input_count; i++)
        bytes += packing_aligned(tensor_bytes(graph->inputs[i].tensor));
    return bytes;
}

size_t plan_inlet_bytes(const struct graph *graph, const struct device *d)
{
    return d->kernels->async ? inputs_bytes(graph) + plan_numbers_bytes(graph) : 0;
}

err plan_open_inlet(struct plan *plan)
{
    struct device *d = plan->device;
    const size_t bytes = plan_inlet_bytes(plan->graph, d);
    if (bytes == 0) return OK;
    plan->parts = calloc((size_t)plan->graph->input_count + 1, sizeof *plan->parts);
    if (!plan->parts) return fail(ERR_MEMORY, "no memory for the next batch");
    err e = d->kernels->async->inlet_open(d, bytes, &plan->inlet);
    return e ? fail_prefix(e, "%zu bytes for the next batch", bytes) : OK;
}

void plan_send(struct plan *plan, const struct batch *batch, uint64_t draw)
{
    struct device *d = plan->device;
    const struct graph *graph = plan->graph;
    char *room = d->kernels->async->inlet_room(d, plan->inlet);
    const size_t numbers_bytes = plan_numbers_bytes(graph);
    size_t at = 0;
    if (!room) return;
    for (int i = 0; i < graph->input_count; i++) {
        memcpy(room + at, column_of(&graph->inputs[i], batch),
               bytes_of(&graph->inputs[i], batch->rows));
        at += packing_aligned(tensor_bytes(graph->inputs[i].tensor));
    }
    const struct step_numbers numbers = count(graph, batch, draw, plan->sent_counts);
    memcpy(room + at, &numbers, numbers_bytes);
    plan->sent = *batch;
    d->kernels->async->inlet_send(d, plan->inlet, at + numbers_bytes);
}

void plan_take(struct plan *plan, int64_t rows)
{
    struct device *d = plan->device;
    struct graph *graph = plan->graph;
    struct inlet_part *parts = plan->parts;
    size_t at = 0;
    int count = 0;
    advance(plan, &plan->sent);
    tell_counts(graph, plan->sent_counts);
    for (; count < graph->input_count; count++) {
        const struct graph_input *input = &graph->inputs[count];
        parts[count] = (struct inlet_part){at, bytes_of(input, rows), plan->inputs[count]};
        input->tensor->value = plan->inputs[count];
        at += packing_aligned(tensor_bytes(input->tensor));
    }
    parts[count++] = (struct inlet_part){at, plan_numbers_bytes(graph), plan->numbers};
    d->kernels->async->inlet_take(d, plan->inlet, parts, count);
    clear_rest(plan, rows);
}
