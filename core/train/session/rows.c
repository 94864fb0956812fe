/* rows.c - see rows.h. */
#include "core/train/session/rows.h"

#include <stdio.h>
#include <string.h>

#include "core/train/session/pinned.h"

bool rows_are_used(const struct rows *r)
{
    return r->device != NULL;
}

/* ---- which tables lie where ---- */

static int count_on(const struct layout *layout, int ps)
{
    int count = 0;
    for (int i = layout->slice_count; i < layout->all_count; i++)
        count += layout->slices[i].ps == ps;
    return count;
}

/* The column of ids that names the table's rows, by its place among the graph's inputs */
static int column_of(const struct graph *graph, const struct param *param)
{
    return graph_input_of(graph, param->ids);
}

static err open_link(struct rows *r, const struct layout *layout, int ps, struct arena *arena)
{
    struct rows_link *link = &r->links[ps];
    const int count = count_on(layout, ps);
    row_area_open(count, arena, &link->area);
    link->parts = arena_array(arena, (size_t)count + 1, sizeof *link->parts);
    link->done = arena_array(arena, (size_t)count + 1, sizeof *link->done);
    link->patches = arena_array(arena, 5 * (size_t)count + 1, sizeof *link->patches);
    for (int i = layout->slice_count; i < layout->all_count; i++) {
        const struct slice *slice = &layout->slices[i];
        if (slice->ps != ps) continue;
        const struct param *param = r->graph->params[slice->variable];
        link->parts[link->area.count] = (struct rows_part){
            slice->variable, column_of(r->graph, param), slice, param->is_frozen};
        link->has_frozen |= link->parts[link->area.count].is_frozen;
        TRY(row_area_add(&link->area,
                         &(struct area_slice){slice->start, slice->length, slice->shape.dim[1],
                                              param->held, growth_counts(param->growth)}));
    }
    area_counts_open(&link->area, arena, &link->counts);
    return OK;
}

/* All tables that one column names are cut alike (layout.h). */
static void order_column(struct rows *r, const struct slice *slice)
{
    const struct param *param = r->graph->params[slice->variable];
    r->order[column_of(r->graph, param)] =
        (struct lookup_order){param->ids->buckets == ANY_ID, slice->shape.dim[0], slice->mod};
}

err rows_open(const struct graph *graph, const struct layout *layout, struct device *device,
              const struct row_source *from, struct arena *arena, struct rows *ret)
{
    *ret = (struct rows){.device = layout->all_count > layout->slice_count ? device : NULL,
                         .graph = graph,
                         .from = from,
                         .ps_count = layout->ps_count};
    if (!ret->device) return OK;
    ret->links = arena_array(arena, (size_t)layout->ps_count, sizeof *ret->links);
    ret->bytes = arena_array(arena, (size_t)layout->ps_count, sizeof *ret->bytes);
    ret->order = arena_array(arena, (size_t)graph->input_count, sizeof *ret->order);
    for (int ps = 0; ps < layout->ps_count; ps++) TRY(open_link(ret, layout, ps, arena));
    for (int i = layout->slice_count; i < layout->all_count; i++)
        order_column(ret, &layout->slices[i]);
    return OK;
}

size_t rows_window_bytes(const struct rows *r, int ps)
{
    return rows_are_used(r) ? r->links[ps].area.bytes : 0;
}

void rows_bind(struct rows *r, int ps, void *window, bool is_apart)
{
    if (!rows_are_used(r)) return;
    struct rows_link *link = &r->links[ps];
    char what[PINNED_WHAT_MAX];
    snprintf(what, sizeof what, "rows of ps/%d", ps);
    pinned_close(r->device, link->window, link->is_pinned);
    link->window = window;
    link->is_pinned = pinned_open(r->device, window, link->area.bytes, true, what);
    link->is_apart = is_apart && !r->device->is_separate;
    link->patch_count = 0;
    link->was_brought = false;
    link->came = 0;
}

void rows_close(struct rows *r)
{
    for (int ps = 0; r->links && ps < r->ps_count; ps++) rows_bind(r, ps, NULL, false);
}

