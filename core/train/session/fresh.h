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
/* Lays what this delta brings over what earlier ones brought (`before`, left unchanged; NULL: this
 * is the first). Reads only what never changes of the session. ERR_INPUT: the delta is not of this
 * model. */
err fresh_read(const struct session *, struct bundle *, const struct fresh *before,
               struct fresh **ret);
void fresh_free(struct fresh *); /* NULL is fine */

/* The session computes with these values from now on; they are borrowed until they are replaced.
 * Only after session_restore, and between batches. */
err session_freshen(struct session *, const struct fresh *);
/* Replaces, in rows read from the checkpoint for these ids (ascending) of slice i, those that have
 * changed since */
void fresh_lay_over(const struct fresh *, int slice, const int64_t *ids, int64_t count,
                    float *rows);

#endif
