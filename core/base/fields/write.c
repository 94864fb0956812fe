/* write.c - an object back to JSON; and its fields by name. */
#include <assert.h>

#include "core/base/fields/fields_inside.h"

static json_t *list_of_texts(const struct strings *texts)
{
    json_t *list = json_array();
    for (int i = 0; i < texts->count; i++) json_array_append_new(list, json_string(texts->at[i]));
    return list;
}

static json_t *list_of_numbers(const struct floats *numbers)
{
    json_t *list = json_array();
    for (int i = 0; i < numbers->count; i++) json_array_append_new(list, json_real(numbers->at[i]));
    return list;
}

static json_t *list_of_integers(const struct ints *integers)
{
    json_t *list = json_array();
    for (int i = 0; i < integers->count; i++)
        json_array_append_new(list, json_integer((json_int_t)integers->at[i]));
    return list;
}

static json_t *value_of(const struct field *field, const char *at)
{
    switch (field->type) {
    case FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case FIELD_INT:
        return json_integer((json_int_t) * (const int64_t *)at);
    case FIELD_FLOAT:
        return json_real(*(const double *)at);
    case FIELD_ENUM:
        return json_string(field->choices[*(const int *)at]);
    case FIELD_STRING:
        return *(const char *const *)at ? json_string(*(const char *const *)at) : json_null();
    case FIELD_STRINGS:
        return list_of_texts((const struct strings *)at);
    case FIELD_INTS:
        return list_of_integers((const struct ints *)at);
    case FIELD_FLOATS:
        return list_of_numbers((const struct floats *)at);
    case FIELD_JSON:
        return *(json_t *const *)at ? json_deep_copy(*(json_t *const *)at) : json_null();
    default:
        assert(false); /* other types are not supported */
        return NULL;
    }
}

void *fields_at(const struct object *object, const void *of, const char *name)
{
    return (char *)of + object_field(object, name)->offset;
}

void *fields_find(const struct object *object, const void *of, const char *name,
                  enum field_type type)
{
    const struct field *field = object_field(object, name);
    return field && field->type == type ? (char *)of + field->offset : NULL;
}

const char *fields_string(const struct object *object, const void *of, const char *name)
{
    return *(const char *const *)fields_at(object, of, name);
}

json_t *fields_write(const struct object *object, const void *from)
{
    json_t *json = json_object();
    for (const struct field *field = object->fields; json && field && field->name; field++)
        json_object_set_new(json, field->name, value_of(field, (const char *)from + field->offset));
    return json;
}
