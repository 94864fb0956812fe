/* names.c - giving names to nodes, and finding nodes by name. */
#include "core/graph/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* [A-Za-z0-9.][A-Za-z0-9_.\\-/]*, TensorFlow's rule for names of scopes: variables and checkpoints
 * use the name unchanged. */
static bool is_scope_name(const char *name)
{
    if (!isalnum((unsigned char)name[0]) && name[0] != '.') return false;
    for (const char *c = name + 1; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_.\\-/", *c)) return false;
    return true;
}

static bool is_label(const struct column *column)
{
    return column->is_label || strcmp(column->name, LABELS_NAME) == 0;
}

/* Index of the column of this name; -1: none, or a label. */
static int find_column(const char *name, const struct readable *r)
{
    const int column = column_find(r->columns, r->column_count, name);
    return column >= 0 && is_label(&r->columns[column]) ? -1 : column;
}

static err check_name(const char *name, const struct readable *r)
{
    if (strlen(name) > NAME_LENGTH_MAX)
        return fail(ERR_INPUT, "a name has at most %d characters", NAME_LENGTH_MAX);
    if (!is_scope_name(name))
        return fail(
            ERR_INPUT,
            "a name begins with a letter, a digit or '.' and continues with these or any of "
            "\"_.\\-/\"");
    if (find_column(name, r) >= 0)
        return fail(ERR_INPUT, "\"%s\" is what the data is called", name);
    return OK;
}

/* Index of the name among the first `count`; -1: none. Names not assigned yet are NULL. */
static int find(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (names[i] && strcmp(names[i], name) == 0) return i;
    return -1;
}

/* Names in the spec come first: default names avoid them, never the other way round. */
static err take_given_names(const struct node_spec *specs, const struct readable *r,
                            struct arena *arena, const char **names)
{
    for (int i = 0; i < r->node_count; i++) {
        const char *name = specs[i].name;
        names[i] = name;
        if (!name) continue;

        err e = check_name(name, r);
        const int other = e ? -1 : find(name, names, i);
        if (other >= 0)
            e = fail(ERR_INPUT, "the name is taken by %s", node_place(specs, other, arena));
        if (e)
            return fail_prefix(e, "%s (%s \"%s\")", node_place(specs, i, arena),
                               specs[i].op.kind->object->name, name);
    }
    return OK;
}

/* State of assigning default names, in the order of the nodes. */
struct series {
    const struct node_spec *specs;
    const struct readable *readable;
    const char **names;
    int *suffixes; /* [node_count] number in each default name: 0 for the op's name alone */
    struct arena *arena;
};

/* Nodes of one op get increasing suffixes, so the search continues where the last one ended; names
 * taken anywhere in the model are skipped. */
static const char *make_name(struct series *s, int node)
{
    const struct kind *kind = s->specs[node].op.kind;
    const char *op = kind->object->name;
    int suffix = 0;
    for (int j = node - 1; j >= 0 && suffix == 0; j--)
        if (!s->specs[j].name && s->specs[j].op.kind == kind) suffix = s->suffixes[j] + 1;

    const char *name = suffix ? arena_format(s->arena, "%s_%d", op, suffix) : op;
    while (find(name, s->names, s->readable->node_count) >= 0 ||
           find_column(name, s->readable) >= 0)
        name = arena_format(s->arena, "%s_%d", op, ++suffix);
    s->suffixes[node] = suffix;
    return name;
}

/* Two passes: the spec's names, then default ones. */
err names_assign(const struct node_spec *specs, const struct readable *r, struct arena *arena,
                 const char **ret_names)
{
    const int count = r->node_count;
    TRY(take_given_names(specs, r, arena, ret_names));
    struct series series = {.specs = specs, .readable = r, .names = ret_names, .arena = arena};
    series.suffixes = arena_array(arena, (size_t)count, sizeof *series.suffixes);
    for (int i = 0; i < count; i++)
        if (!ret_names[i]) ret_names[i] = make_name(&series, i);
    return OK;
}

/* The nearest name of a node or column */
static struct suggestion nearest(const char *name, const struct readable *r)
{
    const char *columns[COLUMNS_MAX];
    int count = 0;
    for (int i = 0; i < r->column_count; i++)
        if (!is_label(&r->columns[i])) columns[count++] = r->columns[i].name;
    const struct suggestion near = suggest(name, r->nodes, r->node_count);
    return *near.text ? near : suggest(name, columns, count);
}

err names_find(const char *name, const struct readable *r, int *ret_node, int *ret_column)
{
    *ret_node = find(name, r->nodes, r->node_count);
    *ret_column = *ret_node < 0 ? find_column(name, r) : -1;
    if (*ret_node >= 0 || *ret_column >= 0) return OK;
    return fail(ERR_INPUT, "no node is called \"%s\"%s", name, nearest(name, r).text);
}
