/* target.c - see target.h. */
#include "core/cluster/visit/target.h"

#include <math.h>
#include <stdlib.h>

#include "core/cluster/visit/body.h"
#include "core/train/variables/growing/growing.h"
#include "core/train/variables/growing/keys.h"
#include "core/train/variables/mod.h"
#include "core/train/variables/table.h"

static const char *const kind_names[] = {"none", "trained", "table", "shared", "step"};

const char *target_kind_name(enum target_kind kind)
{
    return kind_names[kind];
}

void target_free(struct target *target)
{
    free(target->parts);
    free(target->row);
    *target = (struct target){0};
}

static double element(const struct part *part, int64_t at)
{
    return part->floats ? (double)part->floats[at] : part->doubles[at];
}

/* How the elements of a part map to the whole: `rows` runs of `run` elements, `stride` apart in the
 * whole. */
struct part_geometry {
    int64_t rows, run, stride, first, count;
};

static struct part_geometry geometry_of(const struct target *target, const struct part *part)
{
    const struct shape *shape = &target->shape;
    struct part_geometry g = {.rows = 1, .run = 1, .stride = 1, .count = 1};
    if (shape->rank == 0) return g;
    int64_t inner = shape_count_from(shape, target->axis + 1);
    for (int i = 0; i < target->axis; i++) g.rows *= shape->dim[i];
    g.run = part->length * inner;
    g.stride = shape->dim[target->axis] * inner;
    g.first = part->start * inner;
    g.count = g.rows * g.run;
    return g;
}

/* A growing table: any id names a row. */
static bool grows(const struct target *target)
{
    return target->kind == TARGET_TABLE && table_growing(target->parts[0].table);
}

/* Whether consecutive ids are not consecutive rows of a part. */
static bool is_by_ids(const struct target *target)
{
    return grows(target) || (target->kind == TARGET_TABLE && target->parts[0].mod);
}

/* Of a table */
struct row_range {
    int64_t first, count;
};

static struct row_range rows_selected(const struct target *target,
                                      const struct selection *selection)
{
    if (!selection->index_count) return (struct row_range){0, target->shape.dim[0]};
    return (struct row_range){selection->index[0], selection->rows ? selection->rows : 1};
}

static err check_rows(const struct target *target, const struct selection *selection)
{
    const bool is_open = grows(target);
    const int64_t rows = is_open ? ANY_ID : target->shape.dim[0],
                  most = VISIT_ELEMENTS_MAX / target->shape.dim[1];
    const struct row_range range = rows_selected(target, selection);
    if (selection->index_count > 1)
        return fail(ERR_INPUT, "%s is a table: one index is that of a row", target->name);
    if (range.first < 0 || range.first >= rows || range.count > rows - range.first)
        return fail(ERR_INPUT, "%s has rows from 0 to %lld", target->name, (long long)rows - 1);
    if (is_open && (!selection->index_count || range.count > most))
        return fail(ERR_INPUT,
                    "%s is a table that grows: get up to %lld rows by their ids, as in %s[7] or "
                    "%s[7:9]; they are not changed from outside",
                    target->name, (long long)most, target->name, target->name);
    if (range.count <= most) return OK;
    return fail(ERR_INPUT,
                "%s is a table of %lld x %lld numbers: get up to %lld rows, as in %s[7] or "
                "%s[7:9]; they are not changed from outside",
                target->name, (long long)rows, (long long)target->shape.dim[1], (long long)most,
                target->name, target->name);
}

err target_check_index(const struct target *target, const struct selection *selection)
{
    char shape[SHAPE_TEXT_MAX];
    if (target->kind == TARGET_TABLE) return check_rows(target, selection);
    if (selection->rows)
        return fail(ERR_INPUT, "%s is no table, of which there are ranges of rows", target->name);
    if (selection->index_count == 0) return OK;
    shape_text(&target->shape, shape);
    if (selection->index_count != target->shape.rank)
        return fail(ERR_INPUT, "%s has shape %s, and the index %d number%s", target->name, shape,
                    selection->index_count, selection->index_count == 1 ? "" : "s");
    for (int i = 0; i < target->shape.rank; i++)
        if (selection->index[i] < 0 || selection->index[i] >= target->shape.dim[i])
            return fail(ERR_INPUT, "%s has shape %s: index %lld is not from 0 to %lld",
                        target->name, shape, (long long)selection->index[i],
                        (long long)target->shape.dim[i] - 1);
    return OK;
}

