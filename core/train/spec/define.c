/* define.c - see spec_inside.h: values that a spec defines once and uses in many places. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/spec/expand.h"
#include "core/train/spec/spec_inside.h"

enum {
    DEPTH_MAX = 32,
    USES_MAX = 100000, /* of definitions: uses within uses multiply */
    DEFINED_MAX = 1024,
    RANGE_MAX = 4096,
    ITEMS_MAX = 65536, /* of a list that has ranges */
    RANGE_TEXT_MAX = 512,
};

struct spec_place spec_place_member(const struct spec_place *of, const char *key)
{
    struct spec_place place;
    snprintf(place.text, sizeof place.text, "%.*s%s%.100s", PLACE_TEXT_MAX - 110, of->text,
             *of->text ? "." : "", key);
    return place;
}

struct spec_place spec_place_item(const struct spec_place *of, size_t index)
{
    struct spec_place place;
    snprintf(place.text, sizeof place.text, "%.*s[%zu]", PLACE_TEXT_MAX - 30, of->text, index);
    return place;
}

/* ---- "$name" ---- */

static err unknown(const json_t *defined, const char *name, const struct spec_place *at)
{
    const char *names[DEFINED_MAX], *key;
    json_t *value;
    int count = 0;
    json_object_foreach((json_t *)defined, key, value)
    {
        if (count < DEFINED_MAX) names[count++] = key;
    }
    return fail(ERR_INPUT, "%s: \"$%.100s\" is not among what \"define\" has%s", at->text, name,
                suggest(name, names, count).text);
}

static err use(struct definitions *defined, json_t *value, const struct spec_place *at, int depth,
               json_t **ret);

static err use_in_object(struct definitions *defined, json_t *object, const struct spec_place *at,
                         int depth)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value)
    {
        const struct spec_place place = spec_place_member(at, key);
        json_t *used;
        TRY(use(defined, value, &place, depth + 1, &used));
        if (json_object_set_new(object, key, used)) return fail(ERR_MEMORY, "no memory");
    }
    return OK;
}

static err use_in_list(struct definitions *defined, json_t *list, const struct spec_place *at,
                       int depth)
{
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value)
    {
        const struct spec_place place = spec_place_item(at, i);
        json_t *used;
        TRY(use(defined, value, &place, depth + 1, &used));
        if (json_array_set_new(list, i, used)) return fail(ERR_MEMORY, "no memory");
    }
    return OK;
}

/* A definition may use others, but not itself. */
static err use_name(struct definitions *defined, const char *name, const struct spec_place *at,
                    int depth, json_t **ret)
{
    json_t *value = json_object_get(defined->all, name);
    if (!value) return unknown(defined->all, name, at);
    if (++*defined->uses > USES_MAX)
        return fail(ERR_INPUT, "%s: what \"define\" has is used more than %d times", at->text,
                    USES_MAX);
    json_t *copy = json_deep_copy(value);
    if (!copy) return fail(ERR_MEMORY, "no memory");
    const err e = use(defined, copy, at, depth + 1, ret);
    json_decref(copy);
    return e;
}

/* The value with definitions put in; a new reference */
static err use(struct definitions *defined, json_t *value, const struct spec_place *at, int depth,
               json_t **ret)
{
    const char *text = json_string_value(value);
    if (depth > DEPTH_MAX)
        return fail(ERR_INPUT, "%s: more than %d levels: does something in \"define\" use itself?",
                    at->text, DEPTH_MAX);
    if (text && text[0] == '$' && text[1] == '$') {
        *ret = json_string(text + 1);
        return *ret ? OK : fail(ERR_MEMORY, "no memory");
    }
    if (text && text[0] == '$') return use_name(defined, text + 1, at, depth, ret);
    if (json_is_object(value)) TRY(use_in_object(defined, value, at, depth));
    if (json_is_array(value)) TRY(use_in_list(defined, value, at, depth));
    *ret = json_incref(value);
    return OK;
}

err definitions_use(struct definitions *defined, json_t *value, const struct spec_place *at)
{
    json_t *same;
    TRY(use(defined, value, at, 0, &same));
    json_decref(same);
    return OK;
}

