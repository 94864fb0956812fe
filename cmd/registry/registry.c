/* registry.c - see registry.h. A thread keeps the place and looks where the others are. */
#include "cmd/registry/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/threads/thread.h"
#include "core/cluster/description/named.h"
#include "net/coordinator/coordinator.h"

enum {
    LOOK_MS = 250,    /* while somebody is waited for, */
    LOOK_MS_EACH = 2, /* and for each task: a thousand look at a thousand places */
    NOTE_MS = 10000,
    LACKING_MAX = 3, /* are named */
    LACKING_BYTES = 120,
    KEY_BYTES = 160,
    TASKS_BYTES = 32,
    VALUE_BYTES = ADDRESS_MAX + TASKS_BYTES,
};

enum place { PLACE_NONE, PLACE_OURS, PLACE_LOST }; /* lost: to be claimed again */

struct registry {
    struct coordinator *coordinator;
    struct cluster_spec *cluster;
    enum job last_job;      /* that is looked for, from the ps on */
    const char *limit_name; /* of waiting */
    enum place place;
    char value[VALUE_BYTES]; /* of our place */
    char tasks[TASKS_BYTES];
    pthread_t thread;
    bool has_joined; /* all have been found; before the thread begins */
    bool has_thread;
    struct log_limit unanswered;
    uint64_t began_ms, noted_ms; /* of waiting */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t ends;
    bool is_over, is_asked;                  /* where somebody is, since the thread looked */
    char (*address[JOB_COUNT])[ADDRESS_MAX]; /* "": nobody has been there */
};

/* ---- asking: one thread at a time ---- */

static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER; /* guards the coordinator, and */
static struct registry *opened;                            /* whoever has one */

static err ask_to_claim(struct registry *r, const char *key, bool *ret_is_ours)
{
    pthread_mutex_lock(&asking);
    const err e = coordinator_claim(r->coordinator, key, r->value, ret_is_ours);
    pthread_mutex_unlock(&asking);
    return e;
}

static err ask_to_renew(struct registry *r, bool *ret_has_lost)
{
    pthread_mutex_lock(&asking);
    const err e = coordinator_renew(r->coordinator, ret_has_lost);
    pthread_mutex_unlock(&asking);
    return e;
}

static err ask_for_list(struct registry *r, const char *folder, struct arena *arena,
                        struct coordinator_entry **ret, int *ret_count)
{
    pthread_mutex_lock(&asking);
    const err e = coordinator_list(r->coordinator, folder, arena, ret, ret_count);
    pthread_mutex_unlock(&asking);
    return e;
}

/* Takes what nobody has claimed by yet. */
static void have_coordinator(struct registry *r, struct coordinator *c)
{
    pthread_mutex_lock(&asking);
    r->coordinator = c;
    opened = r;
    pthread_mutex_unlock(&asking);
}

static void let_coordinator_go(struct registry *r)
{
    pthread_mutex_lock(&asking);
    coordinator_close(r->coordinator);
    r->coordinator = NULL;
    opened = NULL;
    pthread_mutex_unlock(&asking);
}

/* Nobody asks any more. Longer than a lease nothing needs to be given back. */
void registry_leave_at_once(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += COORDINATOR_LEASE_S;
    if (pthread_mutex_timedlock(&asking, &until)) return;
    if (opened) coordinator_close(opened->coordinator);
}

static int count_of(const struct registry *r, enum job job)
{
    return r->cluster->hosts[job].count;
}

static const char *key_of(const struct registry *r, enum job job, int task, char ret[KEY_BYTES])
{
    snprintf(ret, KEY_BYTES, "%s/%s/%d", r->cluster->name, job_name(job), task);
    return ret;
}

/* ---- where the others are ---- */

static void find(void *registry, enum job job, int task, char ret[ADDRESS_MAX])
{
    struct registry *r = registry;
    pthread_mutex_lock(&r->lock);
    snprintf(ret, ADDRESS_MAX, "%s", r->address[job][task]);
    r->is_asked = true;
    pthread_mutex_unlock(&r->lock);
}

static bool take_asked(struct registry *r)
{
    pthread_mutex_lock(&r->lock);
    const bool is_asked = r->is_asked;
    r->is_asked = false;
    pthread_mutex_unlock(&r->lock);
    return is_asked;
}

