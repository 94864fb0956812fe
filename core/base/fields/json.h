/* json.h - builds JSON lists and objects that are complete, or NULL after any failure. */
#ifndef CORE_BASE_FIELDS_JSON_H
#define CORE_BASE_FIELDS_JSON_H

#include <jansson.h>

/* Both take ownership of the value. If it is NULL, or memory runs out, the whole is freed and
 * becomes NULL. */
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
