/* body.c - see body.h. */
#include "core/cluster/visit/body.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/json_foreign.h"
#include "core/base/number_bytes.h"
#include "core/cluster/visit/value.h"

err visit_body_split(const void *body, size_t bytes, struct visit_body *ret)
{
    const unsigned char *end = body ? memchr(body, 0, bytes) : NULL;
    *ret = (struct visit_body){.text = body, .text_bytes = body ? bytes : 0};
    if (!end) return OK;
    ret->text_bytes = (size_t)(end - (const unsigned char *)body);
    ret->numbers = end + 1;
    const size_t left = bytes - ret->text_bytes - 1;
    ret->count = left / sizeof(double);
    return left % sizeof(double) ? fail(ERR_INPUT, "the last number is cut off") : OK;
}

double visit_body_number(const struct visit_body *body, size_t index)
{
    return number_get(body->numbers + index * sizeof(double));
}

unsigned char *visit_body_put(unsigned char *at, double number)
{
    number_put(at, number);
    return at + sizeof number;
}

unsigned char *visit_body_make(json_t *json, size_t count, size_t *ret_bytes,
                               unsigned char **ret_numbers)
{
    const size_t text_bytes = json_dumpb(json, NULL, 0, JSON_COMPACT);
    const size_t numbers_bytes = count ? 1 + count * sizeof(double) : 0;
    unsigned char *body = text_bytes ? malloc(text_bytes + numbers_bytes) : NULL;
    if (!body) return NULL;
    json_dumpb(json, (char *)body, text_bytes, JSON_COMPACT);
    *ret_bytes = text_bytes + numbers_bytes;
    if (count) body[text_bytes] = 0;
    *ret_numbers = body + text_bytes + (count ? 1 : 0);
    return body;
}

/* ---- asks ---- */

static err make_ask(json_t *ask, const struct value *value, unsigned char **ret, size_t *ret_bytes)
{
    unsigned char *at;
    *ret = visit_body_make(ask, (size_t)value->count, ret_bytes, &at);
    if (!*ret) return fail(ERR_MEMORY, "no memory for the request");
    for (int64_t i = 0; i < value->count; i++) at = visit_body_put(at, value->at[i]);
    return OK;
}

err visit_body_of_ask(json_t *ask, unsigned char **ret, size_t *ret_bytes)
{
    json_t *json = json_object_get(ask, "value");
    struct value value = {0};
    if (!json) return make_ask(ask, &value, ret, ret_bytes);
    TRY(value_read(json, &value));
    json_t *copy = json_copy(ask);
    json_object_del(copy, "value");
    json_object_set_new(copy, "shape", value_shape(&value.shape));
    const err e = make_ask(copy, &value, ret, ret_bytes);
    json_decref(copy);
    value_free(&value);
    return e;
}

/* ---- answers ---- */

/* false: there are fewer. */
static bool give_values(json_t *part, const struct visit_body *body, size_t *used)
{
    const json_int_t count = json_integer_value(json_object_get(part, "count"));
    if (count < 0 || (size_t)count > body->count - *used) return false;
    json_t *values = json_array();
    for (json_int_t i = 0; i < count; i++)
        json_array_append_new(values, value_number(visit_body_number(body, (*used)++)));
    json_object_del(part, "count");
    return json_object_set_new(part, "values", values) == 0;
}

json_t *visit_body_answer(const void *bytes, size_t count)
{
    struct visit_body body;
    json_t *json, *part;
    if (visit_body_split(bytes, count, &body)) return NULL;
    if (json_read_foreign(body.text, body.text_bytes, 0, &json)) return NULL;
    size_t i, used = 0;
    bool is_whole = json_is_object(json);
    json_array_foreach(json_object_get(json, "parts"), i, part) is_whole =
        is_whole && give_values(part, &body, &used);
    if (is_whole && used == body.count) return json;
    json_decref(json);
    return NULL;
}
