/* ports.h - addresses whose port nobody knows yet: "host:0" is a task that takes any free port when
 * it starts, and says which (--ready_file).
 *
 * Workers connect to ps, and to the chief where it reads for all; nobody connects to another
 * worker, and no ps to anybody. So the lists of a ps may leave every port open, and those of a
 * worker its own and those of workers, but not that of a ps.
 */
#ifndef CORE_CLUSTER_DESCRIPTION_PORTS_H
#define CORE_CLUSTER_DESCRIPTION_PORTS_H

#include "core/base/fields/fields.h"
#include "core/cluster/role/role.h"

bool port_is_open(const char *address); /* "host:0" */

/* ERR_INPUT: a task of this job, to which `who` ("a worker") must connect, has an open port. */
err ports_check_known(enum job, const struct strings *hosts, const char *who);

bool address_is_same_host(const char *a, const char *b); /* by what is before the port */

/* Whether two tasks mean the same one: equal, but for a port that one of them leaves open. */
bool address_agrees(const char *mine, const char *theirs);

/* Of an address of the lists, with the port that its task has taken. ret: ADDRESS_MAX bytes. */
void address_with_port(const char *address, const char *taken, char *ret);

#endif
