/* json.h - lists and objects of JSON that are written: all of what was put in, or NULL. */
#ifndef CORE_BASE_FIELDS_JSON_H
#define CORE_BASE_FIELDS_JSON_H

#include <jansson.h>

/* Both take the value. Where that is NULL, or there is no memory, so is the whole from now on. */
static inline void json_append(json_t **list, json_t *value)
{
    if (!json_array_append_new(*list, value)) return;
    json_decref(*list);
    *list = NULL;
}

static inline void json_put(json_t **object, const char *name, json_t *value)
{
    if (!json_object_set_new(*object, name, value)) return;
    json_decref(*object);
    *object = NULL;
}

#endif
