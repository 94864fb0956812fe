/* cluster.c - checks the hosts of a cluster from here: do their names resolve, does anything
 * listen, and is it a ps of this job.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/doctor/doctor.h"
#include "cmd/registry/visited.h"
#include "core/cluster/description/ports.h"
#include "net/probe.h"

enum { OWNER_MAX = 256 };

/* ---- names and ports ---- */

/* Hosts often resolve their own name to 127.0.1.1. */
static void tell_loopback(struct report *r, const char *name, const struct probe *p)
{
    report_say(r, HEALTH_WARNING, name,
               "take the line with 127.0.1.1 out of /etc/hosts, or name the address",
               "%s is this host's loopback here: a task that listens there is not reached from "
               "others",
               p->address);
}

static void tell(struct report *r, enum job job, int task, const struct probe *p)
{
    char name[TASK_NAME_MAX];
    const double ms = (double)p->took_ns / 1e6;
    task_name(job, task, name);
    if (p->is_on_loopback) tell_loopback(r, name, p);
    switch (p->outcome) {
    case PROBE_NO_NAME:
        report_say(r, HEALTH_BAD, name, "add it to DNS or /etc/hosts, or name the address", "%s",
                   p->text);
        break;
    case PROBE_LISTENS:
        report_say(r, HEALTH_OK, name, NULL, "%s: somebody listens, %.2f ms away", p->address, ms);
        break;
    case PROBE_REFUSED:
        report_say(r, HEALTH_NOTE, name, NULL,
                   "%s: the host is there, %.2f ms away, and nobody listens%s", p->address, ms,
                   job == JOB_PS ? ": the task has not been started, or has ended"
                                 : " (workers need not)");
        break;
    case PROBE_UNREACHABLE:
        report_say(r, HEALTH_BAD, name, "look at routes and networks between the hosts", "%s: %s",
                   p->address, p->text);
        break;
    case PROBE_SILENT:
        report_say(
            r, HEALTH_BAD, name, "open the port in firewalls, security groups and network policies",
            "%s: no answer at all: the host is down, or what is sent there is dropped", p->address);
        break;
    }
}

/* ---- the task's own address, and who may connect ---- */

static void look_at_key(struct report *r, const struct run *run)
{
    if (run->keys)
        report_say(r, HEALTH_OK, "key", NULL, "links to other hosts are encrypted");
    else if (run->flags.cluster.insecure)
        report_say(r, HEALTH_NOTE, "key", NULL,
                   "--insecure: whoever reaches a task reads and changes its variables");
    else
        report_say(r, HEALTH_NOTE, "key",
                   "openssl rand -hex 32 > job.key, and --key_file=job.key for each task",
                   "none: a task listens to this host alone");
}

static void look_at_own(struct report *r, const struct cluster_spec *cluster)
{
    char name[TASK_NAME_MAX], owner[OWNER_MAX], taken[ADDRESS_MAX];
    const char *address = cluster->hosts[cluster->job].at[cluster->task];
    int fd;
    task_name(cluster->job, cluster->task, name);
    if (address_reserve(address, taken, &fd) == OK) {
        close(fd);
        report_say(r, HEALTH_OK, name, NULL, "this task can listen at %s", address);
        return;
    }
    address_owner(address, owner, sizeof owner);
    report_say(r, owner[0] ? HEALTH_NOTE : HEALTH_BAD, name,
               owner[0] ? "fine if that is the task itself"
                        : "name an address of this host, or "
                          "--bind another one",
               "this task cannot listen there: %s%s%s", error_text(),
               owner[0] ? ", which is of " : "", owner);
}

/* ---- answers ---- */

static void tell_ps(struct report *r, const struct visitor *visitor, const bool *listens, int count)
{
    for (int ps = 0; ps < count && ps < visitor_ps_count(visitor); ps++) {
        char name[TASK_NAME_MAX];
        if (!listens[ps]) continue;
        task_name(JOB_PS, ps, name);
        if (visitor_is_up(visitor, ps))
            report_say(r, HEALTH_OK, name, "dtrain status says how it is",
                       "it is a ps of this version's protocol");
        else
            report_say(r, HEALTH_WARNING, name, NULL, "%s", visitor_trouble(visitor, ps));
    }
}

/* Asks the hosts that listen whether they are ps and accept this program. */
static void ask_ps(struct report *r, struct run *run, const bool *listens, uint64_t timeout_ms)
{
    struct visited visited = {0};
    struct visitor *visitor = NULL;
    const struct visitor_options options = {.any_count = true};
    if (!visited_read(&visited, &run->flags.cluster, "doctor", &run->arena))
        (void)visited_open(&visited, options, timeout_ms, &run->arena, &visitor);
    if (visitor)
        tell_ps(r, visitor, listens, run->cluster.hosts[JOB_PS].count);
    else
        report_say(r, HEALTH_WARNING, "ps", NULL, "cannot be asked: %s", error_text());
    visited_close(&visited);
}

static bool is_known(const char *address)
{
    return address[0] && !port_is_open(address) && strchr(address, ':');
}

/* Probes all tasks of a job; *ret_listens: whether each listens, malloc'ed. Returns how many do. */
static int probe_job(struct report *r, const struct strings *hosts, enum job job,
                     uint64_t timeout_ms, bool **ret_listens)
{
    struct probe *probes = calloc((size_t)hosts->count + 1, sizeof *probes);
    int *tasks = calloc((size_t)hosts->count + 1, sizeof *tasks);
    bool *listens = calloc((size_t)hosts->count + 1, sizeof *listens);
    int known = 0, listening = 0;
    for (int i = 0; probes && tasks && listens && i < hosts->count; i++) {
        if (!is_known(hosts->at[i])) continue;
        tasks[known] = i;
        probes[known++] = (struct probe){.address = hosts->at[i]};
    }
    probes_run(probes, known, timeout_ms);
    for (int i = 0; i < known; i++) {
        tell(r, job, tasks[i], &probes[i]);
        listens[tasks[i]] = probes[i].outcome == PROBE_LISTENS;
        listening += listens[tasks[i]];
    }
    free(probes);
    free(tasks);
    *ret_listens = listens;
    return listening;
}

void doctor_cluster(struct report *r, struct run *run, uint64_t timeout_ms)
{
    const struct cluster_spec *cluster = &run->cluster;
    bool *listens;
    if (cluster->name) {
        report_say(r, HEALTH_NOTE, "cluster", "dtrain status --coordinator=... --cluster=...",
                   "its tasks find each other by the name %s: there are no addresses to try",
                   cluster->name);
        return;
    }
    look_at_key(r, run);
    if (!cluster->is_evaluator) look_at_own(r, cluster);
    probe_job(r, &cluster->hosts[JOB_WORKER], JOB_WORKER, timeout_ms, &listens);
    free(listens);
    if (probe_job(r, &cluster->hosts[JOB_PS], JOB_PS, timeout_ms, &listens))
        ask_ps(r, run, listens, timeout_ms);
    free(listens);
}
