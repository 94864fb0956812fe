/* runner_ps_connections.c - the connections of a ps, and their peers. */
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/runner/runner_ps_inside.h"

/* An inproc link is not made a guest: a single process has none. */
struct connection *connection_new(struct runner_ps *p, struct link *link)
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection) return NULL;
    *connection = (struct connection){.ps = p,
                                      .link = link,
                                      .worker = NOBODY_KNOWN,
                                      .visitor = NOBODY_KNOWN,
                                      .since_ms = clock_ms()};
    connection->next = p->listening.connections;
    if (p->listening.connections) p->listening.connections->previous = connection;
    p->listening.connections = connection;
    p->listening.strangers++;
    link_set_context(link, connection);
    link_set_body_max(link, TASK_GREETING_BYTES_MAX);
    return connection;
}

bool connection_is_stranger(const struct connection *connection)
{
    return connection->worker == NOBODY_KNOWN && connection->visitor == NOBODY_KNOWN;
}

void connection_become_worker(struct connection *connection, int worker)
{
    connection->worker = worker;
    connection->ps->listening.strangers--;
    link_set_body_max(connection->link, MESSAGE_BODY_MAX);
    link_set_guest(connection->link, false);
}

void connection_become_visitor(struct connection *connection, int visitor)
{
    connection->visitor = visitor;
    connection->ps->listening.strangers--;
    link_set_body_max(connection->link, VISIT_ASK_BYTES_MAX);
}

struct connection *connection_of_oldest_stranger(const struct runner_ps *p)
{
    struct connection *oldest = NULL;
    for (struct connection *connection = p->listening.connections; connection;
         connection = connection->next) /* newest first */
        if (connection_is_stranger(connection)) oldest = connection;
    return oldest;
}

void connection_drop(struct connection *connection)
{
    struct runner_ps *p = connection->ps;
    if (connection_is_stranger(connection)) p->listening.strangers--;
    if (connection->visitor != NOBODY_KNOWN) visits_leave(p->visiting.visits, connection->visitor);
    if (connection->previous) connection->previous->next = connection->next;
    if (connection->next) connection->next->previous = connection->previous;
    if (p->listening.connections == connection) p->listening.connections = connection->next;
    free(connection);
}

void connection_hang_up(struct connection *connection)
{
    link_close(connection->link);
    connection_drop(connection);
}

void connection_break_off(struct connection *connection)
{
    struct runner_ps *p = connection->ps;
    const int worker = connection->worker;
    log_limited(&p->logs.wrong, clock_ms(), LOG_WARNING, "worker/%d sent %s", worker, error_text());
    connection_hang_up(connection);
    task_peer_lost(&p->task, worker, "it broke the protocol");
}