/* The number of the selected element within the part; -1: another part has it. */
static int64_t position(const struct target *target, const struct part *part,
                        const struct selection *selection)
{
    int64_t at = 0;
    for (int i = 0; i < target->shape.rank; i++) {
        bool is_cut = i == target->axis;
        int64_t index = selection->index[i] - (is_cut ? part->start : 0);
        int64_t length = is_cut ? part->length : target->shape.dim[i];
        if (index < 0 || index >= length) return -1;
        at = at * length + index;
    }
    return at;
}

/* The new value of an element. */
static double result_of(const struct part *part, int64_t at, bool is_add, double given)
{
    if (part->floats) return is_add ? part->floats[at] + (float)given : (float)given;
    return is_add ? part->doubles[at] + given : given;
}

static void store(const struct part *part, int64_t at, double x)
{
    if (part->floats)
        part->floats[at] = (float)x;
    else
        part->doubles[at] = x;
}

/* Visits the elements that change. is_dry: only checks that all results are finite. */
static bool walk_part(const struct target *target, const struct part *part,
                      const struct change *change, bool is_dry)
{
    const struct value *value = &change->value;
    const struct part_geometry g = geometry_of(target, part);
    for (int64_t row = 0; row < g.rows; row++) {
        for (int64_t i = 0; i < g.run; i++) {
            int64_t at = row * g.run + i, whole = g.first + row * g.stride + i;
            double x =
                result_of(part, at, change->is_add, value->at[value->shape.rank ? whole : 0]);
            if (is_dry && !isfinite(x)) return false;
            if (!is_dry) store(part, at, x);
        }
    }
    return true;
}

static bool walk(const struct target *target, const struct change *change, bool is_dry)
{
    for (int i = 0; i < target->part_count; i++) {
        const struct part *part = &target->parts[i];
        if (change->selection.index_count == 0) {
            if (!walk_part(target, part, change, is_dry)) return false;
            continue;
        }
        int64_t at = position(target, part, &change->selection);
        if (at < 0) continue;
        double x = result_of(part, at, change->is_add, change->value.at[0]);
        if (is_dry && !isfinite(x)) return false;
        if (!is_dry) store(part, at, x);
    }
    return true;
}

err target_check(const struct target *target, const struct change *change)
{
    char own[SHAPE_TEXT_MAX], given[SHAPE_TEXT_MAX];
    const struct shape *shape = &change->value.shape;
    if (target->kind == TARGET_STEP)
        return fail(ERR_INPUT, "%s is counted by the job and cannot be changed", target->name);
    if (target->kind == TARGET_TABLE)
        return fail(ERR_INPUT, "%s is a table, whose rows are not changed from outside",
                    target->name);
    if (target->is_held_twice)
        return fail(ERR_INPUT,
                    "%s is not changed from outside, since another ps holds it, too "
                    "(train.ps_replicas)",
                    target->name);
    TRY(target_check_index(target, &change->selection));
    if (change->selection.index_count && shape->rank)
        return fail(ERR_INPUT, "%s: one element takes one number, got shape %s", target->name,
                    shape_text(shape, given));
    if (shape->rank && !shape_equal(shape, &target->shape))
        return fail(ERR_INPUT, "%s has shape %s, the value %s", target->name,
                    shape_text(&target->shape, own), shape_text(shape, given));
    if (!walk(target, change, true))
        return fail(ERR_INPUT, "%s: the result is not a finite %s", target->name,
                    target->kind == TARGET_TRAINED ? "float32" : "double");
    return OK;
}

