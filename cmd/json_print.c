/* json_print.c - see json_print.h. */
#include "cmd/json_print.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/files/url.h"

err json_print(json_t *json)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!text) return fail(ERR_MEMORY, "no memory for the JSON");
    urls_hide(text);
    puts(text);
    free(text);
    return OK;
}
