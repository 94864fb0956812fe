/* join.c - see join.h. */
#include "cmd/registry/join.h"

#include <stdio.h>
#include <string.h>

#include "cmd/registry/registry.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/runner/listen.h"
#include "net/address.h"
#include "net/coordinator/coordinator.h"

/* "0.0.0.0:4021": listens on all interfaces, and is no address for others. */
static bool is_everywhere(const char *address)
{
    return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

enum { LOOK_MS = 250 };

/* This host's address on the way to the coordinator, whose name may not resolve yet: retries */
static err find_own(struct run *run, char ret[ADDRESS_MAX])
{
    const char *server = coordinator_server(run->flags.cluster.coordinator, &run->arena);
    const uint64_t began_ms = clock_ms(), limit_ms = run->flags.limits.start_ms;
    struct log_limit notes = {0};
    while (address_towards(server, ret)) {
        if (clock_ms() - began_ms >= limit_ms)
            return fail_prefix(ERR_TIMEOUT,
                               "the coordinator was not reached within %.3g s (--start_timeout)",
                               (double)limit_ms / 1000);
        log_limited(&notes, clock_ms(), LOG_WARNING, "the coordinator: %s; tries again",
                    error_text());
        clock_pause(LOOK_MS);
    }
    return OK;
}

/* Binds the socket, which reserves the port for this task. */
static err open_address(struct run *run, const char **ret)
{
    char own[ADDRESS_MAX], address[ADDRESS_MAX], real[ADDRESS_MAX];
    int fd;
    TRY(find_own(run, own));
    TRY(listen_address(run->flags.listening.at, arena_format(&run->arena, "%s:0", own), address));
    TRY(address_reserve(address, real, &fd));
    run->flags.listening.at = arena_format(&run->arena, "fd:%d", fd);
    *ret = is_everywhere(real) ? arena_format(&run->arena, "%s%s", own, strrchr(real, ':'))
                               : arena_string(&run->arena, real);
    return OK;
}

static void report(const struct cluster_spec *cluster, const char *address)
{
    const struct membership now = cluster_membership(cluster);
    char resized[MEMBERSHIP_TEXT_MAX] = "";
    if (now.resizes) membership_text(&now, resized);
    log_line(LOG_INFO, "found all %s of cluster %s%s%s%s%s", now.resizes ? "ps" : "tasks",
             cluster->name, now.resizes ? ", which was resized to " : "", resized,
             address ? "; listens at " : "", address ? address : "");
}

err run_join(struct run *run)
{
    struct cluster_spec *cluster = &run->cluster;
    struct registry_options options = {
        .coordinator = run->flags.cluster.coordinator,
        .cluster = cluster,
        .limit_ms = run->flags.limits.start_ms,
        .limit_name = "--start_timeout",
    };
    if (!options.coordinator) return OK;
    char name[TASK_NAME_MAX] = "evaluator";
    if (!cluster->is_evaluator) TRY(open_address(run, &options.address));
    tasks_end_by(registry_leave_at_once);
    const err e = registry_join(&options, &run->arena, &run->registry);
    if (e) return fail_prefix(e, "--coordinator=%.100s", options.coordinator);
    if (!cluster->is_evaluator) task_name(cluster->job, cluster->task, name);
    log_set_task(name);
    report(cluster, options.address);
    return OK;
}
