/* ended.h - how the last job ended that had a folder of checkpoints, for tasks of it that were not
 * there to hear: they stood still, or were cut off. The chief writes it as
 * it leaves; the next one takes it away as it opens the folder, and nobody else: a chief that goes
 * on after it stood still may own the folder once more.
 */
#ifndef CORE_TRAIN_CHECKPOINT_ENDED_H
#define CORE_TRAIN_CHECKPOINT_ENDED_H

#include <stdint.h>

#include "core/base/error.h"

struct ended {
    uint64_t token; /* of the chief; 0: no job has ended there, or another one goes on */
    int code;
    char text[ERROR_TEXT_MAX];
};

/* Unless another chief owns the folder by now. */
err ended_write(const char *directory, const struct ended *);
/* None where the folder has a token that is neither its nor the caller's own (0: it has none): the
 * job goes on, or its chief was killed. ERR_IO: a disk or a server did not say. A file that says
 * nothing is none. */
err ended_find(const char *directory, uint64_t own_token, struct ended *ret);
err ended_remove(const char *directory);

#endif
