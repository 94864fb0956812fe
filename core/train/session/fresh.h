/* fresh.h - values newer than those of the checkpoint that a session was restored from: what
 * deltas (checkpoint/delta.h) have brought since, laid over it.
 *
 * All that the deltas so far have brought is one thing, which is never changed: the next one makes
 * another, in any thread, and the session changes over between two batches. So what is computed is
 * always of one step.
 */
#ifndef CORE_TRAIN_SESSION_FRESH_H
#define CORE_TRAIN_SESSION_FRESH_H

#include "core/train/session/session.h"

struct fresh;
/* What the delta brings, over what those before it brought (NULL: it is the first), which is left
 * as it is. Of the session what does not change is looked at. ERR_INPUT: it is none of this model.
 */
err fresh_read(const struct session *, struct bundle *, const struct fresh *before,
               struct fresh **ret);
void fresh_free(struct fresh *); /* NULL is fine */

/* With session_restore: these values from now on, borrowed until others come. Between batches */
err session_freshen(struct session *, const struct fresh *);
/* Over rows that came from the checkpoint, of the ids that were asked for of slice i, which ascend
 */
void fresh_lay_over(const struct fresh *, int slice, const int64_t *ids, int64_t count,
                    float *rows);

#endif