static void note_address(struct registry *r, enum job job, int task, const char *address)
{
    char before[ADDRESS_MAX], name[TASK_NAME_MAX];
    pthread_mutex_lock(&r->lock);
    snprintf(before, sizeof before, "%s", r->address[job][task]);
    snprintf(r->address[job][task], ADDRESS_MAX, "%s", address);
    pthread_mutex_unlock(&r->lock);
    if (before[0] && strcmp(before, address) != 0)
        log_line(LOG_INFO, "%s is at %s now", task_name(job, task, name), address);
}

/* "10.0.0.5:4021 ps=2,worker=3" */
static const char *tasks_of(const char *value)
{
    const size_t bytes = strcspn(value, " ");
    return value[bytes] ? value + bytes + 1 : "";
}

/* What is no place of this cluster is somebody's slip. */
static err read_place(struct registry *r, enum job job, const struct coordinator_entry *entry)
{
    char *end, name[TASK_NAME_MAX], address[ADDRESS_MAX];
    const long task = strtol(entry->name, &end, 10);
    const size_t bytes = strcspn(entry->value, " ");
    const char *tasks = tasks_of(entry->value);
    if (*end || end == entry->name || task < 0) return OK;
    if (strcmp(tasks, r->tasks) != 0)
        return fail(ERR_INPUT, "cluster %s: %s at %.*s says --tasks=%.32s, this task --tasks=%s",
                    r->cluster->name, task_name(job, (int)task, name), (int)bytes, entry->value,
                    tasks, r->tasks);
    snprintf(address, sizeof address, "%.*s", (int)bytes, entry->value);
    if (task >= count_of(r, job) || address_check(address)) return OK;
    note_address(r, job, (int)task, address);
    return OK;
}

/* Before all have been found a place that is free again is empty; later it is where the task was
 * last, which is there still or comes back. */
static void forget_addresses(struct registry *r)
{
    for (enum job job = 0; job < JOB_COUNT; job++)
        memset(r->address[job], 0, (size_t)count_of(r, job) * sizeof *r->address[job]);
}

static err list(struct registry *r, enum job job, struct arena *arena,
                struct coordinator_entry **ret, int *ret_count)
{
    char folder[KEY_BYTES];
    snprintf(folder, sizeof folder, "%s/%s", r->cluster->name, job_name(job));
    return ask_for_list(r, folder, arena, ret, ret_count);
}

static err look(struct registry *r)
{
    if (!r->has_joined) forget_addresses(r);
    for (enum job job = 0; job <= r->last_job; job++) {
        struct arena arena = {0};
        struct coordinator_entry *entries;
        int count;
        err e = list(r, job, &arena, &entries, &count);
        for (int i = 0; !e && i < count; i++) e = read_place(r, job, &entries[i]);
        arena_free(&arena);
        if (e) return e;
    }
    return OK;
}

/* ---- the place ---- */

/* ret_is_ours false: none that would do is free. */
static err claim(struct registry *r, bool *ret_is_ours)
{
    const struct cluster_spec *cluster = r->cluster;
    const int wanted = cluster->task, count = count_of(r, cluster->job);
    const int first = wanted < 0 ? 0 : wanted, end = wanted < 0 ? count : wanted + 1;
    char key[KEY_BYTES];
    *ret_is_ours = false;
    for (int task = first; task < end && !*ret_is_ours; task++) {
        TRY(ask_to_claim(r, key_of(r, cluster->job, task, key), ret_is_ours));
        if (*ret_is_ours) r->cluster->task = task;
    }
    return OK;
}

static bool is_key_of(const struct coordinator_entry *entry, int task)
{
    char *end;
    return strtol(entry->name, &end, 10) == task && end != entry->name && !*end;
}

/* By its value: what we have claimed under a lease of before may still be there. */
static err find_another(struct registry *r, bool *ret_is_there)
{
    struct arena arena = {0};
    struct coordinator_entry *entries;
    int count;
    const err e = list(r, r->cluster->job, &arena, &entries, &count);
    *ret_is_there = false;
    for (int i = 0; !e && i < count; i++)
        *ret_is_there |=
            is_key_of(&entries[i], r->cluster->task) && strcmp(entries[i].value, r->value) != 0;
    arena_free(&arena);
    return e;
}

/* Somebody else who has taken the place meanwhile is the task now: a ps says so to whoever asks.
 * Where nobody has it, or the coordinator does not say, it stays lost. */
