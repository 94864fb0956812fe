/* ranks.h - a cluster whose tasks are numbered by whoever starts them: of its ranks the first are
 * ps/0, ps/1, ..., the others worker/0, worker/1, ...
 *
 * Slurm says where all of them are (slurm.h). mpirun, mpiexec and torchrun say only which rank a
 * process is, so the file of hosts does that mpirun has read, too: its slots are the ranks.
 *
 *     mpirun -np 6 --hostfile hosts dtrain --ranks=ps=2 --hostfile=hosts SPEC.json
 *
 * Without a file all ranks must be on one host.
 */
#ifndef CORE_CLUSTER_DESCRIPTION_RANKS_H
#define CORE_CLUSTER_DESCRIPTION_RANKS_H

#include "core/cluster/description/cluster_spec.h"
#include "core/train/variables/layout.h"

/* Of the environment; NULL: it is not there. */
typedef const char *ranks_variable(const char *name);

/* roles: "ps=2", this many of the ranks. base_port: of the first rank of each host; 0: it depends
 * on what the job is called in the environment. ERR_INPUT, ERR_IO: nobody has started ranks, or not
 * so many; this rank is not where the file says; the variable or the file is named. */
err ranks_read(const char *roles, const char *hostfile, int64_t base_port, ranks_variable *,
               struct arena *, struct cluster_spec *ret);

/* Where they are; filled by whoever knows. */
struct ranks {
    int count, own;
    const char **host; /* [count] */
    int64_t *port;     /* [count] */
};
enum { RANKS_MAX = PS_MAX + WORKERS_MAX };
struct ranks ranks_of(int count, int own, struct arena *); /* with room for where they are */

/* The cluster of these. flag: for messages. ERR_INPUT. */
err ranks_make(const char *flag, const char *roles, const struct ranks *, struct arena *,
               struct cluster_spec *ret);

/* "ps=2", of this many ranks: how many of them are parameter servers, which leaves a worker. flag:
 * for messages. ERR_INPUT. */
err ranks_read_roles(const char *flag, const char *roles, int ranks, int *ret_ps);

/* "host:port", "[fd00::3]:port", in the arena. ERR_INPUT: no such port is left, or no address. */
err ranks_address(const char *host, int64_t port, struct arena *, const char **ret);

/* Where the first task of a host listens when nobody says: below the ports that Linux gives to
 * connections, RANKS_PORTS before that of the next `job`. */
enum { RANKS_PORTS = 100, RANKS_PORT_MAX = 65535 };
int64_t ranks_base_port(uint64_t job);

/* Decimal digits and nothing else, from `least` to `most`. */
bool ranks_number(const char *text, int64_t least, int64_t most, int64_t *ret);

#endif