void target_change(const struct target *target, const struct change *change)
{
    walk(target, change, false);
}

/* ---- answers ---- */

/* The elements of a part to send: all, or the selected one; count 0: another part has it. */
struct told_elements {
    int64_t from, count;
};

static struct told_elements rows_of(const struct target *target, const struct part *part,
                                    const struct selection *selection)
{
    const struct row_range range = rows_selected(target, selection);
    const int64_t width = target->shape.dim[1], end = part->start + part->length;
    const int64_t from = range.first > part->start ? range.first : part->start;
    const int64_t to = range.first + range.count < end ? range.first + range.count : end;
    return (struct told_elements){(from - part->start) * width,
                                  to > from ? (to - from) * width : 0};
}

static struct told_elements stretch_of(const struct target *target, const struct part *part,
                                       const struct selection *selection)
{
    if (target->kind == TARGET_TABLE) return rows_of(target, part, selection);
    if (!selection->index_count) return (struct told_elements){0, geometry_of(target, part).count};
    const int64_t at = position(target, part, selection);
    return at < 0 ? (struct told_elements){0} : (struct told_elements){at, 1};
}

/* The row number within the table */
static int64_t row_of_id(const struct target *target, const struct part *part, int64_t id)
{
    return grows(target) ? key_of_id(id) : mod_row_of_id(target->shape.dim[0], part->mod, id);
}

static bool has_id(const struct target *target, const struct part *part, int64_t id)
{
    const int64_t row = row_of_id(target, part, id);
    return row >= part->start && row - part->start < part->length;
}

static json_t *ids_json(const struct target *target, const struct selection *selection,
                        int64_t *ret_count)
{
    const struct row_range range = rows_selected(target, selection);
    const json_int_t width = target->shape.dim[1], first = grows(target) ? 0 : range.first;
    json_t *parts = json_array();
    *ret_count = 0;
    for (int i = 0; i < target->part_count; i++)
        for (int64_t k = 0; k < range.count; k++) {
            if (!has_id(target, &target->parts[i], range.first + k)) continue;
            *ret_count += width;
            json_array_append_new(parts, json_pack("{sI sI sI}", "start", (json_int_t)(first + k),
                                                   "length", (json_int_t)1, "count", width));
        }
    return parts;
}

static json_t *parts_json(const struct target *target, const struct selection *selection,
                          int64_t *ret_count)
{
    json_t *parts = json_array();
    *ret_count = 0;
    for (int i = 0; i < target->part_count; i++) {
        const struct part *part = &target->parts[i];
        const struct told_elements stretch = stretch_of(target, part, selection);
        *ret_count += stretch.count;
        int64_t start = part->start, length = part->length;
        if (target->kind == TARGET_TABLE) {
            start += stretch.from / target->shape.dim[1];
            length = stretch.count / target->shape.dim[1];
        }
        if (stretch.count)
            json_array_append_new(parts, json_pack("{sI sI sI}", "start", (json_int_t)start,
                                                   "length", (json_int_t)length, "count",
                                                   (json_int_t)stretch.count));
    }
    return parts;
}

static unsigned char *write_row(const struct target *target, unsigned char *numbers)
{
    for (int64_t k = 0; k < target->shape.dim[1]; k++)
        numbers = visit_body_put(numbers, target->row[k]);
    return numbers;
}

/* Reads a row; zeros if a growing table does not have it */
static void read_id(const struct target *target, const struct part *part, int64_t id)
{
    const int64_t row = row_of_id(target, part, id);
    if (grows(target))
        growing_gather_made(table_growing(part->table), &row, 1, target->row);
    else
        table_read(part->table, 0, row, 1, target->row);
}

static unsigned char *write_ids(const struct target *target, const struct part *part,
                                struct row_range range, unsigned char *numbers)
{
    for (int64_t id = range.first; id < range.first + range.count; id++) {
        if (!has_id(target, part, id)) continue;
        read_id(target, part, id);
        numbers = write_row(target, numbers);
    }
    return numbers;
}

