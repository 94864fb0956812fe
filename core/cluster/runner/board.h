/* board.h - what is known of the tasks of a job, for who looks from other threads.
 *
 * The loop of a task writes: of itself and of those that tell it (COUNTERS), about once a second.
 * ps/0 hears the workers, the chief hears all. Looking never holds the loop up for longer than a
 * copy takes.
 */
#ifndef CORE_CLUSTER_RUNNER_BOARD_H
#define CORE_CLUSTER_RUNNER_BOARD_H

#include <jansson.h>

#include "core/base/counters.h"
#include "core/cluster/description/cluster_spec.h"

struct board;
/* Two tasks of one process may share it. */
err board_open(struct board **ret);
void board_close(struct board *); /* NULL is fine */

/* ERR_MEMORY: nothing is put up. */
err board_put(struct board *, enum job, int task, const struct task_status *);
/* The job has become so many tasks: others are forgotten. */
void board_limit(struct board *, const struct membership *);

/* The loop turns: at any time, and cheap. */
void board_turn(struct board *, uint64_t now_ms);
uint64_t board_turned_ms(const struct board *); /* when it last did */

/* All that is there, ps first: malloc'ed; NULL: no memory, and *ret_count is 0. only_own: those
 * that this process is. */
struct task_status *board_copy(struct board *, bool only_own, int *ret_count);
/* JSON of where variables are (placement.h), as text; taken; NULL: nothing is known. Returned
 * malloc'ed; NULL: nothing is known, or there is no memory. */
void board_set_placement(struct board *, char *text);
char *board_placement(struct board *);
void board_note_own(struct board *, enum job, int task);

/* Of each task also what was counted in the last 15 to 30 seconds ("recent": {"secs", "counters"}).
 * {"tasks": [...], "next": n} as visitors and pages get it (visit.h), of at most `max` tasks from
 * the one of this number on; now_ms: by which their age is told. NULL: no memory. */
json_t *board_json(struct board *, bool only_own, uint64_t from, int max, uint64_t now_ms);

#endif
