/* host_file.h - the file of --hostfile: on which hosts the tasks of a cluster run.
 *
 *     # a line a host; one that is named again has more slots
 *     node1 slots=2
 *     me@node2 slots=4 max-slots=8
 *     node3:2
 *     fd00::3
 *
 * A slot is room for one task; without slots= a line has max-slots, or 1. The user before an @ is
 * for ssh only: tasks connect to the name after it.
 */
#ifndef CORE_CLUSTER_DESCRIPTION_HOST_FILE_H
#define CORE_CLUSTER_DESCRIPTION_HOST_FILE_H

#include "core/base/arena.h"
#include "core/base/error.h"

enum { HOST_SLOTS_MAX = 4096 };

struct host_slot {
    const char *login, *host; /* "me@node2", "node2" */
    int place;                /* among the slots of this host, from 0 */
};

struct host_slots {
    struct host_slot *at; /* in the order of the file */
    int count, hosts;
};

/* ERR_INPUT, ERR_IO: the text has file, line, what was found and what was expected. */
err host_file_read(const char *path, struct arena *, struct host_slots *ret);

#endif
