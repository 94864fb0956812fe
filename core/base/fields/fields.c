/* fields.c - helpers for tables that parser, flags, help and schema share. */
#include "core/base/fields/fields_inside.h"

#include <assert.h>
#include <float.h>
#include <string.h>

struct place place_member(const struct place *up, const char *name)
{
    return (struct place){.up = up, .name = name, .depth = up ? up->depth + 1 : 0};
}

struct place place_element(const struct place *up, int index)
{
    return (struct place){.up = up, .index = index, .depth = up->depth};
}

json_t *json_from_text(const char *text)
{
    const size_t flags = JSON_DECODE_ANY | JSON_REJECT_DUPLICATES;
    json_t *json = json_loads(text, flags, NULL);
    /* Bytes that are not UTF-8 may still name a file. */
    return json ? json : json_stringn_nocheck(text, strlen(text));
}

json_t *field_fallback(const struct field *field)
{
    return field->fallback ? json_from_text(field->fallback) : NULL;
}

bool field_is_null_by_default(const struct field *field)
{
    return field->fallback && strcmp(field->fallback, "null") == 0;
}

int fields_count(const struct object *object)
{
    int count = 0;
    if (!object || !object->fields) return 0;
    while (object->fields[count].name) count++;
    return count;
}

const struct field *object_field_n(const struct object *object, const char *name, size_t length)
{
    const int count = fields_count(object);
    for (int i = 0; i < count; i++) {
        const struct field *field = &object->fields[i];
        if (strlen(field->name) == length && memcmp(field->name, name, length) == 0) return field;
    }
    return NULL;
}

const struct field *object_field(const struct object *object, const char *name)
{
    return object_field_n(object, name, strlen(name));
}

bool object_needs_nothing(const struct object *object)
{
    const int count = fields_count(object);
    for (int i = 0; i < count; i++)
        if (!object->fields[i].fallback) return false;
    return true;
}

int kinds_names(const struct kinds *kinds, const char *names[KINDS_MAX])
{
    int count = 0;
    for (const struct kind *kind; (kind = kinds->at(count)); count++) {
        assert(count < KINDS_MAX);
        names[count] = kind->object->name;
    }
    return count;
}

const struct kind *kinds_find(const struct kinds *kinds, const char *name)
{
    const struct kind *kind;
    for (int i = 0; (kind = kinds->at(i)); i++)
        if (strcmp(kind->object->name, name) == 0) return kind;
    return NULL;
}

static bool has_range(const struct field *field)
{
    return field->min != 0 || field->max != 0;
}

bool field_has_min(const struct field *field)
{
    return has_range(field) && field->min > -DBL_MAX;
}

bool field_has_max(const struct field *field)
{
    return has_range(field) && field->max >= field->min && field->max < DBL_MAX;
}

int field_count_max(const struct field *field)
{
    return field->count_max > 0 ? field->count_max : FIELD_LIST_MAX;
}

int field_choices_count(const struct field *field)
{
    int count = 0;
    while (field->choices[count]) count++;
    return count;
}
