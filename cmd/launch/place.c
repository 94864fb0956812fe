/* place.c - see place.h: ps/0 tells visitors the membership, again after each resize. */
#include "cmd/launch/place.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/visit/visitor.h"

enum { LOOK_MS = 200 };

struct place_waiting {
    struct run *run;
    struct loop *loop;
    struct visitor *visitor;
    struct strings hosts;
    uint64_t seen_ms; /* when ps/0 was last connected */
};

static err check_ps(struct place_waiting *w, uint64_t limit_ms)
{
    const uint64_t now_ms = clock_ms();
    TRY(visitor_refusal(w->visitor));
    if (visitor_is_up(w->visitor, 0)) w->seen_ms = now_ms;
    if (now_ms - w->seen_ms < limit_ms) return OK;
    return fail(ERR_PEER, "ps/0 at %s did not come back within %llu s (--restart_timeout): %s",
                w->hosts.at[0], (unsigned long long)limit_ms / 1000,
                visitor_trouble(w->visitor, 0));
}

/* Without a time limit while the job runs. */
static err await(struct place_waiting *w, bool *ret_has_place, int *ret_code)
{
    struct cluster_spec *cluster = &w->run->cluster;
    const struct visitor_verdict *verdict = visitor_verdict(w->visitor);
    *ret_has_place = false;
    while (!verdict->has_come) {
        const struct membership membership = visitor_membership(w->visitor);
        *ret_has_place = membership.count[cluster->job] > cluster->task;
        if (*ret_has_place) return cluster_resize(cluster, &membership);
        TRY(check_ps(w, w->run->flags.limits.restart_ms));
        visitor_poll(w->visitor, LOOK_MS);
    }
    log_line(LOG_INFO, "the job has ended without this task");
    *ret_code = verdict->code;
    return OK;
}

static err visit(struct place_waiting *w, bool *ret_has_place, int *ret_code)
{
    const struct cluster_spec *cluster = &w->run->cluster;
    const struct visitor_options options = {.loop = w->loop,
                                            .ps_hosts = &w->hosts,
                                            .cluster = cluster,
                                            .only_first = true,
                                            .any_count = true};
    TRY(visitor_open(&options, &w->visitor));
    TRY(visitor_wait_up(w->visitor, w->run->flags.limits.start_ms, "--start_timeout"));
    w->seen_ms = clock_ms();
    const int count = visitor_membership(w->visitor).count[cluster->job];
    if (count <= cluster->task)
        log_line(LOG_INFO, "waits for a place: %d of %d %s take part (dtrain help scale)", count,
                 cluster_room(cluster, cluster->job), cluster->job == JOB_PS ? "ps" : "workers");
    return await(w, ret_has_place, ret_code);
}

err run_await_place(struct run *run, bool *ret_has_place, int *ret_code)
{
    struct place_waiting w = {.run = run, .hosts = run->cluster.hosts[JOB_PS]};
    *ret_has_place = cluster_has_place(&run->cluster);
    if (*ret_has_place) return OK;
    TRY(run_open_loop(w.run, &w.loop));
    const err e = visit(&w, ret_has_place, ret_code);
    visitor_close(w.visitor);
    loop_close(w.loop);
    return e;
}
