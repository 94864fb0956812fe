/* fed.h - a worker's side of feed.h: a source whose batches the chief reads.
 *
 * A thread with a loop of its own keeps data.prefetch batches asked for or there, or those of a
 * push where these are more, and makes the connection anew when it is lost.
 */
#ifndef CORE_CLUSTER_TASK_FEED_FED_H
#define CORE_CLUSTER_TASK_FEED_FED_H

#include "core/cluster/task/task.h"
#include "core/data/source.h"
#include "core/train/spec/spec.h"

struct fed;

/* Waits for the chief, says so now and then, and completes the spec by what the data say of
 * themselves. The spec and what the options name are borrowed. ERR_TIMEOUT: the chief did not come
 * within --start_timeout; ERR_INPUT: it has another spec or cluster. */
err fed_open(const struct task_options *, struct spec *, struct fed **ret);
void fed_close(struct fed *); /* NULL is fine */
struct batch_source *fed_source(struct fed *);

/* Whether the next batches are there, or what is wrong with them, after a wait of at most so long.
 * count: as many as can lie ready are enough. */
bool fed_await(struct fed *, int count, int timeout_ms);
/* They are not: says so now and then. ERR_PEER, for as long as it is worth waiting; then
 * ERR_TIMEOUT. */
err fed_note_late(struct fed *);

#endif
