/* slurm.h - a cluster as Slurm starts it: srun --ntasks=6 dtrain --slurm=ps=2 SPEC.json.
 *
 * Of the tasks of a step, by their ranks, the first are ps/0, ps/1, ..., the others worker/0, ...
 * srun starts all of them alike; which node a rank is on follows from its environment, the same for
 * all: the nodes of the step, how many tasks each has, and how ranks are dealt out to them (block
 * or cyclic, by node). The k-th task of a node listens at the k-th port that the step has reserved
 * (srun --resv-ports), or else at the k-th from a base on that depends on the job.
 */
#ifndef CORE_CLUSTER_DESCRIPTION_SLURM_H
#define CORE_CLUSTER_DESCRIPTION_SLURM_H

#include "core/cluster/description/cluster_spec.h"

/* Of the environment; NULL: it is not there. */
typedef const char *slurm_variable(const char *name);

/* roles: "ps=2", so many of the ranks. base_port: 0: as above. ERR_INPUT: not started by srun, or
 * what it says cannot be; the variable is named. */
err slurm_read(const char *roles, int64_t base_port, slurm_variable *, struct arena *,
               struct cluster_spec *ret);

/* "ps=2", of so many ranks: how many of them are parameter servers, which leaves a worker. flag:
 * for messages. ERR_INPUT. */
err ranks_read_roles(const char *flag, const char *roles, int ranks, int *ret_ps);

/* Where the first task of a host listens when nobody says: below the ports that Linux gives to
 * connections, RANKS_PORTS before that of the next `job`. */
enum { RANKS_PORT_MAX = 65535, RANKS_PORTS = 100 };
int64_t ranks_base_port(uint64_t job);

/* "gpu[001-003,7],login" as names, in this order. ERR_INPUT: what is wrong with it. */
err slurm_expand(const char *list, struct arena *, struct strings *ret);

#endif
