/* schema.c - the tables as JSON Schema (2020-12), for editors and other programs.
 *
 * Each list of kinds is one definition under $defs, however often it is used, so that tables may be
 * recursive. jansson's setters take ownership of values and accept NULL: without memory the result
 * is NULL or lacks members.
 */
#include "core/base/fields/fields_inside.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { DEFINITIONS_MAX = 64, DEFINITION_NAME_MAX = 64 };

struct definition {
    const struct kinds *kinds;
    const struct object *common;
    char name[DEFINITION_NAME_MAX];
};

struct schema {
    json_t *definitions; /* "$defs" */
    struct definition known[DEFINITIONS_MAX];
    int count;
};

static json_t *object_schema(struct schema *, const struct object *);
static json_t *variant_schema(struct schema *, const struct kinds *, const struct object *common);

static json_t *number(double value)
{
    const bool is_integer = value == floor(value) && fabs(value) < 1e15;
    return is_integer ? json_integer((json_int_t)value) : json_real(value);
}

static json_t *number_schema(const struct field *field, const char *type)
{
    json_t *schema = json_pack("{s:s}", "type", type);
    if (field_has_min(field)) json_object_set_new(schema, "minimum", number(field->min));
    if (field_has_max(field)) json_object_set_new(schema, "maximum", number(field->max));
    return schema;
}

static json_t *list_schema(const struct field *field, json_t *items)
{
    return json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items", items, "minItems",
                     field->count_min, "maxItems", field_count_max(field));
}

static json_t *choices_schema(const struct field *field)
{
    json_t *names = json_array();
    for (int i = 0; field->choices[i]; i++)
        json_array_append_new(names, json_string(field->choices[i]));
    return json_pack("{s:o}", "enum", names);
}

/* A list, or a single integer where the parser accepts one. */
static json_t *integers_schema(const struct field *field)
{
    json_t *list = list_schema(field, number_schema(field, "integer"));
    if (field->count_min > 1) return list;
    return json_pack("{s:[o, o]}", "anyOf", list, number_schema(field, "integer"));
}

static json_t *strings_schema(const struct field *field)
{
    return list_schema(field, json_pack("{s:s}", "type", "string"));
}

static json_t *files_schema(const struct field *field)
{
    struct field list = *field;
    list.count_min = 1;
    return json_pack("{s:[o, {s:s}]}", "anyOf", strings_schema(&list), "type", "string");
}

static json_t *type_schema(struct schema *schema, const struct field *field)
{
    switch (field->type) {
    case FIELD_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case FIELD_INT:
        return number_schema(field, "integer");
    case FIELD_FLOAT:
    case FIELD_SECONDS:
        return number_schema(field, "number");
    case FIELD_STRING:
        return json_pack("{s:s}", "type", "string");
    case FIELD_ENUM:
        return choices_schema(field);
    case FIELD_INTS:
        return integers_schema(field);
    case FIELD_FLOATS:
        return list_schema(field, number_schema(field, "number"));
    case FIELD_STRINGS:
        return strings_schema(field);
    case FIELD_FILES:
        return files_schema(field);
    case FIELD_OBJECT:
        return object_schema(schema, field->object);
    case FIELD_OBJECTS:
        return list_schema(field, object_schema(schema, field->object));
    case FIELD_VARIANT:
        return variant_schema(schema, field->kinds, field->object);
    case FIELD_VARIANTS:
        return list_schema(field, variant_schema(schema, field->kinds, field->object));
    default:
        return json_object(); /* anything */
    }
}

static json_t *field_schema(struct schema *schema, const struct field *field)
{
    json_t *result = type_schema(schema, field);
    if (field_is_null_by_default(field))
        result = json_pack("{s:[o, {s:s}]}", "anyOf", result, "type", "null");
    if (field->help) json_object_set_new(result, "description", json_string(field->help));
    if (field->fallback) json_object_set_new(result, "default", field_fallback(field));
    return result;
}

static void add_fields(struct schema *schema, const struct object *object, json_t *properties,
                       json_t *required)
{
    const int count = fields_count(object);
    for (int i = 0; i < count; i++) {
        const struct field *field = &object->fields[i];
        json_object_set_new(properties, field->name, field_schema(schema, field));
        if (!field->fallback) json_array_append_new(required, json_string(field->name));
    }
}

static json_t *closed_object(const char *summary, json_t *properties, json_t *required)
{
    json_t *result = json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties,
                               "required", required, "additionalProperties", 0);
    if (summary) json_object_set_new(result, "description", json_string(summary));
    return result;
}

/* Exactly one member of the group that a field begins; NULL: the field does not begin a required
 * group. */
static json_t *one_of_group(const struct object *object, int begin)
{
    const char *group = object->fields[begin].group;
    if (!object->fields[begin].group_is_required) return NULL;
    for (int i = 0; i < begin; i++)
        if (object->fields[i].group && strcmp(object->fields[i].group, group) == 0) return NULL;
    json_t *members = json_array();
    for (int i = begin; i < fields_count(object); i++)
        if (object->fields[i].group && strcmp(object->fields[i].group, group) == 0)
            json_array_append_new(members,
                                  json_pack("{s:[s]}", "required", object->fields[i].name));
    return json_pack("{s:o}", "oneOf", members);
}

