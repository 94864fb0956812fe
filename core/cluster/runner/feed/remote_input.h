/* remote_input.h - a worker's side of feed.h: a source whose batches the chief reads.
 *
 * A thread with a loop of its own keeps data.prefetch batches asked for or there, or those of a
 * push where these are more, and makes the connection anew when it is lost.
 */
#ifndef CORE_CLUSTER_RUNNER_FEED_REMOTE_INPUT_H
#define CORE_CLUSTER_RUNNER_FEED_REMOTE_INPUT_H

#include "core/cluster/runner/task.h"
#include "core/data/source.h"
#include "core/train/spec/spec.h"

struct remote_input;

/* Waits for the chief, says so now and then, and completes the spec by what the data say of
 * themselves. The spec and what the options name are borrowed. ERR_TIMEOUT: the chief did not come
 * within --start_timeout; ERR_INPUT: it has another spec or cluster. */
err remote_input_open(const struct task_options *, struct spec *, struct remote_input **ret);
void remote_input_close(struct remote_input *); /* NULL is fine */
struct batch_source *remote_input_source(struct remote_input *);

/* Whether the next batches are there, or what is wrong with them, after a wait of at most so long.
 * count: as many as can lie ready are enough. */
bool remote_input_await(struct remote_input *, int count, int timeout_ms);
/* They are not: says so now and then. ERR_PEER, for as long as it is worth waiting; then
 * ERR_TIMEOUT. */
err remote_input_note_late(struct remote_input *);

#endif
