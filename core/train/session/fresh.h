/* fresh.h - values newer than the checkpoint that a session was restored from: those of later
 * deltas (checkpoint/delta.h), applied on top of it.
 *
 * The result of all deltas so far is one immutable object: the next delta makes a new one, in any
 * thread, and the session switches to it between two batches. So all that is computed is of one
 * step.
 */
#ifndef CORE_TRAIN_SESSION_FRESH_H
#define CORE_TRAIN_SESSION_FRESH_H

#include "core/train/session/session.h"

struct fresh;
/* Applies this delta on top of earlier ones (`before`, unchanged; NULL: this is the first). Reads
 * only immutable parts of the session. ERR_INPUT: the delta is not of this model. */
err fresh_read(const struct session *, struct bundle *, const struct fresh *before,
               struct fresh **ret);
void fresh_free(struct fresh *); /* NULL is fine */

/* The session computes with these values from now on; they are borrowed until they are replaced.
 * Only after session_restore, and between batches. */
err session_freshen(struct session *, const struct fresh *);
/* Replaces, among rows read from the checkpoint for these ids (ascending) of slice i, those that
 * have changed since */
void fresh_lay_over(const struct fresh *, int slice, const int64_t *ids, int64_t count,
                    float *rows);

#endif
