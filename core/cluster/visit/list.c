/* list.c - lists all variables on a ps. */
#include <stdlib.h>
#include <string.h>

#include "core/base/fields/fields.h"
#include "core/cluster/visit/visit_inside.h"
#include "core/train/variables/table.h"

/* A variable with several parts here is listed once, for the first of them. */
static bool is_first_part(const struct visits *v, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(visits_slice(v, i)->name, visits_slice(v, index)->name) == 0) return false;
    return true;
}

static json_t *row_of(const char *name, enum target_kind kind, const struct shape *shape)
{
    return json_pack("{ss ss so}", "name", name, "kind", target_kind_name(kind), "shape",
                     value_shape(shape));
}

/* Of what is trained */
static json_t *row_of_slice(const struct visits *v, int index)
{
    const struct slice *slice = visits_slice(v, index);
    const int table = index - v->view.slice_count;
    json_t *row = row_of(slice->name, table < 0 ? TARGET_TRAINED : TARGET_TABLE, &slice->shape);
    if (table >= 0 && table_growing(v->view.tables[table].rows))
        json_object_set_new(row, "grows", json_true());
    return row;
}

/* Everything here has a place: the step, then slices, then shared variables. */
static void add_place(const struct visits *v, uint64_t place, json_t *rows)
{
    const struct shape scalar = {0};
    uint64_t slices = (uint64_t)visits_slice_count(v);
    if (place == 0) {
        if (v->options.has_step)
            json_array_append_new(rows, row_of("global_step", TARGET_STEP, &scalar));
    } else if (place <= slices) {
        if (is_first_part(v, (int)place - 1))
            json_array_append_new(rows, row_of_slice(v, (int)place - 1));
    } else {
        const struct shared_variable *variable = &v->shared.at[place - 1 - slices];
        json_array_append_new(rows, row_of(variable->name, TARGET_SHARED, &variable->value.shape));
    }
}

void visits_answer_list(struct visits *v, int visitor)
{
    uint64_t places = 1 + (uint64_t)visits_slice_count(v) + (uint64_t)v->shared.count;
    uint64_t from = v->visitors[visitor].ask.from, to = places;
    if (from > places) from = places;
    if (to - from > VISIT_PAGE_MAX) to = from + VISIT_PAGE_MAX;
    json_t *rows = json_array();
    for (uint64_t place = from; place < to; place++) add_place(v, place, rows);
    json_t *json = json_pack("{so}", "variables", rows);
    if (to < places) json_object_set_new(json, "next", json_integer((json_int_t)to));
    visits_answer(v, visitor, json);
}

void visits_answer_none(struct visits *v, int visitor)
{
    const int slices = visits_slice_count(v);
    const char **names = calloc((size_t)(slices + v->shared.count + 1), sizeof *names);
    int count = 0;
    for (int i = 0; names && i < slices; i++) names[count++] = visits_slice(v, i)->name;
    for (int i = 0; names && i < v->shared.count; i++) names[count++] = v->shared.at[i].name;
    const char *near = nearest_name(v->visitors[visitor].ask.name, names, count);
    visits_answer(v, visitor,
                  json_pack("{ss sI ss*}", "kind", "none", "version",
                            (json_int_t)v->trained_version, "near", near));
    free(names);
}