size_t rows_push_bytes(const struct rows_link *link)
{
    return link->was_brought ? link->without_ids : link->front;
}

void rows_copy_front(const struct rows *r, int ps, void *ret)
{
    const struct rows_link *link = &r->links[ps];
    memcpy(ret, link->window, link->front);
    for (int i = 0; i < link->patch_count; i++) {
        const struct area_patch *patch = &link->patches[i];
        if (patch->offset < link->front)
            memcpy((char *)ret + patch->offset, patch->at, patch->bytes);
    }
}

void rows_came(struct rows *r, int ps, uint64_t batch)
{
    if (rows_are_used(r) && !r->is_revoked) r->links[ps].came = batch + 1;
}

void rows_forget(struct rows *r, int ps)
{
    if (rows_are_used(r)) r->links[ps].came = 0;
}

/* ---- batches ---- */

static bool names_rows(const struct graph_input *input)
{
    return input->tensor->dtype == INT64 && !input->is_raw;
}

static bool has_lookup(const struct graph *graph, int input)
{
    return names_rows(&graph->inputs[input]) && graph->inputs[input].lookup == input;
}

/* For each input of the graph: a column of ids gets its place in a lookup, a column of numbers a
 * copy. */
void prepared_open(const struct rows *r, const struct graph *graph, const struct column *columns,
                   int column_count, struct arena *arena, struct prepared *ret)
{
    const size_t inputs = (size_t)graph->input_count;
    *ret = (struct prepared){
        .columns = arena_array(arena, (size_t)graph->column_count, sizeof *ret->columns),
        .copies = arena_array(arena, inputs, sizeof *ret->copies),
        .made = arena_array(arena, inputs, sizeof *ret->made),
        .lookups = arena_array(arena, inputs, sizeof *ret->lookups),
        .first_cells = arena_array(arena, inputs, sizeof *ret->first_cells),
    };
    memcpy(ret->columns, columns, (size_t)column_count * sizeof *columns);
    for (int i = 0; i < graph->input_count; i++) {
        const struct tensor *tensor = graph->inputs[i].tensor;
        int64_t *cells = &ret->lookups[graph->inputs[i].lookup].cells;
        ret->first_cells[i] = *cells;
        if (graph->inputs[i].maker) ret->made[i] = arena_new(arena, tensor_bytes(tensor));
        if (names_rows(&graph->inputs[i]))
            *cells += shape_count(&tensor->shape);
        else if (!graph->inputs[i].maker)
            ret->copies[i] = arena_new(arena, tensor_bytes(tensor));
    }
    for (int i = 0; i < graph->input_count; i++)
        if (has_lookup(graph, i))
            lookup_open(ret->lookups[i].cells, r->order[i], arena, &ret->lookups[i]);
}

/* The output of a node, as a column */
static struct column made_column(const struct prepared *p, const struct graph_input *input, int i)
{
    const struct tensor *tensor = input->tensor;
    return (struct column){.name = tensor->name,
                           .dtype = tensor->dtype,
                           .shape = shape_from(&tensor->shape, 1),
                           .at = p->made[i]};
}

static void prepare_column(struct prepared *p, const struct graph_input *input, int i,
                           const struct batch *batch)
{
    const struct column made = made_column(p, input, i);
    const struct column *from = input->maker ? &made : &batch->columns[input->source];
    struct column *to = &p->columns[input->column];
    const int64_t rows = input->is_whole ? input->tensor->shape.dim[0] : batch->rows;
    const int64_t cells = rows * column_width(from);
    *to = *from;
    if (input->maker && !names_rows(input)) return; /* it is read where the node made it */
    if (names_rows(input)) {
        lookup_add(&p->lookups[input->lookup], from->at, cells, p->first_cells[i]);
        to->at = p->lookups[input->lookup].places + p->first_cells[i];
    } else {
        memcpy(p->copies[i], from->at, (size_t)cells * dtype_size(from->dtype));
        to->at = p->copies[i];
    }
}

