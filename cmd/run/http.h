/* http.h - --http: a task's HTTP server: its own state, and what it knows of the job.
 *
 *     /metrics       counters of this task, as Prometheus reads them
 *     /healthz       200: the task's loop runs; 503: it has not for longer than --step_timeout
 *     /readyz        200: the task has joined, and the job takes steps; 503: why not
 *     /status.json   what is known of all tasks (core/cluster/visit/visit.h)
 *     /              the same for people
 *
 * ps/0 knows of the workers, the chief of all tasks. The server is read-only.
 */
#ifndef CMD_RUN_HTTP_H
#define CMD_RUN_HTTP_H

#include "cmd/cmd.h"

struct task_http;
/* Without --http it collects the state but serves nothing. ERR_IO: the address is in use. */
err task_http_open(const struct run *, struct task_http **ret);
void task_http_close(struct task_http *); /* NULL is fine; after the tasks */
struct board *task_http_board(const struct task_http *);
int task_http_port(const struct task_http *); /* 0: nothing is served */

#endif