static unsigned char *write_rows(const struct target *target, const struct part *part,
                                 struct told_elements stretch, unsigned char *numbers)
{
    const int64_t width = target->shape.dim[1];
    for (int64_t at = stretch.from; at < stretch.from + stretch.count; at += width) {
        table_read(part->table, 0, part->start + at / width, 1, target->row);
        numbers = write_row(target, numbers);
    }
    return numbers;
}

void target_write(const struct target *target, const struct selection *selection,
                  unsigned char *numbers)
{
    for (int i = 0; i < target->part_count; i++) {
        const struct part *part = &target->parts[i];
        if (is_by_ids(target)) {
            numbers = write_ids(target, part, rows_selected(target, selection), numbers);
            continue;
        }
        const struct told_elements stretch = stretch_of(target, part, selection);
        if (part->table) numbers = write_rows(target, part, stretch, numbers);
        for (int64_t k = 0; !part->table && k < stretch.count; k++)
            numbers = visit_body_put(numbers, element(part, stretch.from + k));
    }
}

static json_t *describe(const struct target *target, const char *key, json_t *what)
{
    return json_pack("{ss so si sI so}", "kind", target_kind_name(target->kind), "shape",
                     value_shape(&target->shape), "axis", target->axis, "version",
                     (json_int_t)target->version, key, what);
}

json_t *target_json(const struct target *target, const struct selection *selection,
                    int64_t *ret_count)
{
    const bool is_open = grows(target);
    json_t *json = describe(target, "parts",
                            is_by_ids(target) ? ids_json(target, selection, ret_count)
                                              : parts_json(target, selection, ret_count));
    if (target->kind != TARGET_TABLE) return json;
    const struct row_range range = rows_selected(target, selection);
    if (is_open) json_array_set_new(json_object_get(json, "shape"), 0, json_integer(range.count));
    json_object_set_new(json, "first_row", json_integer(is_open ? 0 : range.first));
    json_object_set_new(json, "rows", json_integer(range.count));
    return json;
}

/* ---- large ones ---- */

bool target_is_large(const struct target *target, const struct selection *selection)
{
    return target->kind != TARGET_TABLE && !selection->index_count &&
           shape_count(&target->shape) > VISIT_ELEMENTS_MAX;
}

static void count_elements(const struct part *part, int64_t to, struct scan *s)
{
    for (; s->at < to; s->at++) {
        double x = element(part, s->at);
        if (!isfinite(x)) continue;
        if (s->finite == 0 || x < s->minimum) s->minimum = x;
        if (s->finite == 0 || x > s->maximum) s->maximum = x;
        s->finite++;
        s->sum += x;
        s->sum_squares += x * x;
    }
}

bool target_scan(const struct target *target, struct scan *scan, int64_t elements_max)
{
    for (; scan->part < target->part_count; scan->part++, scan->at = 0) {
        const struct part *part = &target->parts[scan->part];
        const int64_t left = geometry_of(target, part).count - scan->at;
        const int64_t step = left < elements_max ? left : elements_max;
        count_elements(part, scan->at + step, scan);
        elements_max -= step;
        if (step < left) return false;
    }
    return true;
}

/* Includes the first elements of the whole, if they are here: they are in the first part, as far as
 * its first run goes. */
json_t *target_summary(const struct target *target, const struct scan *s)
{
    json_t *first = json_array();
    for (int i = 0; i < target->part_count; i++) {
        const struct part *part = &target->parts[i];
        const struct part_geometry g = geometry_of(target, part);
        for (int64_t k = 0; part->start == 0 && k < g.run && k < VISIT_FIRST_MAX; k++)
            json_array_append_new(first, value_number(element(part, k)));
    }
    return describe(target, "summary",
                    json_pack("{sI so so so so so}", "finite", (json_int_t)s->finite, "minimum",
                              value_number(s->minimum), "maximum", value_number(s->maximum), "sum",
                              value_number(s->sum), "sum_squares", value_number(s->sum_squares),
                              "first", first));
}
