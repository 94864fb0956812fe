/* verdict.h - how a job ends: one code and one text for all of its tasks.
 *
 * The codes are exit codes as schedulers expect them: 1 to 127 permanent, 128 and above retryable.
 * There are no others; codes from other tasks are checked.
 */
#ifndef CORE_CLUSTER_ROLE_VERDICT_H
#define CORE_CLUSTER_ROLE_VERDICT_H

#include "core/cluster/role/role.h"

enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,      /* memory, device or I/O failure of this task */
    EXIT_INPUT = 2,       /* flags, spec or data are wrong */
    EXIT_NUMBER = 3,      /* the loss is NaN or infinite */
    EXIT_LOST_PEER = 128, /* a task was lost or refused, or violated the protocol */
    EXIT_TIMEOUT = 129,   /* a named limit on waiting was reached */
    EXIT_INTERRUPTED = 130,
    EXIT_LOST_DEVICE = 131, /* a GPU failed at run time */
    EXIT_TERMINATED = 143,
};

/* In the order of the codes; ends with a row without text. */
struct exit_code_row {
    int code;
    const char *text; /* for a person */
};
extern const struct exit_code_row exit_code_table[];
const char *exit_code_text(int code); /* NULL: not in the table */
bool exit_code_is_retryable(int code);

int exit_code_of(err);

/* Code and text of another task's VERDICT or STOP. A code that is not in the table becomes
 * EXIT_LOST_PEER, and the text says so. */
int message_verdict(const struct message *, uint32_t exit_code, char ret_text[ACTION_TEXT_MAX]);

#endif
