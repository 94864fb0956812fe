/* board.h - the status of all tasks of a job, readable from other threads.
 *
 * A task's loop writes about once a second: its own status and those that it receives (COUNTERS).
 * ps/0 receives those of workers, the chief all. Readers block the loop only for the time of a
 * copy.
 */
#ifndef CORE_CLUSTER_RUNNER_BOARD_H
#define CORE_CLUSTER_RUNNER_BOARD_H

#include <jansson.h>

#include "core/base/counters.h"
#include "core/cluster/description/cluster_spec.h"

struct board;
/* Tasks of one process may share a board. */
err board_open(struct board **ret);
void board_close(struct board *); /* NULL is fine */

/* Sets the status of a task. ERR_MEMORY: not set. */
err board_put(struct board *, enum job, int task, const struct task_status *);
/* The job has been resized: forgets tasks that take part no more. */
void board_limit(struct board *, const struct membership *);

/* Notes that the loop is running; cheap. */
void board_turn(struct board *, uint64_t now_ms);
uint64_t board_turned_ms(const struct board *); /* when that was last noted */

/* All statuses, ps first: malloc'ed; NULL: no memory, and *ret_count is 0. only_own: tasks of this
 * process. */
struct task_status *board_copy(struct board *, bool only_own, int *ret_count);
/* The placement of variables as JSON text (placement.h). set takes ownership; NULL: not known.
 * Returned malloc'ed; NULL: not known, or no memory. */
void board_set_placement(struct board *, char *text);
char *board_placement(struct board *);
void board_note_own(struct board *, enum job, int task);

/* {"tasks": [...], "next": n} for visitors and web pages (visit.h), of at most `max` tasks from
 * number `from` on, each also with what it counted in the last 15 to 30 seconds ("recent": {"secs",
 * "counters"}). now_ms: for their age. NULL: no memory. */
json_t *board_json(struct board *, bool only_own, uint64_t from, int max, uint64_t now_ms);

#endif
