/* verdict.c - see verdict.h. */
#include "core/cluster/role/verdict.h"

#include <stdio.h>

const struct exit_code_row exit_code_table[] = {
    {EXIT_DONE, "done"},
    {EXIT_FAILED, "something on this host failed: memory, a device, a file"},
    {EXIT_INPUT, "the command line, the spec or the data are wrong"},
    {EXIT_NUMBER, "the loss is not a number or infinite"},
    {EXIT_LOST_PEER, "another task was lost or refused"},
    {EXIT_TIMEOUT, "a limit on waiting was reached"},
    {EXIT_INTERRUPTED, "interrupted (SIGINT)"},
    {EXIT_LOST_DEVICE, "a GPU broke while it worked"},
    {EXIT_TERMINATED, "asked to end (SIGTERM)"},
    {0},
};

const char *exit_code_text(int code)
{
    for (const struct exit_code_row *row = exit_code_table; row->text; row++)
        if (row->code == code) return row->text;
    return NULL;
}

bool exit_code_is_retryable(int code)
{
    return code >= EXIT_LOST_PEER;
}

int message_verdict(const struct message *m, uint32_t exit_code, char ret_text[ACTION_TEXT_MAX])
{
    enum { QUOTED_MAX = 160 };
    char text[ACTION_TEXT_MAX];
    message_text(m, text);
    const bool is_ours = exit_code <= EXIT_TERMINATED && exit_code_text((int)exit_code);
    if (is_ours)
        snprintf(ret_text, ACTION_TEXT_MAX, "%s", text);
    else
        snprintf(ret_text, ACTION_TEXT_MAX, "%.*s (sent with exit code %u, which no task has)",
                 QUOTED_MAX, text[0] ? text : "no reason was given", exit_code);
    return is_ours ? (int)exit_code : EXIT_LOST_PEER;
}

int exit_code_of(err e)
{
    switch (e) {
    case OK:
        return EXIT_DONE;
    case ERR_INPUT:
        return EXIT_INPUT;
    case ERR_NUMBER:
        return EXIT_NUMBER;
    case ERR_PEER:
    case ERR_PROTOCOL:
        return EXIT_LOST_PEER;
    case ERR_LOST:
        return EXIT_LOST_DEVICE;
    case ERR_TIMEOUT:
        return EXIT_TIMEOUT;
    case ERR_STOPPED:
        return EXIT_TERMINATED;
    case ERR_MEMORY:
    case ERR_IO:
    case ERR_DEVICE:
        break;
    }
    return EXIT_FAILED;
}
