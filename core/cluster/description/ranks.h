/* ranks.h - a cluster whose launcher numbers its processes: the first ranks are ps/0, ps/1, ...,
 * the others worker/0, worker/1, ...
 *
 * Slurm tells on which nodes they are (slurm.h). mpirun, mpiexec and torchrun tell a process only
 * its rank; the hosts come from the host file given to mpirun: its slots are the ranks.
 *
 *     mpirun -np 6 --hostfile hosts dtrain --ranks=ps=2 --hostfile=hosts SPEC.json
 *
 * Without a file all ranks must be on one host.
 */
#ifndef CORE_CLUSTER_DESCRIPTION_RANKS_H
#define CORE_CLUSTER_DESCRIPTION_RANKS_H

#include "core/cluster/description/cluster_spec.h"
#include "core/train/variables/layout.h"

/* Reads an environment variable; NULL: not set. */
typedef const char *ranks_variable(const char *name);

/* roles: "ps=2", how many ranks are ps. base_port: of the first rank on each host; 0: derived from
 * the job's name in the environment. ERR_INPUT, ERR_IO: not started by such a launcher, too few
 * ranks, or this rank is not on the host in the file; the text names the variable or the file. */
err ranks_read(const char *roles, const char *hostfile, int64_t base_port, ranks_variable *,
               struct arena *, struct cluster_spec *ret);

/* The addresses of all ranks; filled by the callers of ranks_of. */
struct ranks {
    int count, own;
    const char **host; /* [count] */
    int64_t *port;     /* [count] */
};
enum { RANKS_MAX = PS_MAX + WORKERS_MAX };
struct ranks ranks_of(int count, int own, struct arena *); /* with host and port allocated */

/* Makes the cluster of these ranks. flag: for messages. ERR_INPUT. */
err ranks_make(const char *flag, const char *roles, const struct ranks *, struct arena *,
               struct cluster_spec *ret);

/* Reads "ps=2". ERR_INPUT: malformed, or no worker is left of this many ranks. flag: for messages.
 */
err ranks_read_roles(const char *flag, const char *roles, int ranks, int *ret_ps);

/* "host:port", "[fd00::3]:port", in the arena. ERR_INPUT: the port is too large, or not an address.
 */
err ranks_address(const char *host, int64_t port, struct arena *, const char **ret);

/* The default port of the first task on a host: below Linux's ephemeral ports, RANKS_PORTS apart
 * for successive `job`s. */
enum { RANKS_PORTS = 100, RANKS_PORT_MAX = 65535 };
int64_t ranks_base_port(uint64_t job);

/* Decimal digits and nothing else, from `least` to `most`. */
bool ranks_number(const char *text, int64_t least, int64_t most, int64_t *ret);

#endif
