/* ls.c - `dtrain var ls`: all variables of a cluster, whoever holds them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/var/variable_view.h"
#include "cmd/json_print.h"
#include "core/base/clock.h"
#include "core/cluster/visit/visit.h"
#include "cmd/var/var.h"

enum {
    PS_TEXT_MAX = 64,
    ROWS_FIRST = 64,
    PAGES_MAX = 1000, /* of VISIT_PAGE_MAX variables: a ps that has more of them is none */
};

struct variable_row {
    const char *name, *kind, *shape;
    char ps[PS_TEXT_MAX];   /* "0,2,5" */
    json_t *dims, *holders; /* the same as lists */
};

struct variable_rows {
    struct variable_row *at;
    int count, capacity;
    json_t *index; /* of "kind name": its number */
};

static struct variable_row *find_row(struct variable_rows *table, const char *key)
{
    json_t *number = json_object_get(table->index, key);
    return number ? &table->at[json_integer_value(number)] : NULL;
}

static err new_row(struct variable_rows *table, const char *key, struct variable_row **ret)
{
    if (table->count == table->capacity) {
        int capacity = table->capacity ? 2 * table->capacity : ROWS_FIRST;
        void *at = realloc(table->at, (size_t)capacity * sizeof *table->at);
        if (!at) return fail(ERR_MEMORY, "no memory for %d variables", capacity);
        table->at = at;
        table->capacity = capacity;
    }
    json_object_set_new(table->index, key, json_integer(table->count));
    *ret = &table->at[table->count++];
    **ret = (struct variable_row){0};
    return OK;
}

static err add_row(struct var *var, struct variable_rows *table, json_t *variable, int ps)
{
    const char *name, *kind;
    json_t *list;
    struct shape shape;
    char text[SHAPE_TEXT_MAX];
    if (json_unpack(variable, "{ss ss so}", "name", &name, "kind", &kind, "shape", &list))
        return fail(ERR_PROTOCOL, "ps/%d: an invalid list", ps);
    TRY(variable_view_shape(list, &shape));
    char *key = arena_format(&var->arena, "%s %s", kind, name);
    struct variable_row *row = find_row(table, key);
    if (!row) {
        TRY(new_row(table, key, &row));
        row->name = arena_string(&var->arena, name);
        row->kind = arena_string(&var->arena, kind);
        row->shape = arena_string(&var->arena, shape_text(&shape, text));
        if (json_is_true(json_object_get(variable, "grows")) && shape.rank == 2) {
            row->shape = arena_format(&var->arena, "[?, %lld]", (long long)shape.dim[1]);
            json_array_set_new(list, 0, json_null());
        }
        row->dims = json_incref(list);
        row->holders = json_array();
    }
    json_array_append_new(row->holders, json_integer(ps));
    size_t used = strlen(row->ps);
    snprintf(row->ps + used, sizeof row->ps - used, "%s%d", used ? "," : "", ps);
    return OK;
}

/* A ps may say anything: a list has an end, and so has the time for it. */
static err check_page(const struct var *var, int ps, int page, uint64_t started_ms)
{
    const json_t *answer = visitor_answer(var->visitor, ps);
    const size_t count = json_array_size(json_object_get(answer, "variables"));
    if (count > VISIT_PAGE_MAX || page >= PAGES_MAX)
        return fail(ERR_PROTOCOL, "ps/%d: a list of variables without an end", ps);
    if (clock_ms() - started_ms >= var->flags.timeout_ms)
        return fail(ERR_TIMEOUT, "the list of ps/%d has no end within %.3g s (--timeout)", ps,
                    (double)var->flags.timeout_ms / 1000);
    return OK;
}

/* The next page of every ps that has one. ret_is_done: none has any more. */
static err add_pages(struct var *var, struct variable_rows *table, int page, uint64_t started_ms,
                     bool *ret_is_done)
{
    *ret_is_done = true;
    TRY(visitor_wait_all(var->visitor, var->flags.timeout_ms));
    for (int ps = 0; ps < var->ps_count; ps++) {
        json_t *answer = visitor_answer(var->visitor, ps), *variable, *next;
        size_t i;
        if (!var->holds[ps]) continue;
        TRY(var_check_answer(var, ps));
        TRY(check_page(var, ps, page, started_ms));
        json_array_foreach(json_object_get(answer, "variables"), i, variable)
            TRY(add_row(var, table, variable, ps));
        next = json_incref(json_object_get(answer, "next"));
        var->holds[ps] = json_integer_value(next) > (json_int_t)var->version[ps];
        var->version[ps] = (uint64_t)json_integer_value(next);
        json_decref(next);
        *ret_is_done = *ret_is_done && !var->holds[ps];
    }
    return OK;
}

static int compare_rows(const void *left, const void *right)
{
    const struct variable_row *a = left, *b = right;
    int order = strcmp(b->kind, a->kind); /* trained, step, shared */
    return order ? order : strcmp(a->name, b->name);
}

static int widest(int width, const char *text)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

static void print_table(struct variable_rows *table)
{
    int name = (int)strlen("variable"), shape = (int)strlen("shape");
    if (table->count) qsort(table->at, (size_t)table->count, sizeof *table->at, compare_rows);
    for (int i = 0; i < table->count; i++) {
        name = widest(name, table->at[i].name);
        shape = widest(shape, table->at[i].shape);
    }
    printf("%-*s  %-*s  %-7s  ps\n", name, "variable", shape, "shape", "kind");
    for (int i = 0; i < table->count; i++) {
        const struct variable_row *row = &table->at[i];
        printf("%-*s  %-*s  %-7s  %s\n", name, row->name, shape, row->shape, row->kind, row->ps);
    }
}

static err print_json(struct variable_rows *table)
{
    json_t *list = json_array();
    if (table->count) qsort(table->at, (size_t)table->count, sizeof *table->at, compare_rows);
    for (int i = 0; i < table->count; i++) {
        const struct variable_row *row = &table->at[i];
        json_array_append_new(list, json_pack("{ss sO ss sO}", "name", row->name, "shape",
                                              row->dims, "kind", row->kind, "ps", row->holders));
    }
    return json_print(json_pack("{so}", "variables", list));
}

/* Page by page; `version` holds where the next one begins. */
err var_ls(struct var *var)
{
    struct variable_rows table = {.index = json_object()};
    const uint64_t started_ms = clock_ms();
    bool is_done = false;
    err e = OK;
    for (int page = 0; !e && !is_done; page++) {
        for (int ps = 0; ps < var->ps_count && !e; ps++) {
            if (!var->holds[ps]) continue;
            json_t *ask = json_pack("{ss sI}", "do", "list", "from", (json_int_t)var->version[ps]);
            e = visitor_ask(var->visitor, ps, ask);
            json_decref(ask);
        }
        if (!e) e = add_pages(var, &table, page, started_ms, &is_done);
    }
    if (!e && var->flags.json)
        e = print_json(&table);
    else if (!e)
        print_table(&table);
    for (int i = 0; i < table.count; i++) {
        json_decref(table.at[i].dims);
        json_decref(table.at[i].holders);
    }
    json_decref(table.index);
    free(table.at);
    return e;
}
