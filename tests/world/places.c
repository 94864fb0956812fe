/* places.c - see places.h: read from what tasks say, and from the coordinator's keys. */
#include "tests/world/places.h"

#include "tests/world/cluster.h"
#include "tests/world/coordinator.h"

#include <string.h>

enum {
    SURE_S = 30, /* after trouble: longer than a lease, and than a call to the coordinator */
    KEY_BYTES = 64,
    UNDER_WAY_S = 10,
    WRITTEN_S = 45, /* who has lost its place has seen it, and has written it again */
};

/* ", ps/1: found all tasks of cluster small; listens at 10.0.0.3:34977" */
static void read_place(struct cluster_task *task, const char *found)
{
    static const char listens[] = "listens at ";
    const char *begin = found - 1, *address = strstr(found, listens);
    while (begin > task->life->said && begin[-1] != ' ') begin--;
    snprintf(task->place, sizeof task->place, "%.*s", (int)(found - 1 - begin), begin);
    if (!address) return;
    address += sizeof listens - 1;
    snprintf(task->address, sizeof task->address, "%.*s", (int)strcspn(address, "\n"), address);
}

bool place_is_found(const struct cluster_task *task)
{
    return task->life && task->place_of == task->life;
}

static bool is_hampered(const struct cluster *cluster)
{
    return cluster->hampered_ns && machine.now_ns < cluster->hampered_ns + SURE_S * SECOND_NS;
}

static bool lives_in(const struct cluster_task *task, const char *place)
{
    return place_is_found(task) && task->life->state == PROCESS_RUNS &&
           strcmp(task->place, place) == 0;
}

/* Others have said for long that they have joined: who comes hears it before it has joined, too. */
static bool is_under_way(const struct cluster *cluster, const struct cluster_task *a,
                         const struct cluster_task *b)
{
    for (int i = 0; i < cluster->count; i++) {
        const struct cluster_task *task = &cluster->tasks[i];
        if (task != a && task != b && place_is_found(task) && task->life->state == PROCESS_RUNS &&
            machine.now_ns > task->found_ns + UNDER_WAY_S * SECOND_NS)
            return true;
    }
    return false;
}

void places_look(const struct cluster *cluster, struct cluster_task *task)
{
    const struct process *life = task->life;
    if (!cluster->plan->coordinator || task->job == TASK_EVALUATOR || !life) return;
    if (place_is_found(task) || !life->said || task->looked == life->said_bytes) return;
    task->looked = life->said_bytes;
    const char *found = strstr(life->said, " found all ");
    if (!found) return;
    read_place(task, found);
    task->place_of = life;
    task->found_ns = machine.now_ns;
    machine_say("%s has the place %s at %s", task->name, task->place, task->address);
    for (int i = 0; i < cluster->count; i++) {
        const struct cluster_task *other = &cluster->tasks[i];
        if (other != task && lives_in(other, task->place) && !is_hampered(cluster) &&
            is_under_way(cluster, task, other))
            machine_fail("%s has taken the place %s, in which %s lives", task->name, task->place,
                         other->name);
    }
}

/* Unless something has befallen since. */
static void check_written(void *subject, uint64_t troubled_ns)
{
    const struct cluster *cluster = subject;
    char key[KEY_BYTES];
    if (cluster->troubled_ns != troubled_ns || cluster->done_ns) return;
    for (int i = 0; i < cluster->count; i++) {
        const struct cluster_task *task = &cluster->tasks[i];
        if (!place_is_found(task) || task->life->state != PROCESS_RUNS) continue;
        snprintf(key, sizeof key, "/world/small/%s", task->place);
        const char *value = coordinator_value(key);
        const bool is_own = value && strncmp(value, task->address, strlen(task->address)) == 0;
        machine_say("%s: %s", key, value ? value : "nobody");
        if (!is_own)
            machine_fail("%s lives at %s, and the coordinator says %s", task->place, task->address,
                         value ? value : "nobody");
    }
}

void places_trouble(struct cluster *cluster, uint64_t until_ns, bool is_of_some)
{
    if (is_of_some && until_ns > cluster->hampered_ns) cluster->hampered_ns = until_ns;
    if (!cluster->plan->coordinator || until_ns <= cluster->troubled_ns) return;
    cluster->troubled_ns = until_ns;
    event_at(until_ns + WRITTEN_S * SECOND_NS, check_written, cluster, until_ns);
}
