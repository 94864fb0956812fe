/* descriptors.c - see descriptors.h. */
#include "cmd/run/descriptors.h"

#include <sys/resource.h>

#include "core/base/log.h"
#include "net/loop.h"

enum {
    /* standard streams, loop, signals, own listeners, data, logs, a checkpoint */
    OWN = 24,
    /* socket and eventfd, and briefly the first connection with the descriptors passed over it */
    OF_ONE_PS = 6,
    /* the same, and two windows */
    OF_ONE_WORKER = 7,
    /* in the launcher, per task: listening socket, standard output, standard error */
    OF_ONE_TASK = 3,
};

int task_descriptors_needed(const struct cluster_spec *cluster)
{
    return cluster->job == JOB_PS ? OWN + OF_ONE_WORKER * cluster->hosts[JOB_WORKER].count
                                  : OWN + OF_ONE_PS * cluster->hosts[JOB_PS].count;
}

uint64_t descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return UINT64_MAX;
    if (limit.rlim_cur >= LOOP_WATCH_MAX) return limit.rlim_cur;
    const rlim_t most = limit.rlim_max < LOOP_WATCH_MAX ? limit.rlim_max : LOOP_WATCH_MAX;
    const struct rlimit raised = {most, limit.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &raised) ? limit.rlim_cur : most;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

err task_descriptors_check_local(int ps, int workers)
{
    struct cluster_spec cluster = {.job = JOB_PS};
    cluster.hosts[JOB_PS].count = ps;
    cluster.hosts[JOB_WORKER].count = workers;
    int needed = larger(task_descriptors_needed(&cluster), OWN + OF_ONE_TASK * (ps + workers));
    cluster.job = JOB_WORKER;
    needed = larger(needed, task_descriptors_needed(&cluster));
    const uint64_t most = descriptors_raise();
    if (most >= (uint64_t)needed) return OK;
    return fail(ERR_IO,
                "ulimit -n allows %llu open files and connections; a cluster of %d ps and %d "
                "worker%s on this host needs %d",
                (unsigned long long)most, ps, workers, workers == 1 ? "" : "s", needed);
}

void task_descriptors_raise(const struct cluster_spec *cluster)
{
    const int needed = task_descriptors_needed(cluster);
    const uint64_t most = descriptors_raise();
    if (most < (uint64_t)needed)
        log_line(LOG_WARNING,
                 "ulimit -n allows %llu open files and connections, and about %d are needed: peers "
                 "may be turned away, or reached over tcp",
                 (unsigned long long)most, needed);
}
