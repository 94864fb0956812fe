/* ports.h - addresses with an open port: at "host:0" a task takes any free port when it starts, and
 * reports it (--ready_file).
 *
 * Workers connect to ps, and to the chief if it reads for all; nobody connects to another worker,
 * and a ps connects to nobody. So a ps may have every port open in its lists, and a worker those of
 * workers, but not those of ps.
 */
#ifndef CORE_CLUSTER_DESCRIPTION_PORTS_H
#define CORE_CLUSTER_DESCRIPTION_PORTS_H

#include "core/base/fields/fields.h"
#include "core/cluster/role/role.h"

bool port_is_open(const char *address); /* "host:0" */

/* ERR_INPUT: a task of this job, to which `who` ("a worker") must connect, has an open port. */
err ports_check_known(enum job, const struct strings *hosts, const char *who);

bool address_is_same_host(const char *a, const char *b); /* compares the hosts */

/* Whether two tasks' lists agree on an address: equal, or one leaves the port open. */
bool address_agrees(const char *mine, const char *theirs);

/* The host of `address`, from the lists, with the port of `taken`. ret: ADDRESS_MAX bytes. */
void address_with_port(const char *address, const char *taken, char *ret);

#endif
