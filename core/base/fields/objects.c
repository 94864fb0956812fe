/* objects.c - parses JSON objects and variants, member by member. */
#include "core/base/fields/fields_inside.h"

#include <assert.h>
#include <string.h>

/* The allowed keys of an object, for the check and its message. */
struct allowed_names {
    const char *at[NAMES_MAX];
    int count;
};

static void add_names(struct allowed_names *names, const struct object *object)
{
    const int fields = fields_count(object);
    assert(names->count + fields <= NAMES_MAX);
    for (int i = 0; i < fields; i++) names->at[names->count++] = object->fields[i].name;
}

/* Unknown keys are errors, as mistakes would go unnoticed. json NULL: no keys. */
static err check_keys(json_t *json, const struct place *place, const struct allowed_names *known,
                      const char *owner)
{
    const char *key;
    json_t *value;
    json_object_foreach(json, key, value)
    {
        if (text_find(known->at, known->count, key) >= 0) continue;
        struct text text = {.length = 0};
        text_add(&text, "unknown key ");
        text_add_quoted(&text, key);
        text_add_near(&text, key, known->at, known->count);
        text_add(&text, "; %s knows ", owner);
        text_add_names(&text, known->at, known->count);
        return fail_at(place, &text);
    }
    return OK;
}

static err fail_missing(const struct field *field, const struct place *place)
{
    struct text text = {.length = 0};
    text_add(&text, "required key \"%s\" is missing: expected ", field->name);
    text_add_expected(&text, field);
    return fail_at(place, &text);
}

static err parse_member(const struct field_input *in, void *ret)
{
    if (in->place->depth > FIELD_DEPTH_MAX) {
        struct text text = {.length = 0};
        text_add(&text, "nested deeper than %d objects", FIELD_DEPTH_MAX);
        return fail_at(in->place, &text);
    }
    return field_parse(in, ret);
}

/* Fills the members of one table from json, absent ones from their defaults. json NULL: all absent.
 */
static err fill(const struct object *object, json_t *json, const struct place *place,
                struct arena *arena, void *ret)
{
    const int count = fields_count(object);
    for (int i = 0; i < count; i++) {
        const struct field *field = &object->fields[i];
        json_t *given = json_object_get(json, field->name);
        json_t *fallback = given ? NULL : field_fallback(field);
        if (!given && !fallback) return fail_missing(field, place);

        const struct place here = place_member(place, field->name);
        const struct field_input in = {arena, field, given ? given : fallback, &here};
        err e = parse_member(&in, (uint8_t *)ret + field->offset);
        json_decref(fallback);
        TRY(e);
    }
    return OK;
}

err field_parse_object(const struct field_input *in, void *ret)
{
    const struct object *object = in->field->object;
    struct allowed_names known = {.count = 0};
    if (!json_is_object(in->json)) return fail_expected(in);
    add_names(&known, object);
    TRY(check_keys(in->json, in->place, &known, object->name));
    return fill(object, in->json, in->place, in->arena, ret);
}

/* Variants */

/* NULL: not in the list. */
static const char *words_elsewhere(const struct kinds *kinds, const char *name)
{
    for (const struct elsewhere *e = kinds->elsewhere; e && e->name; e++)
        if (strcmp(e->name, name) == 0) return e->words;
    return NULL;
}

static err find_kind(const struct field_input *in, const char *name, const struct kind **ret)
{
    const struct kinds *kinds = in->field->kinds;
    *ret = kinds_find(kinds, name);
    if (*ret) return OK;

    const char *names[KINDS_MAX];
    const int count = kinds_names(kinds, names);
    struct text text = {.length = 0};
    text_add(&text, "unknown %s ", kinds->noun);
    text_add_quoted(&text, name);
    const char *words = words_elsewhere(kinds, name);
    if (words)
        text_add(&text, ": %s", words);
    else
        text_add_near(&text, name, names, count);
    text_add(&text, "; known are ");
    text_add_names(&text, names, count);
    return fail_at(in->place, &text);
}

static err fail_key(const struct field_input *in, const char *problem)
{
    const char *names[KINDS_MAX];
    const int count = kinds_names(in->field->kinds, names);
    struct text text = {.length = 0};
    text_add(&text, "\"%s\" %s: expected one of ", in->field->kinds->key, problem);
    text_add_names(&text, names, count);
    return fail_at(in->place, &text);
}