static err put_definitions(json_t *spec, struct definitions *defined)
{
    if (!defined->all || json_is_null(defined->all)) return OK;
    if (!json_is_object(defined->all)) return fail(ERR_INPUT, "define: expected an object");
    if (json_object_size(defined->all) > DEFINED_MAX)
        return fail(ERR_INPUT, "define: more than %d", DEFINED_MAX);
    return definitions_use(defined, spec, &(struct spec_place){""});
}

/* ---- "C{1..26}" ---- */

/* The first range of a name: its braces, and the numbers between */
struct numbered_range {
    const char *begin, *end; /* end: behind the brace */
    long first, last;
};

static bool find_range(const char *text, struct numbered_range *ret)
{
    for (const char *c = strchr(text, '{'); c; c = strchr(c + 1, '{')) {
        long first, last;
        int length = 0;
        if (sscanf(c, "{%9ld..%9ld}%n", &first, &last, &length) != 2 || !length) continue;
        *ret = (struct numbered_range){c, c + length, first, last};
        return true;
    }
    return false;
}

static err check_range(const struct numbered_range *r, const struct spec_place *at)
{
    if (r->first >= 0 && r->last >= r->first && r->last - r->first < RANGE_MAX) return OK;
    return fail(ERR_INPUT, "%s: {%ld..%ld}: expected a range upwards of at most %d", at->text,
                r->first, r->last, RANGE_MAX);
}

/* The text with the number in place of its range; without a range, the text itself. */
static json_t *with_number(const char *text, long number)
{
    struct numbered_range r;
    char name[RANGE_TEXT_MAX];
    if (!find_range(text, &r)) return json_string(text);
    snprintf(name, sizeof name, "%.*s%ld%s", (int)(r.begin - text), text, number, r.end);
    return json_string(name);
}

/* A copy of the column, with the number in all texts that have the range. */
static json_t *column_with(const json_t *column, long number)
{
    json_t *copy = json_deep_copy(column), *value;
    const char *key;
    json_object_foreach(copy, key, value)
    {
        if (json_is_string(value))
            json_object_set_new(copy, key, with_number(json_string_value(value), number));
    }
    return copy;
}

/* The text of a list's item that may have a range: the item itself, or the name of a column */
static const char *range_text(const json_t *item)
{
    return json_is_object(item) ? json_string_value(json_object_get(item, "name"))
                                : json_string_value(item);
}

err spread_list(json_t *list, const struct spec_place *at)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *item = json_array_get(list, i);
        const char *text = range_text(item);
        const struct spec_place place = spec_place_item(at, i);
        struct numbered_range r;
        if (!text || strlen(text) > RANGE_TEXT_MAX / 2 || !find_range(text, &r)) continue;
        TRY(check_range(&r, &place));
        if (json_array_size(list) > ITEMS_MAX)
            return fail(ERR_INPUT, "%s: more than %d items", at->text, ITEMS_MAX);
        json_incref(item);
        json_array_remove(list, i);
        for (long number = r.first; number <= r.last; number++) {
            json_t *one =
                json_is_object(item) ? column_with(item, number) : with_number(text, number);
            json_array_insert_new(list, i + (size_t)(number - r.first), one);
        }
        i += (size_t)(r.last - r.first);
        json_decref(item);
    }
    return OK;
}

static err put_ranges(json_t *spec)
{
    json_t *node;
    size_t i;
    TRY(spread_list(json_object_get(json_object_get(spec, "data"), "columns"),
                    &(struct spec_place){"data.columns"}));
    json_array_foreach(json_object_get(spec, "model"), i, node)
    {
        const struct spec_place model = {"model"}, of = spec_place_item(&model, i);
        const struct spec_place place = spec_place_member(&of, "inputs");
        TRY(spread_list(json_object_get(node, "inputs"), &place));
    }
    return OK;
}

/* Removes it from the spec: a new reference, NULL if it is not there. */
static json_t *take(json_t *spec, const char *key)
{
    json_t *value = json_incref(json_object_get(spec, key));
    json_object_del(spec, key);
    return value;
}

err spec_expand(json_t *spec, json_t **ret_places)
{
    int uses = 0;
    json_t *defined = take(spec, "define"), *blocks = take(spec, "blocks");
    struct definitions definitions = {defined, &uses};
    *ret_places = NULL;
    err e = put_definitions(spec, &definitions);
    if (!e) e = put_ranges(spec);
    if (!e) e = nodes_expand(spec, &definitions, blocks, ret_places);
    json_decref(defined);
    json_decref(blocks);
    return e;
}