/* "oneOf" for a required group, or "allOf" of these for several */
static void require_group(const struct object *object, json_t *schema)
{
    json_t *groups = json_array();
    for (int i = 0; i < fields_count(object); i++) {
        json_t *group = one_of_group(object, i);
        if (group) json_array_append_new(groups, group);
    }
    if (json_array_size(groups) == 1) json_object_update(schema, json_array_get(groups, 0));
    if (json_array_size(groups) > 1) json_object_set(schema, "allOf", groups);
    json_decref(groups);
}

static json_t *object_schema(struct schema *schema, const struct object *object)
{
    json_t *properties = json_object(), *required = json_array();
    add_fields(schema, object, properties, required);
    json_t *result = closed_object(object->summary, properties, required);
    require_group(object, result);
    return result;
}

/* Variants */

static json_t *kind_schema(struct schema *schema, const struct definition *of,
                           const struct object *own)
{
    json_t *properties = json_pack("{s:{s:s}}", of->kinds->key, "const", own->name);
    json_t *required = json_pack("[s]", of->kinds->key);
    add_fields(schema, own, properties, required);
    add_fields(schema, of->common, properties, required);
    json_t *result = closed_object(own->summary, properties, required);
    require_group(own, result);
    return result;
}

/* A bare name, of a kind without required fields; NULL: there is no such kind. */
static json_t *names_schema(const struct definition *of)
{
    json_t *names = json_array();
    const struct kind *kind;
    for (int i = 0; object_needs_nothing(of->common) && (kind = of->kinds->at(i)); i++)
        if (object_needs_nothing(kind->object))
            json_array_append_new(names, json_string(kind->object->name));
    if (json_array_size(names) > 0) return json_pack("{s:o}", "enum", names);
    json_decref(names);
    return NULL;
}

/* A bare number has the limits of the field that it stands for. */
static json_t *bare_number_schema(const struct kinds *kinds)
{
    const struct kind *kind = kinds_find(kinds, kinds->number_kind);
    assert(kind);
    const struct field *field = object_field(kind->object, kinds->number_field);
    assert(field);
    return number_schema(field, field->type == FIELD_INT ? "integer" : "number");
}

/* Any name other than the known ones, which have schemas of their own. */
static json_t *more_schema(const struct kinds *kinds)
{
    json_t *names = json_array();
    const struct kind *kind;
    for (int i = 0; (kind = kinds->at(i)); i++)
        json_array_append_new(names, json_string(kind->object->name));
    return json_pack("{s:s, s:{s:{s:s, s:{s:o}}}, s:[s]}", "type", "object", "properties",
                     kinds->key, "type", "string", "not", "enum", names, "required", kinds->key);
}

static json_t *define(struct schema *schema, const struct definition *of)
{
    json_t *ways = json_array();
    const struct kind *kind;
    for (int i = 0; (kind = of->kinds->at(i)); i++)
        json_array_append_new(ways, kind_schema(schema, of, kind->object));
    if (of->kinds->beside) json_array_append_new(ways, object_schema(schema, of->kinds->beside));
    if (of->kinds->has_more) json_array_append_new(ways, more_schema(of->kinds));
    json_t *names = names_schema(of);
    if (names) json_array_append_new(ways, names);
    if (of->kinds->number_kind) json_array_append_new(ways, bare_number_schema(of->kinds));
    return json_pack("{s:o}", "anyOf", ways);
}

/* "data format" becomes data_format, or data_format_2 if taken: names are part of a URI. */
static void set_name(struct definition *added, json_t *taken)
{
    char noun[DEFINITION_NAME_MAX - 4]; /* leaves room for a number */
    snprintf(noun, sizeof noun, "%s", added->kinds->noun);
    for (char *c = noun; *c; c++)
        if (*c == ' ') *c = '_';
    snprintf(added->name, sizeof added->name, "%s", noun);
    for (int i = 2; json_object_get(taken, added->name) && i <= DEFINITIONS_MAX; i++)
        snprintf(added->name, sizeof added->name, "%s_%d", noun, i);
}

/* Reserves the definition before it is filled, since it may refer to itself. */
static const struct definition *reserve(struct schema *schema, const struct kinds *kinds,
                                        const struct object *common)
{
    assert(schema->count < DEFINITIONS_MAX);
    struct definition *added = &schema->known[schema->count++];
    *added = (struct definition){.kinds = kinds, .common = common};
    set_name(added, schema->definitions);
    json_object_set_new(schema->definitions, added->name, json_true());
    return added;
}

static json_t *variant_schema(struct schema *schema, const struct kinds *kinds,
                              const struct object *common)
{
    const struct definition *of = NULL;
    for (int i = 0; i < schema->count; i++)
        if (schema->known[i].kinds == kinds && schema->known[i].common == common)
            of = &schema->known[i];
    if (!of) {
        of = reserve(schema, kinds, common);
        json_object_set_new(schema->definitions, of->name, define(schema, of));
    }
    return json_pack("{s:s+}", "$ref", "#/$defs/", of->name);
}

json_t *fields_schema(const struct object *object)
{
    struct schema schema = {.definitions = json_object()};
    json_t *result = object_schema(&schema, object);
    json_object_set_new(result, "$schema",
                        json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(result, "title", json_string(object->name));
    json_object_set_new(result, "$defs", schema.definitions);
    return result;
}