static err claim_again(struct registry *r)
{
    bool is_ours, is_anothers = false;
    char name[TASK_NAME_MAX];
    TRY(claim(r, &is_ours));
    if (!is_ours) TRY(find_another(r, &is_anothers));
    if (!is_ours && !is_anothers) return OK;
    r->place = is_ours ? PLACE_OURS : PLACE_NONE;
    task_name(r->cluster->job, r->cluster->task, name);
    log_line(LOG_WARNING,
             "was cut off from the coordinator for too long: the place of %s was lost%s", name,
             is_ours ? ", and is taken again" : " to another one");
    return OK;
}

static err renew(struct registry *r)
{
    bool has_lost = false;
    TRY(ask_to_renew(r, &has_lost));
    if (has_lost && r->place == PLACE_OURS) r->place = PLACE_LOST;
    return r->place == PLACE_LOST ? claim_again(r) : OK;
}

static err keep(struct registry *r)
{
    TRY(renew(r));
    return take_asked(r) ? look(r) : OK;
}

/* false: it is over. */
static bool rest(struct registry *r)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += COORDINATOR_RENEW_MS / 1000;
    until.tv_nsec += COORDINATOR_RENEW_MS % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&r->lock);
    if (!r->is_over) pthread_cond_timedwait(&r->ends, &r->lock, &until);
    const bool goes_on = !r->is_over;
    pthread_mutex_unlock(&r->lock);
    return goes_on;
}

static void *keep_place(void *registry)
{
    struct registry *r = registry;
    while (rest(r))
        if (keep(r))
            log_limited(&r->unanswered, clock_ms(), LOG_WARNING, "coordinator: %s", error_text());
    return NULL;
}

/* ---- joining ---- */

/* Once without answer is no harm: the limit is that of waiting. */
static err look_once_more(struct registry *r, err e, uint64_t limit_ms, const char *what)
{
    const uint64_t tasks = (uint64_t)(count_of(r, JOB_PS) + count_of(r, JOB_WORKER));
    const uint64_t pause_ms = LOOK_MS + LOOK_MS_EACH * tasks;
    const struct timespec pause = {(time_t)(pause_ms / 1000), (long)(pause_ms % 1000) * 1000000};
    const uint64_t now_ms = clock_ms(), waited_ms = now_ms - r->began_ms;
    if (e && e != ERR_IO) return e;
    if (waited_ms >= limit_ms)
        return e ? fail_prefix(ERR_TIMEOUT, "no answer in %.3g s (%s)", (double)limit_ms / 1000,
                               r->limit_name)
                 : fail(ERR_TIMEOUT, "cluster %s: %s, %.3g s (%s)", r->cluster->name, what,
                        (double)limit_ms / 1000, r->limit_name);
    if (now_ms - r->noted_ms >= NOTE_MS) {
        r->noted_ms = now_ms;
        log_line(LOG_INFO, "cluster %s: %s, %llu s of %.3g s", r->cluster->name,
                 e ? error_text() : what, (unsigned long long)waited_ms / 1000,
                 (double)limit_ms / 1000);
    }
    nanosleep(&pause, NULL);
    if (r->coordinator) (void)renew(r); /* the next look says what is wrong */
    return OK;
}

static err open_coordinator(struct registry *r, const struct registry_options *o)
{
    struct coordinator *c = NULL;
    while (!c) { /* ends: look_once_more has a limit */
        const err e = coordinator_open(o->coordinator, &c);
        if (e) TRY(look_once_more(r, e, o->limit_ms, ""));
    }
    have_coordinator(r, c);
    return OK;
}

static err take_place(struct registry *r, uint64_t limit_ms)
{
    char what[LACKING_BYTES];
    bool is_ours = false;
    for (;;) { /* ends: look_once_more has a limit */
        err e = claim(r, &is_ours);
        if (is_ours) break;
        if (!e) e = look(r); /* they may say another number of places */
        if (r->cluster->task >= 0)
            snprintf(what, sizeof what, "the place of %s/%d is taken", job_name(r->cluster->job),
                     r->cluster->task);
        else
            snprintf(what, sizeof what, "all %d places of a %s are taken",
                     count_of(r, r->cluster->job), job_name(r->cluster->job));
        TRY(look_once_more(r, e, limit_ms, what));
    }
    r->place = PLACE_OURS;
    return OK;
}

