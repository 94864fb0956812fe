/* override.c - "model[0].units=20": one value of a JSON tree, changed by hand. */
#include "core/base/fields/fields_inside.h"

#include <ctype.h>
#include <string.h>

/* One step of the path: a member, or an element of a list. */
struct path_step {
    const char *name; /* in the assignment, not terminated; NULL: an element */
    size_t length;
    size_t index;
    const char *end; /* in the assignment: what this step and those before it name */
};

struct path {
    const char *text; /* the assignment */
    struct path_step steps[FIELD_DEPTH_MAX];
    int count;
    const char *value; /* behind the '=' */
};

static err fail_syntax(const char *assignment)
{
    struct text text = {.length = 0};
    text_add_quoted(&text, assignment);
    return fail(ERR_INPUT,
                "%s: expected path=value, such as train.last_step=200 or model[0].units=20",
                text.at);
}

/* "[12]"; stops after more digits than any list needs, so the number cannot overflow. */
static bool read_index(const char *at, struct path_step *ret)
{
    size_t index = 0;
    const char *digit = at + 1;
    while (isdigit((unsigned char)*digit) && index < FIELD_LIST_MAX)
        index = index * 10 + (size_t)(*digit++ - '0');
    if (digit == at + 1 || *digit != ']') return false;
    *ret = (struct path_step){.index = index, .end = digit + 1};
    return true;
}

static bool read_name(const char *at, struct path_step *ret)
{
    const size_t length = strcspn(at, ".[]=");
    *ret = (struct path_step){.name = at, .length = length, .end = at + length};
    return length > 0;
}

/* path = name { "." name | "[" digits "]" } "=" */
static err read_path(const char *assignment, struct path *ret)
{
    const char *at = assignment;
    ret->text = assignment;
    for (ret->count = 0; ret->count == 0 || *at != '='; ret->count++) {
        if (ret->count == FIELD_DEPTH_MAX) return fail_syntax(assignment);
        struct path_step *step = &ret->steps[ret->count];
        const bool is_index = ret->count > 0 && *at == '[';
        if (ret->count > 0 && !is_index && *at++ != '.') return fail_syntax(assignment);
        const bool is_read = is_index ? read_index(at, step) : read_name(at, step);
        if (!is_read) return fail_syntax(assignment);
        at = step->end;
    }
    ret->value = at + 1;
    return OK;
}

static err fail_parent(const struct path *path, int step, const json_t *parent)
{
    const char *whole_end = path->steps[path->count - 1].end;
    const char *parent_end = step > 0 ? path->steps[step - 1].end : path->text;
    struct text text = {.length = 0};
    text_add(&text, "%.*s: expected %s", (int)(whole_end - path->text), path->text,
             path->steps[step].name ? "an object" : "a list");
    if (step > 0) text_add(&text, " at %.*s", (int)(parent_end - path->text), path->text);
    text_add(&text, ", got ");
    text_add_found(&text, parent);
    if (step > 0 && json_array_size(parent) > 0)
        text_add(&text, ", of which %.*s[0] is the first", (int)(parent_end - path->text),
                 path->text);
    return fail(ERR_INPUT, "%s", text.at);
}

/* The value at the step; creates an object if absent. */
static json_t *enter(json_t *parent, const struct path_step *step)
{
    if (!step->name) return json_array_get(parent, step->index);
    json_t *child = json_object_getn(parent, step->name, step->length);
    if (child && !json_is_null(child)) return child;
    json_object_setn_new(parent, step->name, step->length, json_object());
    return json_object_getn(parent, step->name, step->length);
}

/* The parent must be an object or a list as the step needs, and a list long enough. */
static err check_step(const struct path *path, int at, const json_t *parent)
{
    const struct path_step *step = &path->steps[at];
    if (step->name && !json_is_object(parent)) return fail_parent(path, at, parent);
    if (step->name) return OK;
    if (!json_is_array(parent)) return fail_parent(path, at, parent);
    if (step->index < json_array_size(parent)) return OK;
    return fail(ERR_INPUT, "%.*s: the list has %zu members, counted from 0",
                (int)(step->end - path->text), path->text, json_array_size(parent));
}

/* The table of the value at the step; NULL: not known here. */
static const struct object *table_behind(const struct object *table, const struct path_step *step)
{
    const struct field *field =
        table && step->name ? object_field_n(table, step->name, step->length) : NULL;
    return field && field->type == FIELD_OBJECT ? field->object : NULL;
}

/* Whoever says how long to train by steps does not mean the epochs of the file as well. */
static void displace_group(const struct object *table, const struct path_step *step, json_t *parent)
{
    const struct field *given = object_field_n(table, step->name, step->length);
    if (!given || !given->group) return;
    for (int i = 0; i < fields_count(table); i++) {
        const struct field *field = &table->fields[i];
        if (field != given && field->group && strcmp(field->group, given->group) == 0)
            json_object_del(parent, field->name);
    }
}

/* null and 0 mean that another member of the group is used. */
static bool says_nothing(const json_t *value)
{
    return json_is_null(value) || (json_is_number(value) && json_number_value(value) == 0);
}

err fields_override(const struct object *table, json_t *root, const char *assignment)
{
    struct path path;
    TRY(read_path(assignment, &path));

    json_t *parent = root;
    for (int i = 0; i < path.count - 1; i++) {
        TRY(check_step(&path, i, parent));
        parent = enter(parent, &path.steps[i]);
        if (!parent) return fail(ERR_INPUT, "%s: no memory, or no UTF-8", assignment);
        table = table_behind(table, &path.steps[i]);
    }
    TRY(check_step(&path, path.count - 1, parent));

    const struct path_step *last = &path.steps[path.count - 1];
    json_t *value = json_from_text(path.value);
    if (table && last->name && !says_nothing(value)) displace_group(table, last, parent);
    int refused = last->name ? json_object_setn_new(parent, last->name, last->length, value)
                             : json_array_set_new(parent, last->index, value);
    return refused ? fail(ERR_INPUT, "%s: no memory, or no UTF-8", assignment) : OK;
}