void prepared_make(struct prepared *p, const struct graph *graph, const struct batch *batch,
                   uint64_t draw)
{
    graph_make_inputs(graph, batch, draw, p->made);
    for (int i = 0; i < graph->input_count; i++) lookup_begin(&p->lookups[i]);
    for (int i = 0; i < graph->input_count; i++) prepare_column(p, &graph->inputs[i], i, batch);
    for (int i = 0; i < graph->input_count; i++)
        if (has_lookup(graph, i)) lookup_find(&p->lookups[i]);
    p->batch = *batch;
    p->batch.columns = p->columns;
    p->batch.column_count = graph->column_count;
    p->is_there = true;
}

/* ---- rows ---- */

/* Rows first .. first + count - 1 of the lookup lie in this part. */
struct lookup_run {
    int64_t first, count;
};

static struct lookup_run run_of(const struct rows_part *part, const struct lookup *lookup)
{
    const struct slice *slice = part->slice;
    const int64_t first = lookup_place(lookup, slice->start);
    return (struct lookup_run){first, lookup_place(lookup, slice->start + slice->length) - first};
}

/* The rows of this part whose gradients are pushed */
static struct lookup_run pushed_run(const struct rows_part *part, const struct lookup *lookup)
{
    const struct lookup_run run = run_of(part, lookup);
    return part->is_frozen ? (struct lookup_run){run.first, 0} : run;
}

/* Names the next rows to ask for in the counts. Returns whether there are any. */
static bool name_piece(struct rows_link *link, const struct prepared *p)
{
    struct area_counts *c = &link->counts;
    for (int i = 0; i < link->area.count; i++) {
        const struct rows_part *part = &link->parts[i];
        const int64_t left = run_of(part, &p->lookups[part->column]).count - link->done[i];
        const int64_t most = link->area.slices[i].most;
        c->pushed[i] = 0;
        c->wanted[i] = left < most ? left : most;
    }
    area_counts_sum(&link->area, c);
    return c->wanted_rows > 0;
}

static void write_wanted(struct rows_link *link, const struct prepared *p)
{
    int64_t *to = area_wanted_ids(&link->area, &link->counts, link->window);
    for (int i = 0; i < link->area.count; i++) {
        const struct lookup *lookup = &p->lookups[link->parts[i].column];
        const int64_t first = run_of(&link->parts[i], lookup).first + link->done[i];
        const size_t count = (size_t)link->counts.wanted[i];
        memcpy(to, lookup->ids + first, count * sizeof *to);
        to += count;
    }
}

/* Takes the rows that were asked for from the back of the window */
static void take_rows(const struct rows *r, struct rows_link *link, const struct graph *graph,
                      const struct prepared *p)
{
    const float *from = area_rows(&link->area, link->window);
    for (int i = 0; i < link->area.count; i++) {
        const struct rows_part *part = &link->parts[i];
        const int64_t width = link->area.slices[i].width, count = link->counts.wanted[i];
        const int64_t first = run_of(part, &p->lookups[part->column]).first + link->done[i];
        pinned_upload(r->device, link->is_pinned, graph->params[part->param]->value + first * width,
                      from, (size_t)(count * width) * sizeof(float));
        from += count * width;
        link->done[i] += count;
    }
}

/* Asks all ps at once, for as many rows at a time as a window holds; ends, since each round brings
 * some. Rows are overwritten only when the device has read the ones before. */
static err ask(struct rows *r, const struct graph *graph, const struct prepared *p)
{
    for (bool has_any = true; has_any;) {
        has_any = false;
        for (int ps = 0; ps < r->ps_count; ps++) {
            struct rows_link *link = &r->links[ps];
            r->bytes[ps] = 0;
            if (!link->area.count || !name_piece(link, p)) continue;
            if (!link->window) return fail(ERR_PEER, "ps/%d has shared no rows", ps);
            area_write_counts(&link->area, &link->counts, link->window);
            write_wanted(link, p);
            r->bytes[ps] = area_front_bytes(&link->area, &link->counts, true);
            link->came = 0;
            link->patch_count = 0;
            has_any = true;
        }
        if (has_any) TRY(r->device->kernels->synchronize(r->device));
        if (has_any) TRY(r->from->ask(r->from->context, r->bytes, graph == r->graph));
        for (int ps = 0; ps < r->ps_count; ps++)
            if (r->bytes[ps]) take_rows(r, &r->links[ps], graph, p);
    }
    return OK;
}