/* "waits for ps/1, worker/0 and 7 more"; false: for nobody. */
static bool lacks(const struct registry *r, char ret[LACKING_BYTES])
{
    int count = 0;
    size_t used = (size_t)snprintf(ret, LACKING_BYTES, "waits for");
    for (enum job job = 0; job <= r->last_job; job++)
        for (int task = 0; task < count_of(r, job); task++) {
            if (r->address[job][task][0] || ++count > LACKING_MAX) continue;
            used += (size_t)snprintf(ret + used, LACKING_BYTES - used, "%s %s/%d",
                                     count > 1 ? "," : "", job_name(job), task);
        }
    if (count > LACKING_MAX)
        snprintf(ret + used, LACKING_BYTES - used, " and %d more", count - LACKING_MAX);
    return count > 0;
}

static err wait_for_others(struct registry *r, uint64_t limit_ms)
{
    char what[LACKING_BYTES];
    err e = look(r);
    r->began_ms = r->noted_ms = clock_ms();
    while (e || lacks(r, what)) { /* ends: look_once_more has a limit */
        TRY(look_once_more(r, e, limit_ms, what));
        e = look(r);
    }
    return OK;
}

/* How many tasks there are, from whichever ps is there. */
static err find_tasks(struct registry *r, uint64_t limit_ms, struct arena *arena)
{
    struct coordinator_entry *entries;
    int count;
    err e = list(r, JOB_PS, arena, &entries, &count);
    while (e || count == 0) { /* ends: look_once_more has a limit */
        TRY(look_once_more(r, e, limit_ms, "waits for its ps"));
        e = list(r, JOB_PS, arena, &entries, &count);
    }
    e = named_cluster_tasks(tasks_of(entries[0].value), arena, r->cluster);
    return e ? fail_prefix(e, "cluster %s: ps/%.16s", r->cluster->name, entries[0].name) : OK;
}

static err open_addresses(struct registry *r)
{
    snprintf(r->tasks, sizeof r->tasks, "ps=%d,worker=%d", count_of(r, JOB_PS),
             count_of(r, JOB_WORKER));
    for (enum job job = 0; job < JOB_COUNT; job++) {
        r->address[job] = calloc((size_t)count_of(r, job), sizeof *r->address[job]);
        if (!r->address[job]) return fail(ERR_MEMORY, "no memory for addresses");
    }
    return OK;
}

/* What the lists of hosts would have said. */
static void tell_cluster(struct registry *r, struct arena *arena)
{
    struct cluster_spec *cluster = r->cluster;
    char address[ADDRESS_MAX];
    for (enum job job = 0; job < JOB_COUNT; job++)
        for (int task = 0; task < count_of(r, job); task++) {
            find(r, job, task, address);
            cluster->hosts[job].at[task] = arena_string(arena, address);
        }
    cluster->find = find;
    cluster->registry = r;
}

static err join(struct registry *r, const struct registry_options *o, struct arena *arena)
{
    r->began_ms = r->noted_ms = clock_ms();
    TRY(open_coordinator(r, o));
    if (count_of(r, JOB_PS) == 0) TRY(find_tasks(r, o->limit_ms, arena));
    TRY(open_addresses(r));
    if (o->address) snprintf(r->value, sizeof r->value, "%s %s", o->address, r->tasks);
    if (o->address) TRY(take_place(r, o->limit_ms));
    TRY(wait_for_others(r, o->limit_ms));
    tell_cluster(r, arena);
    r->has_joined = true;
    TRY(thread_start(&r->thread, keep_place, r));
    r->has_thread = true;
    return OK;
}

err registry_join(const struct registry_options *o, struct arena *arena, struct registry **ret)
{
    struct registry *r = calloc(1, sizeof *r);
    if (!r) return fail(ERR_MEMORY, "no memory for a registry");
    r->cluster = o->cluster;
    r->last_job = o->only_ps ? JOB_PS : JOB_WORKER;
    r->limit_name = o->limit_name;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->ends, NULL);
    const err e = join(r, o, arena);
    if (e)
        registry_leave(r);
    else
        *ret = r;
    return e;
}

void registry_leave(struct registry *r)
{
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    r->is_over = true;
    pthread_cond_signal(&r->ends);
    pthread_mutex_unlock(&r->lock);
    if (r->has_thread) pthread_join(r->thread, NULL);
    let_coordinator_go(r);
    for (enum job job = 0; job < JOB_COUNT; job++) free(r->address[job]);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->ends);
    free(r);
}
