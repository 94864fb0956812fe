/* ended.h - how the last job in a folder of checkpoints ended, for its tasks that were not there to
 * hear it: they were suspended, or cut off. The chief writes it as it leaves; only the next chief
 * removes it, as it opens the folder. A chief that continues after it was suspended may own the
 * folder once more. */
#ifndef CORE_TRAIN_CHECKPOINT_ENDED_H
#define CORE_TRAIN_CHECKPOINT_ENDED_H

#include <stdint.h>

#include "core/base/error.h"

struct ended {
    uint64_t token; /* of the chief; 0: no job has ended there, or another one goes on */
    int code;
    char text[ERROR_TEXT_MAX];
};

/* Written unless another chief owns the folder by now. */
err ended_write(const char *directory, const struct ended *);
/* Finds none where the folder has a token that is neither that of the file nor the caller's (0: it
 * has none): the job continues, or its chief was killed. ERR_IO: a disk or a server did not say. A
 * file that cannot be understood counts as none. */
err ended_find(const char *directory, uint64_t own_token, struct ended *ret);
err ended_remove(const char *directory);

#endif
