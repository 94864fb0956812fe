/* listen.c - see listen.h. */
#include "core/cluster/runner/listen.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/description/ports.h"

/* "0.0.0.0", "host", "[::1]", "::"; not "host:0", "[::1]:0", "fd:3" */
static bool lacks_port(const char *address)
{
    const char *colon = strchr(address, ':');
    if (address[0] == '[') return address[strlen(address) - 1] == ']';
    return !colon || strchr(colon + 1, ':');
}

err listen_address(const char *bind, const char *own, char ret[ADDRESS_MAX])
{
    const char *address = bind ? bind : own, *port = "";
    if (bind && lacks_port(bind)) port = strrchr(own, ':');
    const bool is_bare_v6 = address[0] != '[' && *port && strchr(address, ':');
    const int length = snprintf(ret, ADDRESS_MAX, is_bare_v6 ? "[%s]%s" : "%s%s", address, port);
    return length < ADDRESS_MAX ? OK
                                : fail(ERR_INPUT,
                                       "--bind: \"%.32s...\" is longer than %d "
                                       "characters",
                                       address, ADDRESS_MAX - 1);
}

err task_listen_address(const struct task_options *options, char ret[ADDRESS_MAX])
{
    const struct cluster_spec *cluster = options->cluster;
    return listen_address(options->listen, cluster->hosts[cluster->job].at[cluster->task], ret);
}

/* After a failure: OK if it may pass, and there is time left. */
static err check_patience(err why, uint64_t waited_ms, uint64_t limit_ms, bool notes)
{
    if (why == ERR_IO) return ERR_INPUT; /* the command line is wrong for this host */
    if (why != ERR_PEER) return why;
    if (waited_ms >= limit_ms)
        return fail_prefix(ERR_TIMEOUT, "gave up after %.3g s (--start_timeout)",
                           (double)limit_ms / 1000);
    if (notes)
        log_line(LOG_WARNING, "%s; tries again, %llu s of %.3g s (--start_timeout)", error_text(),
                 (unsigned long long)waited_ms / 1000, (double)limit_ms / 1000);
    return OK;
}

/* Calls options->listens. */
static err tell(const struct task_options *options, const char *real)
{
    const struct cluster_spec *cluster = options->cluster;
    char address[ADDRESS_MAX];
    if (!options->listens) return OK;
    address_with_port(cluster->hosts[cluster->job].at[cluster->task], real, address);
    return options->listens(options->listens_context, address);
}

err task_listen(const struct task_options *options, const struct link_events *events, void *context,
                struct listener **ret)
{
    char address[ADDRESS_MAX], real[ADDRESS_MAX];
    TRY(task_listen_address(options, address));
    const uint64_t started_ms = clock_ms(), limit_ms = options->limits.start_ms;
    uint64_t noted_ms = 0;
    for (uint32_t tries = 0;; tries++) { /* ends: check_patience has a limit */
        const err e = task_first_transport(options)->listen(options->loop, address, events, context,
                                                            real, ret);
        const uint64_t now_ms = clock_ms(), waited_ms = now_ms - started_ms;
        if (!e) break;
        const bool notes = tries == 0 || log_wait_is_due(started_ms, noted_ms, now_ms);
        if (notes) noted_ms = now_ms;
        TRY(check_patience(e, waited_ms, limit_ms, notes));
        const uint64_t left_ms = limit_ms - waited_ms, wanted_ms = task_retry_ms(tries);
        clock_pause(wanted_ms < left_ms ? wanted_ms : left_ms);
    }
    /* Nobody connects to a worker, and whoever passed a socket knows its address. */
    const bool is_called = options->cluster->job == JOB_PS &&
                           !(options->listen && strncmp(options->listen, "fd:", 3) == 0);
    log_line(noted_ms || is_called ? LOG_INFO : LOG_DEBUG, "listens at %s", real);
    const err e = tell(options, real);
    if (!e) return OK;
    listener_close(*ret);
    *ret = NULL;
    return e;
}