static bool have_come(const struct rows *r, const struct prepared *p)
{
    for (int ps = 0; ps < r->ps_count; ps++)
        if (r->links[ps].area.count && r->links[ps].came != p->batch.index + 1) return false;
    return true;
}

/* Comparing numbers of batches would not do: the same number may come back for another batch. */
void rows_revoke(struct rows *r)
{
    r->is_revoked = true;
    for (int ps = 0; ps < r->ps_count; ps++) rows_forget(r, ps);
}

/* Zeros the rows that the batch does not name, so that a penalty on them costs nothing. */
static void clear_others(const struct rows *r, const struct prepared *p)
{
    for (int i = 0; i < r->graph->param_count; i++) {
        const struct param *param = r->graph->params[i];
        const bool costs = param->regularizer.l1 > 0 || param->regularizer.l2 > 0;
        if (!param->held || !costs) continue;
        const int64_t begin = p->lookups[column_of(r->graph, param)].count * param->shape.dim[1];
        r->device->kernels->fill(r->device, param->value + begin, 0.0f,
                                 param_floats(param) - begin);
    }
}

/* A push names rows only for a batch that trains. */
err rows_fetch(struct rows *r, const struct graph *graph, const struct prepared *p)
{
    if (r->from->settle) TRY(r->from->settle(r->from->context));
    for (int ps = 0; ps < r->ps_count; ps++)
        memset(r->links[ps].done, 0, (size_t)r->links[ps].area.count * sizeof(int64_t));
    if (graph == r->graph) clear_others(r, p);
    if (graph != r->graph || !have_come(r, p)) return ask(r, graph, p);
    for (int ps = 0; ps < r->ps_count; ps++) {
        if (r->links[ps].patch_count) continue; /* the rows are in place already */
        name_piece(&r->links[ps], p);
        take_rows(r, &r->links[ps], graph, p);
    }
    return OK;
}

/* ---- gradients ---- */

static void count_push(struct rows_link *link, const struct prepared *p,
                       const struct prepared *next)
{
    for (int i = 0; i < link->area.count; i++) {
        const struct rows_part *part = &link->parts[i];
        link->counts.pushed[i] = pushed_run(part, &p->lookups[part->column]).count;
        link->counts.wanted[i] =
            next->is_there ? run_of(part, &next->lookups[part->column]).count : 0;
    }
    area_counts_sum(&link->area, &link->counts);
}

static struct area_patch ids_in(const struct lookup *lookup, struct lookup_run run)
{
    return (struct area_patch){.at = lookup->ids + run.first,
                               .bytes = (size_t)run.count * sizeof *lookup->ids};
}

/* The part of `all`, which has all rows of the param of slice i, that these rows are */
static struct area_patch rows_in(const struct rows_link *link, int i, float *all,
                                 struct lookup_run run)
{
    const int64_t width = link->area.slices[i].width;
    return (struct area_patch){.at = all + run.first * width,
                               .bytes = (size_t)(run.count * width) * sizeof *all};
}

/* How often those rows occurred; empty where the slice does not count. */
static struct area_patch times_in(const struct rows_link *link, int i, const struct lookup *lookup,
                                  struct lookup_run run)
{
    const int64_t count = link->area.slices[i].counts ? run.count : 0;
    return (struct area_patch){.at = lookup->times + run.first,
                               .bytes = (size_t)count * sizeof *lookup->times};
}

/* What a push carries for slice i */
struct pushed {
    struct area_patch ids, times, gradients;
};

static struct pushed pushed_of(struct rows *r, const struct rows_link *link, int i,
                               const struct prepared *p)
{
    const struct rows_part *part = &link->parts[i];
    const struct lookup *lookup = &p->lookups[part->column];
    const struct lookup_run run = pushed_run(part, lookup);
    float *gradient = r->graph->params[part->param]->gradient;
    return (struct pushed){ids_in(lookup, run), times_in(link, i, lookup, run),
                           rows_in(link, i, gradient, run)};
}