/* From {key: name, ...}; json NULL: the kind with all its defaults. ret begins with the variant. */
static err fill_variant(const struct field_input *in, const struct kind *kind, json_t *json,
                        void *ret)
{
    const struct object *common = in->field->object, *own = kind->object;
    struct allowed_names known = {.at = {in->field->kinds->key}, .count = 1};
    add_names(&known, own);
    add_names(&known, common);
    TRY(check_keys(json, in->place, &known, own->name));

    void *attributes = arena_new(in->arena, own->size);
    TRY(fill(common, json, in->place, in->arena, ret));
    TRY(fill(own, json, in->place, in->arena, attributes));
    *(struct variant *)ret = (struct variant){.kind = kind, .attributes = attributes};
    return OK;
}

/* A bare number is checked as itself first, so that messages name the place where it stands. */
static err parse_number_kind(const struct field_input *in, void *ret)
{
    const struct kinds *kinds = in->field->kinds;
    const struct kind *kind = kinds_find(kinds, kinds->number_kind);
    assert(kind);
    const struct field *field = object_field(kind->object, kinds->number_field);
    assert(field && (field->type == FIELD_INT || field->type == FIELD_FLOAT));
    union {
        int64_t integer;
        double real;
    } checked;
    TRY(field_parse(&(struct field_input){in->arena, field, in->json, in->place}, &checked));

    json_t *json = json_object();
    bool is_made = json && json_object_set(json, kinds->number_field, in->json) == 0;
    err e = is_made ? fill_variant(in, kind, json, ret) : fail(ERR_MEMORY, "no memory for JSON");
    json_decref(json);
    return e;
}

err field_parse_variant(const struct field_input *in, void *ret)
{
    const struct kinds *kinds = in->field->kinds;
    const struct kind *kind = NULL;
    if (json_is_null(in->json) && field_is_null_by_default(in->field))
        return fill(in->field->object, NULL, in->place, in->arena, ret);
    if (json_is_number(in->json) && kinds->number_kind) return parse_number_kind(in, ret);
    if (json_is_string(in->json)) {
        const char *name = json_string_value(in->json);
        const json_type type = text_in_quotes(name);
        if (kinds->number_kind && (type == JSON_INTEGER || type == JSON_REAL))
            return fail_expected(in);
        TRY(find_kind(in, name, &kind));
        return fill_variant(in, kind, NULL, ret);
    }
    if (!json_is_object(in->json)) return fail_expected(in);

    json_t *name = json_object_get(in->json, kinds->key);
    if (!name) return fail_key(in, "is missing");
    if (!json_is_string(name)) return fail_key(in, "is no string");
    TRY(find_kind(in, json_string_value(name), &kind));
    return fill_variant(in, kind, in->json, ret);
}

/* What tasks must agree on */

static void keep_shared_of_variant(const struct field *field, json_t *json)
{
    const char *name = json_string_value(json_object_get(json, field->kinds->key));
    const struct kind *kind = name ? kinds_find(field->kinds, name) : NULL;
    if (kind) fields_keep_shared(kind->object, json);
    fields_keep_shared(field->object, json);
}

void fields_keep_shared(const struct object *object, json_t *json)
{
    for (int i = 0; i < fields_count(object); i++) {
        const struct field *field = &object->fields[i];
        json_t *value = json_object_get(json, field->name);
        if (field->may_differ)
            json_object_del(json, field->name);
        else if (field->type == FIELD_OBJECT)
            fields_keep_shared(field->object, value);
        else if (field->type == FIELD_VARIANT)
            keep_shared_of_variant(field, value);
    }
}

/* The whole */

err fields_parse(const struct object *object, json_t *json, const char *path, struct arena *arena,
                 void *ret)
{
    const struct field whole = {.name = object->name, .type = FIELD_OBJECT, .object = object};
    const struct place place = place_member(NULL, path);
    const struct field_input in = {arena, &whole, json, &place};
    void *filled = arena_new(arena, object->size); /* ret is written only on OK */
    TRY(field_parse_object(&in, filled));
    memcpy(ret, filled, object->size);
    return OK;
}

err fields_defaults(const struct object *object, struct arena *arena, void *ret)
{
    const struct place place = place_member(NULL, "");
    void *filled = arena_new(arena, object->size);
    TRY(fill(object, NULL, &place, arena, filled));
    memcpy(ret, filled, object->size);
    return OK;
}
