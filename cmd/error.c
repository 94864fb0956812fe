/* error.c - how a command ends: its exit code, and its last line. */
#include "cmd/cmd.h"

#include "core/base/log.h"

static const struct {
    int code;
    const char *text;
} codes[] = {
    {EXIT_DONE, "done"},
    {EXIT_FAILED, "something on this host failed: memory, a device, a file"},
    {EXIT_INPUT, "the command line, the spec or the data are wrong"},
    {EXIT_NUMBER, "the loss is not a number or infinite"},
    {EXIT_LOST_PEER, "another task was lost or refused"},
    {EXIT_TIMEOUT, "a limit on waiting was reached"},
    {EXIT_INTERRUPTED, "interrupted (SIGINT)"},
    {EXIT_LOST_DEVICE, "a GPU broke while it worked"},
    {EXIT_TERMINATED, "asked to end (SIGTERM)"},
};

enum { CODE_COUNT = sizeof codes / sizeof *codes };

const char *exit_code_text(int code)
{
    for (int i = 0; i < CODE_COUNT; i++)
        if (codes[i].code == code) return codes[i].text;
    return NULL;
}

void print_exit_codes(FILE *out)
{
    for (int i = 0; i < CODE_COUNT; i++) fprintf(out, "  %3d  %s\n", codes[i].code, codes[i].text);
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
