/* error.c - the last line of a command that failed. */
#include "cmd/cmd.h"

#include "core/base/log.h"

int report_error(err e)
{
    if (log_is_terminal()) fputs("\r\033[K", stderr);
    fprintf(stderr, "dtrain: %s\n", error_text());
    return exit_code_of(e);
}
