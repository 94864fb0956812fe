/* ascent.c - see ascent.h.
 *
 * Blocks lie as gradients leave, the last node's variables first: pieces are cut from their ends.
 */
#include "core/train/session/ascent.h"

/* While pieces are made: from where on each block is already in pieces, and from where on some node
 * reads it */
struct cutting {
    int64_t *cut, *read; /* [ps_count] */
};

static bool reads_values(const struct node *node)
{
    return node->param_count > 0 && !node->sharing.of;
}

static void read_slices(const struct layout *layout, const struct graph *graph,
                        const struct node *node, struct cutting *c)
{
    const int first = graph_first_param(graph, node);
    const int end = layout_first_slice(layout, first + node->param_count);
    for (int i = layout_first_slice(layout, first); i < end; i++) {
        const struct slice *slice = &layout->slices[i];
        if (slice->offset < c->read[slice->ps]) c->read[slice->ps] = slice->offset;
    }
}

static int64_t uncut(const struct layout *layout, const struct cutting *c)
{
    int64_t floats = 0;
    for (int ps = 0; ps < layout->ps_count; ps++) floats += c->cut[ps] - c->read[ps];
    return floats;
}

static void cut(struct ascent *a, const struct layout *layout, struct cutting *c)
{
    for (int ps = 0; ps < layout->ps_count; ps++) {
        if (c->cut[ps] == c->read[ps]) continue;
        a->pieces[a->piece_count++] = (struct rising){ps, {c->read[ps], c->cut[ps]}, a->mark_count};
        c->cut[ps] = c->read[ps];
    }
    a->mark_count++;
}

static void plan(struct ascent *a, const struct layout *layout, const struct graph *graph,
                 struct cutting *c)
{
    for (int i = 0; i < graph->node_count; i++) {
        const struct node *node = &graph->nodes[i];
        if (!reads_values(node)) continue;
        read_slices(layout, graph, node, c);
        a->of_node[i] = uncut(layout, c) ? a->mark_count : a->mark_count - 1;
        if (uncut(layout, c) >= MIRROR_BUCKET_FLOATS) cut(a, layout, c);
    }
    for (int ps = 0; ps < layout->ps_count; ps++) c->read[ps] = 0;
    if (uncut(layout, c)) cut(a, layout, c);
}

err ascent_open(const struct mirror *mirror, const struct layout *layout, const struct graph *graph,
                struct arena *arena, struct ascent *ret)
{
    struct device *d = mirror->device;
    const size_t ps_count = (size_t)layout->ps_count, nodes = (size_t)graph->node_count;
    struct ascent a = {
        .device = d,
        .pieces = arena_array(arena, (nodes + 1) * ps_count, sizeof *a.pieces),
        .of_node = arena_array(arena, nodes, sizeof *a.of_node),
        .marks = arena_array(arena, nodes + 1, sizeof(struct mark *)),
    };
    struct cutting c = {arena_array(arena, ps_count, sizeof *c.cut),
                        arena_array(arena, ps_count, sizeof *c.read)};
    *ret = (struct ascent){0};
    if (!d->kernels->async) return OK;
    for (int ps = 0; ps < layout->ps_count; ps++) c.cut[ps] = c.read[ps] = layout->block_floats[ps];
    plan(&a, layout, graph, &c);
    *ret = a;
    for (int i = 0; i < a.mark_count; i++) TRY(d->kernels->async->mark_open(d, &a.marks[i]));
    return OK;
}

void ascent_close(struct ascent *a)
{
    for (int i = 0; a->device && i < a->mark_count; i++)
        a->device->kernels->async->mark_close(a->device, a->marks[i]);
    *a = (struct ascent){0};
}

bool ascent_begin(const struct ascent *a, const struct mirror *mirror)
{
    struct device *d = a->device;
    if (!d || !mirror_lets_rise(mirror)) return false;
    for (int i = 0; i < a->piece_count; i++) {
        const struct rising *piece = &a->pieces[i];
        mirror_rise(mirror, piece->ps, piece->range);
        if (i + 1 == a->piece_count || piece[1].mark != piece->mark)
            d->kernels->async->mark_set(d, a->marks[piece->mark], MARK_UPLOADS);
    }
    return true;
}

void ascent_follow(const struct ascent *a, int node)
{
    const int mark = a->of_node[node];
    if (mark >= 0) a->device->kernels->async->mark_follow(a->device, a->marks[mark]);
}
