/* error.c - how a command ends: its exit code, and its last line. */
#include "cmd/cmd.h"

#include "core/base/log.h"

void print_exit_codes(FILE *out)
{
    for (const struct exit_code_row *row = exit_code_table; row->text; row++)
        fprintf(out, "  %3d  %s\n", row->code, row->text);
    fputs("\n1 to 127: the same command fails again until something is changed.\n"
          "128 and above: the same command may succeed when it is started again.\n",
          out);
}

int report_error(err e)
{
    log_clear_status();
    fprintf(stderr, "dtrain: %s\n", error_text());
    return exit_code_of(e);
}
