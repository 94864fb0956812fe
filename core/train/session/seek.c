/* seek.c - a worker's place in its stream of batches, moved.
 *
 * The stream is a function of the index (data.h), so moving is opening it anew. Random draws are
 * numbered by the same index (step.c): a run that was restored drops out what the
 * undisturbed one would have dropped out.
 */
#include "core/train/session/session_inside.h"

/* The old stream goes only when the new one is there: a session whose seek failed stands where it
 * stood. */
err session_seek(struct session *s, uint64_t batch)
{
    if (batch == s->batches) return OK;
    struct pipeline *pipeline;
    TRY(session_open_pipeline(s, batch, &pipeline));
    pipeline_close(s->pipeline);
    s->pipeline = pipeline;
    s->sent_rows = 0;
    s->batches = batch;
    return OK;
}
