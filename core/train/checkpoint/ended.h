/* ended.h - how the last job in a checkpoint folder ended, for tasks that missed it because they
 * were suspended or disconnected. The chief writes the file as it exits; the next chief removes it
 * as it opens the folder. A chief that resumes after it was suspended may own the folder again. */
#ifndef CORE_TRAIN_CHECKPOINT_ENDED_H
#define CORE_TRAIN_CHECKPOINT_ENDED_H

#include <stdint.h>

#include "core/base/error.h"

struct ended {
    uint64_t token; /* the chief's; 0: no job has ended there, or another one runs */
    int code;
    char text[ERROR_TEXT_MAX];
};

/* Does nothing if another chief owns the folder by now. */
err ended_write(const char *directory, const struct ended *);
/* Returns token 0 if nothing is recorded, the file is invalid, or the folder has a token that is
 * neither the file's nor own_token (0: the caller has none): the job still runs, or its chief was
 * killed. ERR_IO: a disk or a server failed to answer. */
err ended_find(const char *directory, uint64_t own_token, struct ended *ret);
err ended_remove(const char *directory);

#endif
