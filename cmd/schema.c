/* schema.c - `dtrain schema`: a JSON Schema of the spec, from the tables that parse it. */
#include "cmd/cmd.h"

int cmd_schema(int argc, char **argv)
{
    if (argc > 2)
        return report_error(fail(ERR_INPUT, "schema: unexpected argument \"%.64s\"", argv[2]));
    json_t *schema = fields_schema(&spec_object);
    bool is_complete = schema && !json_object_set_new(schema, "title", json_string("dtrain spec"));
    err e = is_complete ? OK : fail(ERR_MEMORY, "no memory for the schema");
    if (!e && json_dumpf(schema, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER))
        e = fail(ERR_MEMORY, "no memory to print the schema");
    json_decref(schema);
    if (e) return report_error(e);
    putchar('\n');
    return EXIT_DONE;
}
