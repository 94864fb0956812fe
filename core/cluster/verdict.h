/* verdict.h - how a job ends: one code and one text for all of its tasks.
 *
 * The codes are exit codes as schedulers expect them: 1 to 127 permanent, 128 and above worth
 * another try.
 */
#ifndef CORE_CLUSTER_VERDICT_H
#define CORE_CLUSTER_VERDICT_H

#include "core/base/error.h"

enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,      /* memory, device, I/O: something here is broken */
    EXIT_INPUT = 2,       /* flags, spec or data are wrong */
    EXIT_NUMBER = 3,      /* the loss is NaN or infinite */
    EXIT_LOST_PEER = 128, /* a task was lost or refused */
    EXIT_TIMEOUT = 129,   /* a named limit on waiting was reached */
    EXIT_INTERRUPTED = 130,
    EXIT_LOST_DEVICE = 131, /* a GPU broke while it worked */
    EXIT_TERMINATED = 143,
};

int exit_code_of(err);

#endif
