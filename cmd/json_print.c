/* json_print.c - see json_print.h. */
#include "cmd/json_print.h"

#include <stdbool.h>
#include <stdio.h>

err json_print(json_t *json)
{
    const bool is_written = json && json_dumpf(json, stdout, JSON_INDENT(2)) == 0;
    json_decref(json);
    if (!is_written) return fail(ERR_MEMORY, "no memory for the JSON");
    putchar('\n');
    return OK;
}
