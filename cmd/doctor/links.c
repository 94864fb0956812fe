/* links.c - measures latency and bandwidth from this task's host to every other task's. The others
 * answer while `dtrain doctor` runs on them, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/doctor/doctor.h"
#include "core/base/clock.h"
#include "core/cluster/description/ports.h"
#include "core/cluster/runner/listen.h"
#include "net/meter.h"

enum { TROUBLE_MAX = 256, PATIENCE_MS = 1000, REST_MS = 200 };
static const double MILLI = 1e-3, GIGABIT = 1e9 / 8;
static const double slow = 0.5; /* less than this share of the fastest link is reported */

/* One of the tasks, ps first. */
struct task_place {
    enum job job;
    int task;
};

static int count_all(const struct cluster_spec *c)
{
    return c->hosts[JOB_PS].count + c->hosts[JOB_WORKER].count;
}

static struct task_place place_at(const struct cluster_spec *c, int index)
{
    const int ps = c->hosts[JOB_PS].count;
    return index < ps ? (struct task_place){JOB_PS, index}
                      : (struct task_place){JOB_WORKER, index - ps};
}

static int own_index(const struct cluster_spec *c)
{
    return c->job == JOB_PS ? c->task : c->hosts[JOB_PS].count + c->task;
}

static const char *address_of(const struct cluster_spec *c, struct task_place p)
{
    return c->hosts[p.job].at[p.task];
}

struct way {
    bool is_measured;
    struct metered found;
    char trouble[TROUBLE_MAX];
};

static void tell(struct report *r, const char *name, const char *address, const struct way *way,
                 double fastest)
{
    const struct metered *m = &way->found;
    const bool is_slow = m->bytes_s < slow * fastest;
    if (!way->is_measured)
        report_say(r, HEALTH_WARNING, name,
                   "run dtrain doctor --links there at the same time, with the flags of that task",
                   "%s: %s", address, way->trouble);
    else
        report_say(r, is_slow ? HEALTH_WARNING : HEALTH_OK, name,
                   is_slow ? "look at its network card, its cable, and who shares the way there"
                           : NULL,
                   "%.3f ms there and back, %.3g Gbit/s%s", m->round_trip_s / MILLI,
                   m->bytes_s / GIGABIT, is_slow ? ", much less than to others" : "");
}

static void stay(uint64_t until_ms)
{
    for (uint64_t now_ms = clock_ms(); now_ms < until_ms; now_ms = clock_ms())
        clock_pause(until_ms - now_ms);
}

/* One round: hosts that do not answer yet are left for the next. Returns whether all are measured.
 */
static bool try_all(const struct cluster_spec *c, struct way *ways, uint64_t until_ms)
{
    const int count = count_all(c), own = own_index(c);
    bool all = true;
    for (int i = 1; i < count; i++) { /* after its own index: not all begin with one host */
        struct way *way = &ways[(own + i) % count];
        if (way->is_measured || clock_ms() >= until_ms) continue;
        const char *address = address_of(c, place_at(c, (own + i) % count));
        way->is_measured = !meter_measure(address, PATIENCE_MS, until_ms, &way->found);
        if (!way->is_measured) snprintf(way->trouble, TROUBLE_MAX, "%s", error_text());
        all = all && way->is_measured;
    }
    return all;
}

static void measure_all(struct report *r, const struct cluster_spec *c, const char *own,
                        uint64_t until_ms)
{
    const int count = count_all(c);
    struct way *ways = calloc((size_t)count + 1, sizeof *ways);
    double fastest = 0;
    while (ways && !try_all(c, ways, until_ms) && clock_ms() < until_ms) clock_pause(REST_MS);
    for (int i = 0; ways && i < count; i++)
        if (ways[i].found.bytes_s > fastest) fastest = ways[i].found.bytes_s;
    for (int i = 0; ways && i < count; i++) {
        char name[2 * TASK_NAME_MAX + 8], other[TASK_NAME_MAX];
        const struct task_place p = place_at(c, i);
        if (i == own_index(c)) continue;
        task_name(p.job, p.task, other);
        snprintf(name, sizeof name, "%s to %s", own, other);
        tell(r, name, address_of(c, p), &ways[i], fastest);
    }
    free(ways);
}

void doctor_links(struct report *r, const struct run *run, uint64_t links_ms)
{
    const struct cluster_spec *c = &run->cluster;
    const uint64_t until_ms = clock_ms() + links_ms;
    struct meter *meter = NULL;
    char name[TASK_NAME_MAX], address[ADDRESS_MAX];
    task_name(c->job, c->task, name);
    err e = c->name || c->is_evaluator
                ? fail(ERR_INPUT, "links are measured between tasks that are listed")
                : listen_address(run->flags.listening.at, c->hosts[c->job].at[c->task], address);
    if (!e) e = meter_open(address, NULL, &meter);
    if (e) {
        report_say(r, HEALTH_WARNING, "links", "before the job: its tasks have these addresses",
                   "not measured: %s", error_text());
        return;
    }
    measure_all(r, c, name, until_ms);
    stay(until_ms); /* keeps answering hosts that started later */
    meter_close(meter);
}
