/* descriptors.c - see descriptors.h. */
#include "cmd/run/descriptors.h"

#include <sys/resource.h>

#include "core/base/log.h"
#include "net/loop.h"

enum {
    /* standard streams, loop, signals, own listeners, data, logs, a checkpoint */
    OWN = 24,
    /* socket and eventfd, and for a moment the first connection with what is passed over it */
    OF_ONE_PS = 6,
    /* the same, and two windows */
    OF_ONE_WORKER = 7,
};

int task_descriptors_needed(const struct cluster_spec *cluster)
{
    return cluster->job == JOB_PS ? OWN + OF_ONE_WORKER * cluster->hosts[JOB_WORKER].count
                                  : OWN + OF_ONE_PS * cluster->hosts[JOB_PS].count;
}

void task_descriptors_raise(const struct cluster_spec *cluster)
{
    struct rlimit limit;
    const int needed = task_descriptors_needed(cluster);
    if (getrlimit(RLIMIT_NOFILE, &limit)) return; /* cannot fail for this limit */
    if (limit.rlim_cur < LOOP_WATCH_MAX) {
        const rlim_t most = limit.rlim_max < LOOP_WATCH_MAX ? limit.rlim_max : LOOP_WATCH_MAX;
        const struct rlimit raised = {most, limit.rlim_max};
        if (!setrlimit(RLIMIT_NOFILE, &raised)) limit = raised;
    }
    if (limit.rlim_cur < (rlim_t)needed)
        log_line(LOG_WARNING,
                 "ulimit -n allows %llu open files and connections, and about %d are needed: peers "
                 "may be turned away, or reached over tcp",
                 (unsigned long long)limit.rlim_cur, needed);
}
