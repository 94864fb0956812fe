/* slurm.h - a cluster as Slurm starts it: srun --ntasks=6 dtrain --slurm=ps=2 SPEC.json.
 *
 * srun gives all tasks the same command line; the node of each rank follows from the environment:
 * the nodes of the step, how many tasks each has, and the distribution of ranks (block or cyclic,
 * by node). The k-th task of a node listens at the k-th port reserved for the step (MpiParams, srun
 * --resv-ports), or else at the k-th port from a base that depends on the job.
 */
#ifndef CORE_CLUSTER_DESCRIPTION_SLURM_H
#define CORE_CLUSTER_DESCRIPTION_SLURM_H

#include "core/cluster/description/ranks.h"

/* roles: "ps=2", how many ranks are ps. base_port: 0: as above. ERR_INPUT: not started by srun, or
 * its variables are inconsistent; the text names the variable. */
err slurm_read(const char *roles, int64_t base_port, ranks_variable *, struct arena *,
               struct cluster_spec *ret);

/* "gpu[001-003,7],login" as names, in this order. ERR_INPUT: what is wrong with it. */
err slurm_expand(const char *list, struct arena *, struct strings *ret);

#endif
