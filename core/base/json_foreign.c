/* json_foreign.c - see json_foreign.h. */
#include "core/base/json_foreign.h"

#include <stdbool.h>

struct many {
    size_t lists, commas;
};

static struct many count(const char *text, size_t bytes)
{
    struct many many = {0};
    bool is_in_text = false;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '"') is_in_text = !is_in_text;
        if (is_in_text && text[i] == '\\') i++;
        if (is_in_text) continue;
        many.lists += text[i] == '[' || text[i] == '{';
        many.commas += text[i] == ',';
    }
    return many;
}

err json_read_foreign(const void *text, size_t bytes, size_t flags, json_t **ret)
{
    json_error_t error;
    const struct many many = text ? count(text, bytes) : (struct many){0};
    *ret = NULL;
    if (!text) return fail(ERR_INPUT, "there is no text");
    if (many.lists > FOREIGN_LISTS_MAX || many.commas > FOREIGN_VALUES_MAX)
        return fail(ERR_INPUT, "%zu lists and objects, and %zu commas: at most %d and %d",
                    many.lists, many.commas, (int)FOREIGN_LISTS_MAX, (int)FOREIGN_VALUES_MAX);
    *ret = json_loadb(text, bytes, flags, &error);
    return *ret ? OK : fail(ERR_INPUT, "%.100s", error.text);
}
