/* feed.c - the way of a batch to where a plan's nodes read it: loaded at once, or sent ahead
 * through an inlet, in which features, labels and the draw lie one behind the other.
 *
 * Rows that are missing count as zeros: every op gets a whole batch, and nothing that lies behind
 * the caller's rows.
 */
#include <stdint.h>
#include <string.h>

#include "core/graph/packing.h"
#include "core/graph/plan.h"

/* Bytes of a number of rows */
static size_t features_bytes(const struct graph *graph, int64_t rows)
{
    return (size_t)(rows * shape_count_from(&graph->features.shape, 1)) * sizeof(float);
}

size_t plan_labels_bytes(const struct graph *graph, int64_t rows)
{
    const struct tensor *labels = &graph->loss.labels;
    return (size_t)(rows * shape_count_from(&labels->shape, 1)) * dtype_size(labels->dtype);
}

/* The plan's own features, behind the rows that came */
static void clear_rest(struct plan *plan, int64_t rows)
{
    const struct graph *graph = plan->graph;
    const int64_t row = shape_count_from(&graph->features.shape, 1);
    if (rows < graph->batch)
        plan->device->kernels->fill(plan->device, plan->features + rows * row, 0.0f,
                                    (graph->batch - rows) * row);
}

static void load_features(struct plan *plan, const void *features, int64_t rows)
{
    struct graph *graph = plan->graph;
    struct device *d = plan->device;
    const bool is_usable = (uintptr_t)features % PACKING_ALIGN == 0 && !d->is_separate;
    graph->features.value = (void *)features;
    if (rows == graph->batch && is_usable) return; /* used where they lie */

    d->kernels->upload(d, plan->features, features, features_bytes(graph, rows));
    clear_rest(plan, rows);
    graph->features.value = plan->features;
}

static void load_labels(struct plan *plan, const void *labels, int64_t rows)
{
    struct device *d = plan->device;
    struct tensor *tensor = &plan->graph->loss.labels;
    tensor->value = plan->labels ? plan->labels : (void *)labels;
    if (plan->labels)
        d->kernels->upload(d, plan->labels, labels, plan_labels_bytes(plan->graph, rows));
}

void plan_load(struct plan *plan, const struct feed *feed)
{
    load_features(plan, feed->features, feed->rows);
    load_labels(plan, feed->labels, feed->rows);
    plan->device->kernels->upload(plan->device, plan->draw, &feed->draw, sizeof feed->draw);
}

/* ---- ahead ---- */

/* Where each lies, and where all ends; aligned, as copies within the device like it */
struct offsets {
    size_t labels, draw, end;
};

static struct offsets offsets_of(const struct graph *graph)
{
    struct offsets at;
    at.labels = packing_aligned(features_bytes(graph, graph->batch));
    at.draw = at.labels + packing_aligned(plan_labels_bytes(graph, graph->batch));
    at.end = at.draw + sizeof(uint64_t);
    return at;
}

size_t plan_inlet_bytes(const struct graph *graph, const struct device *d)
{
    return d->kernels->overlap ? offsets_of(graph).end : 0;
}

err plan_open_inlet(struct plan *plan)
{
    struct device *d = plan->device;
    const size_t bytes = plan_inlet_bytes(plan->graph, d);
    if (bytes == 0) return OK;
    err e = d->kernels->overlap->inlet_open(d, bytes, &plan->inlet);
    return e ? fail_prefix(e, "%zu bytes for the next batch", bytes) : OK;
}

void plan_send(struct plan *plan, const struct feed *feed)
{
    struct device *d = plan->device;
    const struct graph *graph = plan->graph;
    const struct offsets at = offsets_of(graph);
    char *room = d->kernels->overlap->inlet_room(d, plan->inlet);
    if (!room) return;
    memcpy(room, feed->features, features_bytes(graph, feed->rows));
    memcpy(room + at.labels, feed->labels, plan_labels_bytes(graph, feed->rows));
    memcpy(room + at.draw, &feed->draw, sizeof feed->draw);
    d->kernels->overlap->inlet_send(d, plan->inlet, at.end);
}

void plan_take(struct plan *plan, int64_t rows)
{
    struct device *d = plan->device;
    struct graph *graph = plan->graph;
    const struct offsets at = offsets_of(graph);
    const struct inlet_part parts[] = {
        {0, features_bytes(graph, rows), plan->features},
        {at.labels, plan_labels_bytes(graph, rows), plan->labels},
        {at.draw, sizeof(uint64_t), plan->draw},
    };
    d->kernels->overlap->inlet_take(d, plan->inlet, parts, sizeof parts / sizeof *parts);
    clear_rest(plan, rows);
    graph->features.value = plan->features;
    graph->loss.labels.value = plan->labels;
}
