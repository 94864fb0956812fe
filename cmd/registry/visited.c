/* visited.c - see visited.h. */
#include "cmd/registry/visited.h"

#include "cmd/registry/registry.h"
#include "core/cluster/description/named.h"
#include "core/cluster/description/ports.h"
#include "net/coordinator/coordinator.h"
#include "net/loop.h"

err visited_read(struct visited *v, const struct cluster_flags *flags, const char *who,
                 struct arena *arena)
{
    v->coordinator = flags->coordinator;
    TRY(proof_open(flags, &v->keys));
    if (flags->coordinator) {
        const err e = coordinator_check(flags->coordinator);
        return e ? fail_prefix(e, "--coordinator") : named_cluster_visit(flags, arena, &v->cluster);
    }
    TRY(named_cluster_check_absent(flags));
    if (!flags->ps_hosts)
        return fail(ERR_INPUT, "%s needs --ps_hosts, or --coordinator and --cluster", who);
    TRY(cluster_split_hosts(JOB_PS, flags->ps_hosts, arena, &v->hosts));
    return ports_check_known(JOB_PS, &v->hosts, arena_format(arena, "dtrain %s", who));
}

static err find(struct visited *v, uint64_t limit_ms, struct arena *arena)
{
    const struct registry_options options = {
        .coordinator = v->coordinator,
        .cluster = &v->cluster,
        .only_ps = true,
        .limit_ms = limit_ms,
        .limit_name = "--timeout",
    };
    const err e = registry_join(&options, arena, &v->registry);
    if (e) return fail_prefix(e, "--coordinator=%.100s", v->coordinator);
    v->hosts = v->cluster.hosts[JOB_PS];
    return OK;
}

err visited_open(struct visited *v, struct visitor_options options, uint64_t limit_ms,
                 struct arena *arena, struct visitor **ret)
{
    TRY(loop_open(&v->loop));
    loop_set_keys(v->loop, v->keys);
    if (v->coordinator) TRY(find(v, limit_ms, arena));
    options.loop = v->loop;
    options.ps_hosts = &v->hosts;
    options.cluster = v->coordinator ? &v->cluster : NULL;
    TRY(visitor_open(&options, &v->visitor));
    *ret = v->visitor;
    return visitor_wait_up(v->visitor, limit_ms, "--timeout");
}

/* A link that is in its TLS handshake needs the keys until the loop has closed it. */
void visited_close(struct visited *v)
{
    visitor_close(v->visitor);
    registry_leave(v->registry);
    loop_close(v->loop);
    tls_keys_close(v->keys);
}
