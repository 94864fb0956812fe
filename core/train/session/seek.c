/* seek.c - a worker's place in its stream of batches, moved.
 *
 * The stream is a function of the index (source.h), and random draws are numbered by the same
 * index (step.c): a run that was restored drops out what the
 * undisturbed one would have dropped out.
 */
#include "core/train/session/session_inside.h"

/* A batch that was sent ahead is of the old place. */
err session_seek(struct session *s, uint64_t batch)
{
    if (batch == s->batches) return OK;
    const err e = s->train_data->calls->seek(s->train_data, batch);
    if (e) return fail_prefix(e, "data.train");
    s->sent_rows = 0;
    s->batches = batch;
    return OK;
}
