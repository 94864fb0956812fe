/* remote_input.h - the worker's side of feed.h: a source whose batches the chief reads.
 *
 * A thread with a loop of its own keeps data.prefetch batches requested or ready, or those of a
 * push if these are more, and reconnects when the connection is lost.
 */
#ifndef CORE_CLUSTER_RUNNER_FEED_REMOTE_INPUT_H
#define CORE_CLUSTER_RUNNER_FEED_REMOTE_INPUT_H

#include "core/cluster/runner/task.h"
#include "core/data/source.h"
#include "core/train/spec/spec.h"

struct remote_input;

/* Waits for the chief, logging that now and then, and sets in the spec what was measured of the
 * data. The spec and the options' pointers are borrowed. ERR_TIMEOUT: no chief within
 * --start_timeout; ERR_INPUT: it has another spec or cluster. */
err remote_input_open(const struct task_options *, struct spec *, struct remote_input **ret);
void remote_input_close(struct remote_input *); /* NULL is fine */
struct batch_source *remote_input_source(struct remote_input *);

/* Waits at most timeout_ms until the next `count` batches, or as many as can be kept ready, have
 * come, or an error. false: not yet. */
bool remote_input_await(struct remote_input *, int count, int timeout_ms);
/* Logs now and then that they have not come. ERR_PEER while waiting makes sense, then ERR_TIMEOUT.
 */
err remote_input_note_late(struct remote_input *);

#endif