/* What the next batch wants of slice i: its ids, and where its rows are to be put */
struct wanted {
    struct area_patch ids, rows;
};

static struct wanted wanted_of(struct rows *r, const struct rows_link *link, int i,
                               const struct prepared *p)
{
    const struct rows_part *part = &link->parts[i];
    const struct lookup *lookup = &p->lookups[part->column];
    const struct lookup_run run = run_of(part, lookup);
    float *value = r->graph->params[part->param]->value;
    return (struct wanted){ids_in(lookup, run), rows_in(link, i, value, run)};
}

static void put(struct rows *r, struct rows_link *link, const struct prepared *p,
                const struct prepared *next)
{
    char *ids = (char *)area_pushed_ids(&link->area, &link->counts, link->window);
    char *to = (char *)area_gradients(&link->area, &link->counts, link->window);
    char *times = (char *)area_times(&link->area, &link->counts, link->window);
    for (int i = 0; i < link->area.count; i++) {
        const struct pushed from = pushed_of(r, link, i, p);
        memcpy(ids, from.ids.at, from.ids.bytes);
        memcpy(times, from.times.at, from.times.bytes);
        times += from.times.bytes;
        pinned_download(r->device, link->is_pinned, to, from.gradients.at, from.gradients.bytes);
        ids += from.ids.bytes;
        to += from.gradients.bytes;
    }
    write_wanted(link, next);
}

/* Appends a patch that stands in for the window from `to` on. Returns where it ends. */
static char *add_patch(struct rows_link *link, struct area_patch from, char *to)
{
    from.offset = (size_t)(to - (char *)link->window);
    if (from.bytes) link->patches[link->patch_count++] = from;
    return to + from.bytes;
}

/* Patches stand in the order of the area. */
static void patch(struct rows *r, struct rows_link *link, const struct prepared *p,
                  const struct prepared *next)
{
    const int count = link->area.count, next_count = next->is_there ? count : 0;
    char *to = (char *)area_wanted_ids(&link->area, &link->counts, link->window);
    for (int i = 0; i < next_count; i++) to = add_patch(link, wanted_of(r, link, i, next).ids, to);
    to = (char *)area_gradients(&link->area, &link->counts, link->window);
    for (int i = 0; i < count; i++) to = add_patch(link, pushed_of(r, link, i, p).gradients, to);
    to = (char *)area_times(&link->area, &link->counts, link->window);
    for (int i = 0; i < count; i++) to = add_patch(link, pushed_of(r, link, i, p).times, to);
    to = (char *)area_pushed_ids(&link->area, &link->counts, link->window);
    for (int i = 0; i < count; i++) to = add_patch(link, pushed_of(r, link, i, p).ids, to);
    to = (char *)area_rows(&link->area, link->window);
    for (int i = 0; i < next_count; i++) to = add_patch(link, wanted_of(r, link, i, next).rows, to);
}

void rows_put(struct rows *r)
{
    struct prepared *p = &r->batches[r->current], *next = &r->batches[!r->current];
    for (int ps = 0; ps < r->ps_count; ps++) {
        struct rows_link *link = &r->links[ps];
        if (!link->area.count || !link->window) continue;
        count_push(link, p, next);
        area_write_counts(&link->area, &link->counts, link->window);
        memset(link->done, 0, (size_t)link->area.count * sizeof *link->done);
        link->patch_count = 0;
        if (link->is_apart)
            patch(r, link, p, next);
        else
            put(r, link, p, next);
        link->front = area_front_bytes(&link->area, &link->counts, true);
        link->without_ids = area_front_bytes(&link->area, &link->counts, false);
        link->was_brought = link->came == p->batch.index + 1 && !link->has_frozen;
        link->came = 0;
    }
    r->names_next = next->is_there;
    r->is_revoked = false;
    p->is_there = false;
    r->current = !r->current;
}
