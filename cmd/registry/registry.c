/* registry.c - see registry.h. A thread renews the place and looks up the others' addresses. */
#include "cmd/registry/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/retries.h"
#include "core/base/threads/thread.h"
#include "core/cluster/description/named.h"
#include "net/coordinator/coordinator.h"

enum {
    LOOK_MS = 250,    /* between two looks while it waits for others, */
    LOOK_MS_EACH = 2, /* plus this per task, to limit the load of large jobs */
    SURE_MS = COORDINATOR_LEASE_S * 1000 + COORDINATOR_RENEW_MS, /* keys left are of living tasks */
    FREE_MS = 2 * COORDINATOR_RENEW_MS, /* a living task has rewritten a removed key by then */
    AWAY_MS = 2 * SURE_MS, /* after an outage keys from before it have expired by then */
    MEMBERSHIPS_MAX = 64,  /* attempts to keep a place */
    LACKING_MAX = 3,       /* missing tasks named in messages */
    LACKING_BYTES = 120,
    KEY_BYTES = 160,
};

/* Suffix of a second key of a place: claimed by a task that has joined and lost its place to one
 * that has not, which then gives the place back. */
static const char HELD[] = ".held";

enum registry_place { PLACE_NONE, PLACE_OURS, PLACE_LOST }; /* PLACE_LOST: to be claimed again */

/* Shared by the thread and the task */
struct shared_places {
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wakes;
    bool is_over, is_asked; /* find() was called since the thread last looked */
    bool is_due;            /* the thread is to renew at once */
    bool is_lost;           /* another task has its place */
    struct membership now;
    char (*address[JOB_COUNT])[ADDRESS_MAX]; /* last known address of each place; "": none yet */
};

struct registry {
    struct coordinator *coordinator;
    struct registry_options options;
    struct cluster_spec *cluster; /* the thread reads only constant fields */
    enum job last_job;            /* jobs up to this one are looked up, ps first */
    int room[JOB_COUNT];          /* most places of each job */
    int wanted;                   /* place; -1: any */
    enum registry_place place;
    struct membership first; /* of this task's --tasks; without tasks: not given */
    pthread_t thread;
    bool has_joined; /* all were found; set before the thread starts */
    uint64_t joined_ms;
    bool is_under_way;   /* others have joined: a free place may belong to a living task */
    bool was_sure;       /* its place had been free long enough to be nobody's */
    bool gives_way;      /* a task that has joined holds this place */
    uint64_t *free_ms;   /* per place of its job: since when it is free; 0: it is taken */
    bool is_undecided;   /* votes on --tasks are tied, since */
    uint64_t differs_ms; /* 0: they are not */
    bool has_thread;
    struct log_limit unanswered;
    struct {
        uint64_t began_ms, noted_ms;
        uint64_t away_ms; /* when the coordinator last failed to answer; 0: never */
    } waiting;
    uint64_t looked_ms, found; /* time of the first look; resizes found then */
    bool has_seen_resize;

    struct shared_places shared;
};

/* ---- requests: one thread at a time ---- */

static pthread_mutex_t coordinator_lock =
    PTHREAD_MUTEX_INITIALIZER;  /* guards the coordinator, and */
static struct registry *opened; /* the registry that has one */

static err ask_to_claim(struct registry *r, const char *key, const char *value, bool *ret_is_ours)
{
    pthread_mutex_lock(&coordinator_lock);
    const err e = coordinator_claim(r->coordinator, key, value, ret_is_ours);
    pthread_mutex_unlock(&coordinator_lock);
    return e;
}

static err ask_to_renew(struct registry *r, bool *ret_has_lost)
{
    pthread_mutex_lock(&coordinator_lock);
    const err e = coordinator_renew(r->coordinator, ret_has_lost);
    pthread_mutex_unlock(&coordinator_lock);
    return e;
}

static err ask_for_list(struct registry *r, const char *folder, struct arena *arena,
                        struct coordinator_entry **ret, int *ret_count)
{
    pthread_mutex_lock(&coordinator_lock);
    const err e = coordinator_list(r->coordinator, folder, arena, ret, ret_count);
    pthread_mutex_unlock(&coordinator_lock);
    return e;
}

/* Takes ownership of a coordinator without claims. */
static void have_coordinator(struct registry *r, struct coordinator *c)
{
    pthread_mutex_lock(&coordinator_lock);
    r->coordinator = c;
    opened = r;
    pthread_mutex_unlock(&coordinator_lock);
}

static void let_coordinator_go(struct registry *r)
{
    pthread_mutex_lock(&coordinator_lock);
    coordinator_close(r->coordinator);
    r->coordinator = NULL;
    opened = NULL;
    pthread_mutex_unlock(&coordinator_lock);
}

/* Keeps the lock, so that no more requests are made. After a lease there are no keys to release. */
void registry_leave_at_once(int signo)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += COORDINATOR_LEASE_S;
    if (pthread_mutex_timedlock(&coordinator_lock, &until)) return;
    if (opened) coordinator_close(opened->coordinator);
}

static struct membership membership_now(struct registry *r)
{
    pthread_mutex_lock(&r->shared.lock);
    const struct membership now = r->shared.now;
    pthread_mutex_unlock(&r->shared.lock);
    return now;
}

static int count_of(struct registry *r, enum job job)
{
    return membership_now(r).count[job];
}

static const char *key_of(const struct registry *r, enum job job, int task, char ret[KEY_BYTES])
{
    snprintf(ret, KEY_BYTES, "%s/%s/%d", r->cluster->name, job_name(job), task);
    return ret;
}

/* ---- addresses of the others ---- */

static void find(void *registry, enum job job, int task, char ret[ADDRESS_MAX])
{
    struct registry *r = registry;
    pthread_mutex_lock(&r->shared.lock);
    snprintf(ret, ADDRESS_MAX, "%s", r->shared.address[job][task]);
    r->shared.is_asked = true;
    pthread_mutex_unlock(&r->shared.lock);
}

static bool take_asked(struct registry *r)
{
    pthread_mutex_lock(&r->shared.lock);
    const bool is_asked = r->shared.is_asked;
    r->shared.is_asked = false;
    pthread_mutex_unlock(&r->shared.lock);
    return is_asked;
}

static void note_address(struct registry *r, enum job job, int task, const char *address)
{
    char before[ADDRESS_MAX], name[TASK_NAME_MAX];
    pthread_mutex_lock(&r->shared.lock);
    snprintf(before, sizeof before, "%s", r->shared.address[job][task]);
    snprintf(r->shared.address[job][task], ADDRESS_MAX, "%s", address);
    pthread_mutex_unlock(&r->shared.lock);
    if (before[0] && strcmp(before, address) != 0)
        log_line(LOG_INFO, "%s is at %s now", task_name(job, task, name), address);
}

/* Tasks with the same --tasks, without resizes. One that has joined outweighs all that have not. */
enum { VOTES_MAX = 8, JOINED_WEIGHT = 1 << 16 };
struct vote {
    struct membership membership;
    int weight;
    enum job job; /* the first such task */
    int task;
    char address[ADDRESS_MAX];
};

/* The memberships in the values of places */
struct memberships {
    struct membership latest;
    struct vote votes[VOTES_MAX];
    int count;
    bool is_under_way; /* a task has joined; only then a job can be resized */
};

static struct vote *vote_of(struct memberships *memberships, const struct membership *membership)
{
    for (int i = 0; i < memberships->count; i++)
        if (membership_is_same(&memberships->votes[i].membership, membership))
            return &memberships->votes[i];
    return NULL;
}

static bool is_before(enum job job, int task, const struct vote *v)
{
    return job < v->job || (job == v->job && task < v->task);
}

static void take_vote(struct memberships *memberships, enum job job, int task,
                      const struct named_place *p)
{
    struct vote *v = vote_of(memberships, &p->membership);
    const bool is_new = !v;
    if (is_new && memberships->count == VOTES_MAX) return;
    if (is_new) v = &memberships->votes[memberships->count++];
    if (is_new) *v = (struct vote){.membership = p->membership};
    v->weight += p->has_joined ? JOINED_WEIGHT : 1;
    if (!is_new && !is_before(job, task, v)) return;
    v->job = job;
    v->task = task;
    snprintf(v->address, sizeof v->address, "%s", p->address);
}

static bool has_words(const struct registry *r)
{
    return r->first.count[JOB_PS] > 0;
}

/* Parses a key and its value; false: no place of this cluster. ending: "" or HELD */
static bool read_entry(const struct registry *r, enum job job, const char *ending,
                       const struct coordinator_entry *entry, int *ret_task,
                       struct named_place *ret)
{
    char *end;
    const long task = strtol(entry->name, &end, 10);
    if (end == entry->name || strcmp(end, ending) != 0) return false;
    if (task < 0 || task >= r->room[job] || !named_place_read(entry->value, ret)) return false;
    *ret_task = (int)task;
    return true;
}

/* Notes a place that a joined task holds; what the place's own key says does not count then. */
static void read_held(struct registry *r, enum job job, const struct coordinator_entry *entry,
                      bool *is_held)
{
    int task;
    struct named_place place;
    if (!read_entry(r, job, HELD, entry, &task, &place)) return;
    is_held[task] = true;
    note_address(r, job, task, place.address);
    const bool has_it = r->options.address && r->place != PLACE_NONE && !r->has_joined;
    if (has_it && job == r->cluster->job && task == r->cluster->task)
        r->gives_way |= strcmp(place.address, r->options.address) != 0;
}

/* A task that names other --tasks is not one of those that are waited for. */
static void read_place(struct registry *r, enum job job, const struct coordinator_entry *entry,
                       const bool *is_held, struct memberships *memberships)
{
    int task;
    struct named_place place;
    if (!read_entry(r, job, "", entry, &task, &place) || is_held[task]) return;
    const bool is_later = place.membership.resizes > memberships->latest.resizes;
    if (is_later || !memberships->latest.count[JOB_PS]) memberships->latest = place.membership;
    memberships->is_under_way |= place.has_joined || place.membership.resizes > 0;
    if (!place.membership.resizes) take_vote(memberships, job, task, &place);
    const bool is_alike =
        place.membership.resizes || membership_is_same(&place.membership, &r->first);
    if (is_alike || r->has_joined || !has_words(r)) note_address(r, job, task, place.address);
}

static const struct vote *heaviest_other(const struct registry *r,
                                         const struct memberships *memberships)
{
    const struct vote *most = NULL;
    for (int i = 0; i < memberships->count; i++) {
        const struct vote *v = &memberships->votes[i];
        if (!membership_is_same(&v->membership, &r->first) && (!most || v->weight > most->weight))
            most = v;
    }
    return most;
}

/* In a tie: true while more votes may come, for SURE_MS; then the first place decides. */
static bool is_undecided(struct registry *r)
{
    const uint64_t now_ms = clock_ms();
    if (!r->differs_ms) r->differs_ms = now_ms;
    return now_ms - r->differs_ms < SURE_MS;
}

/* --tasks count until the job is resized; later they may be outdated. The majority is right.
 * ERR_INPUT: this task says something else. */
static err agree(struct registry *r, struct memberships *memberships)
{
    char theirs[NAMED_TASKS_BYTES], ours[NAMED_TASKS_BYTES], name[TASK_NAME_MAX];
    const struct vote *other = heaviest_other(r, memberships),
                      *own = vote_of(memberships, &r->first);
    const bool has_vote = r->options.address && r->place == PLACE_NONE;
    const int weight = (own ? own->weight : 0) + has_vote;
    const bool is_open = has_words(r) && !memberships->latest.resizes && other;
    const bool is_tie = is_open && weight == other->weight;
    r->is_undecided = is_tie && is_undecided(r);
    if (!is_tie) r->differs_ms = 0;
    if (!is_open || weight > other->weight || r->is_undecided) return OK;
    if (is_tie && own && is_before(own->job, own->task, other)) return OK;
    return fail(ERR_INPUT, "cluster %s: %s at %s says --tasks=%s, this task --tasks=%s",
                r->cluster->name, task_name(other->job, other->task, name), other->address,
                named_tasks_text(&other->membership, theirs), named_tasks_text(&r->first, ours));
}

/* Until all have been found, a place that becomes free has no address. Later the last address is
 * kept: the task is still there, or comes back. */
static void forget_addresses(struct registry *r)
{
    for (enum job job = 0; job < JOB_COUNT; job++)
        for (int task = 0; task < r->room[job]; task++)
            if (r->shared.address[job][task][0]) r->shared.address[job][task][0] = '\0';
}

static err list(struct registry *r, enum job job, struct arena *arena,
                struct coordinator_entry **ret, int *ret_count)
{
    char folder[KEY_BYTES];
    snprintf(folder, sizeof folder, "%s/%s", r->cluster->name, job_name(job));
    return ask_for_list(r, folder, arena, ret, ret_count);
}

static err look_at(struct registry *r, enum job job, struct memberships *memberships)
{
    struct arena arena = {0};
    struct coordinator_entry *entries;
    int count;
    const err e = list(r, job, &arena, &entries, &count);
    bool *is_held = arena_array(&arena, (size_t)r->room[job], sizeof *is_held);
    for (int i = 0; !e && i < count; i++) read_held(r, job, &entries[i], is_held);
    for (int i = 0; !e && i < count; i++) read_place(r, job, &entries[i], is_held, memberships);
    arena_free(&arena);
    return e;
}

static void note_free(struct registry *r)
{
    const enum job job = r->cluster->job;
    const uint64_t now_ms = clock_ms();
    for (int task = 0; r->options.address && task < r->room[job]; task++)
        r->free_ms[task] = r->shared.address[job][task][0] ? 0
                           : r->free_ms[task]              ? r->free_ms[task]
                                                           : now_ms;
}

/* Reads all places. Once joined, only addresses: resizes are reported by peers. */
static err look(struct registry *r)
{
    struct memberships memberships = {.latest = r->first};
    r->gives_way = false;
    if (!r->has_joined) forget_addresses(r);
    for (enum job job = 0; job <= r->last_job; job++) TRY(look_at(r, job, &memberships));
    if (r->has_joined) return OK;
    note_free(r);
    r->is_under_way = memberships.is_under_way;
    r->shared.now = memberships.latest;
    if (!r->looked_ms) r->looked_ms = clock_ms(), r->found = r->shared.now.resizes;
    r->has_seen_resize |= r->shared.now.resizes > r->found;
    return agree(r, &memberships);
}

/* Whether a membership with resizes is of living tasks. Keys of killed ones remain for a while, and
 * if all tasks are restarted together, they begin with --tasks. */
static bool lives(const struct registry *r)
{
    return !r->shared.now.resizes || r->has_seen_resize || clock_ms() - r->looked_ms >= SURE_MS;
}

/* ---- the place ---- */

/* A place that was claimed before others were seen to have joined is no place: it may belong to a
 * living task whose key was lost, and which will write it again. */
static bool has_place(struct registry *r)
{
    const bool is_doubtful = r->is_under_way && !r->was_sure;
    return !r->options.address || (r->place != PLACE_NONE && !is_doubtful && !r->gives_way &&
                                   r->cluster->task < count_of(r, r->cluster->job));
}

/* When the coordinator was unreachable, all living tasks have lost their keys, and return one after
 * the other, some after a failed attempt: a place that is free since then must be so for longer. */
static bool may_claim(const struct registry *r, int task)
{
    const uint64_t since_ms = r->free_ms[task], away_ms = r->waiting.away_ms;
    const bool was_away = away_ms && since_ms < away_ms + AWAY_MS;
    return since_ms &&
           (!r->is_under_way || clock_ms() - since_ms >= (was_away ? SURE_MS : FREE_MS));
}

/* Before it has joined, a task writes only its own --tasks, so that a membership left by a former
 * run does not outlive that. It writes that it has joined only when all the others, which may be a
 * moment behind, will have joined. */
static err claim_key(struct registry *r, const char *key, bool *ret_is_ours)
{
    struct named_place place = {.membership = r->has_joined ? membership_now(r) : r->first};
    char value[NAMED_PLACE_BYTES];
    place.has_joined = r->has_joined && clock_ms() - r->joined_ms >= FREE_MS;
    snprintf(place.address, sizeof place.address, "%s", r->options.address);
    named_place_text(&place, value);
    return ask_to_claim(r, key, value, ret_is_ours);
}

static err claim_one(struct registry *r, int task, bool *ret_is_ours)
{
    char key[KEY_BYTES];
    return claim_key(r, key_of(r, r->cluster->job, task, key), ret_is_ours);
}

/* Claims the second key of its place, under this task's lease. */
static err claim_held(struct registry *r)
{
    char key[KEY_BYTES], held[KEY_BYTES + sizeof HELD];
    bool is_ours;
    snprintf(held, sizeof held, "%s%s", key_of(r, r->cluster->job, r->cluster->task, key), HELD);
    return claim_key(r, held, &is_ours);
}

/* *ret_is_ours false: no suitable place is free. */
static err claim(struct registry *r, bool *ret_is_ours)
{
    const enum job job = r->cluster->job;
    const int first = r->wanted < 0 ? 0 : r->wanted;
    const int end = r->wanted < 0 ? count_of(r, job) : r->wanted + 1;
    *ret_is_ours = false;
    for (int task = first; task < end && task < count_of(r, job) && !*ret_is_ours; task++) {
        if (!may_claim(r, task)) continue;
        r->was_sure = r->is_under_way;
        TRY(claim_one(r, task, ret_is_ours));
        if (*ret_is_ours) r->cluster->task = task;
    }
    return OK;
}

/* Whether another task has this place. If this one has joined, only one that has joined, too,
 * counts: others may yet see that the place is not free. */
static bool is_anothers(const struct registry *r, const struct coordinator_entry *entry)
{
    int task;
    struct named_place place;
    const bool is_here = read_entry(r, r->cluster->job, "", entry, &task, &place);
    return is_here && task == r->cluster->task && strcmp(place.address, r->options.address) != 0 &&
           (!r->has_joined || place.has_joined);
}

/* Whether another task has the place; a key of this task's previous lease does not count. */
static err find_another(struct registry *r, bool *ret_is_there)
{
    struct arena arena = {0};
    struct coordinator_entry *entries;
    int count;
    const err e = list(r, r->cluster->job, &arena, &entries, &count);
    *ret_is_there = false;
    for (int i = 0; !e && i < count; i++) *ret_is_there |= is_anothers(r, &entries[i]);
    arena_free(&arena);
    return e;
}

static void note_lost(struct registry *r)
{
    pthread_mutex_lock(&r->shared.lock);
    r->shared.is_lost = r->has_joined;
    pthread_mutex_unlock(&r->shared.lock);
}

/* If another task has taken the place meanwhile and has joined, that is the task now, and this one
 * ends (has_lost). If it has not joined, or nobody has the place, or the coordinator does not
 * answer, the place stays lost: the newcomer may never join, if it waits for one more that is gone.
 */
static err claim_again(struct registry *r)
{
    bool is_ours, is_taken = false;
    char name[TASK_NAME_MAX];
    TRY(claim_one(r, r->cluster->task, &is_ours));
    if (!is_ours) TRY(find_another(r, &is_taken));
    if (!is_ours && !is_taken) return r->has_joined ? claim_held(r) : OK;
    r->place = is_ours ? PLACE_OURS : PLACE_NONE;
    if (is_taken) note_lost(r);
    task_name(r->cluster->job, r->cluster->task, name);
    log_line(LOG_WARNING, "the place of %s was lost at the coordinator%s", name,
             is_ours ? ", and is taken again" : " to another one");
    return OK;
}

/* Also writes the key each time: the membership may be a new one, and somebody may have removed the
 * key although the lease is still valid. */
static err renew(struct registry *r)
{
    bool has_lost = false, is_ours = true;
    TRY(ask_to_renew(r, &has_lost));
    if (!has_lost && r->place == PLACE_OURS) TRY(claim_one(r, r->cluster->task, &is_ours));
    if ((has_lost || !is_ours) && r->place == PLACE_OURS) r->place = PLACE_LOST;
    return r->place == PLACE_LOST ? claim_again(r) : OK;
}

static err keep(struct registry *r)
{
    TRY(renew(r));
    return take_asked(r) ? look(r) : OK;
}

/* Waits until the next renewal is due; false: the registry is being closed. */
static bool rest(struct registry *r)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += COORDINATOR_RENEW_MS / 1000;
    until.tv_nsec += COORDINATOR_RENEW_MS % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&r->shared.lock);
    if (!r->shared.is_over && !r->shared.is_due)
        pthread_cond_timedwait(&r->shared.wakes, &r->shared.lock, &until);
    const bool goes_on = !r->shared.is_over;
    r->shared.is_due = false;
    pthread_mutex_unlock(&r->shared.lock);
    return goes_on;
}

static void note_unanswered(struct registry *r)
{
    retries_note();
    log_limited(
        &r->unanswered, clock_ms(), LOG_WARNING,
        "the coordinator does not answer: asks again; the job continues, but no task can join "
        "it meanwhile: %s",
        error_text());
}

static void *keep_place(void *registry)
{
    struct registry *r = registry;
    while (rest(r))
        if (keep(r)) note_unanswered(r);
    return NULL;
}

/* ---- joining ---- */

/* Pauses before the next look. ERR_IO is tolerated until the limit. ERR_TIMEOUT */
static err look_once_more(struct registry *r, err e, const char *what)
{
    const uint64_t limit_ms = r->options.limit_ms;
    const char *limit_name = r->options.limit_name;
    const uint64_t tasks = (uint64_t)(count_of(r, JOB_PS) + count_of(r, JOB_WORKER));
    const uint64_t now_ms = clock_ms(), waited_ms = now_ms - r->waiting.began_ms;
    if (e && e != ERR_IO) return e;
    if (e) {
        r->waiting.away_ms = now_ms;
        memset(r->free_ms, 0, (size_t)r->room[r->cluster->job] * sizeof *r->free_ms);
    }
    if (waited_ms >= limit_ms)
        return e ? fail_prefix(ERR_TIMEOUT, "no answer in %.3g s (%s)", (double)limit_ms / 1000,
                               limit_name)
                 : fail(ERR_TIMEOUT, "cluster %s: %s, %.3g s (%s)", r->cluster->name, what,
                        (double)limit_ms / 1000, limit_name);
    if (!r->waiting.noted_ms || log_wait_is_due(r->waiting.began_ms, r->waiting.noted_ms, now_ms)) {
        r->waiting.noted_ms = now_ms;
        log_line(LOG_INFO, "cluster %s: %s, %llu s of %.3g s", r->cluster->name,
                 e ? error_text() : what, (unsigned long long)waited_ms / 1000,
                 (double)limit_ms / 1000);
    }
    clock_pause(LOOK_MS + LOOK_MS_EACH * tasks);
    if (r->coordinator) (void)renew(r); /* the next look reports errors */
    return OK;
}

static err open_coordinator(struct registry *r)
{
    struct coordinator *c = NULL;
    while (!c) { /* ends: look_once_more has a limit */
        const err e = coordinator_open(r->options.coordinator, &c);
        if (e) TRY(look_once_more(r, e, ""));
    }
    have_coordinator(r, c);
    return OK;
}

static bool sees_free(struct registry *r)
{
    const int count = count_of(r, r->cluster->job);
    bool is_free = false;
    for (int task = 0; task < count; task++)
        is_free |= (r->wanted < 0 || task == r->wanted) && r->free_ms[task];
    return is_free;
}

/* Why this task has no place */
static const char *lack_of_place(struct registry *r, char ret[LACKING_BYTES])
{
    const char *job = job_name(r->cluster->job);
    const int count = count_of(r, r->cluster->job);
    if (r->is_under_way && sees_free(r))
        snprintf(ret, LACKING_BYTES, "makes sure that a free place of a %s is not somebody's", job);
    else if (r->wanted < 0)
        snprintf(ret, LACKING_BYTES, "all %d places of a %s are taken (dtrain help scale)", count,
                 job);
    else if (r->wanted < count)
        snprintf(ret, LACKING_BYTES, "the place of %s/%d is taken", job, r->wanted);
    else
        snprintf(ret, LACKING_BYTES, "%s/%d takes no part, there are %d (dtrain help scale)", job,
                 r->wanted, count);
    return ret;
}

static err take_place(struct registry *r)
{
    char what[LACKING_BYTES];
    r->waiting.noted_ms = 0;
    r->cluster->task = r->wanted;
    for (;;) { /* ends: look_once_more has a limit */
        bool is_ours = false;
        err e = look(r);
        if (!e) e = claim(r, &is_ours);
        if (!e && is_ours) break;
        TRY(look_once_more(r, e, lack_of_place(r, what)));
    }
    r->place = PLACE_OURS;
    return OK;
}

/* "waits for ps/1, worker/0 and 7 more"; false: nothing is missing. A job that was resized is
 * running, so only its ps are waited for. */
static bool lacks(struct registry *r, char ret[LACKING_BYTES])
{
    const struct membership *now = &r->shared.now;
    int count = 0;
    size_t used = (size_t)snprintf(ret, LACKING_BYTES, "waits for");
    for (enum job job = 0; job <= (now->resizes ? JOB_PS : r->last_job); job++)
        for (int task = 0; task < now->count[job]; task++) {
            if (r->shared.address[job][task][0] || count++ >= LACKING_MAX) continue;
            used += (size_t)snprintf(ret + used, LACKING_BYTES - used, "%s %s/%d",
                                     count > 1 ? "," : "", job_name(job), task);
        }
    if (count > LACKING_MAX)
        snprintf(ret + used, LACKING_BYTES - used, " and %d more", count - LACKING_MAX);
    if (now->count[JOB_PS] == 0) snprintf(ret, LACKING_BYTES, "waits for its ps");
    const bool is_sure = !r->options.address || lives(r);
    if (!count && !is_sure) snprintf(ret, LACKING_BYTES, "makes sure that its tasks live");
    if (r->is_undecided) snprintf(ret, LACKING_BYTES, "tasks say different --tasks");
    return count > 0 || now->count[JOB_PS] == 0 || !is_sure || r->is_undecided;
}

/* Waits until all are found, or this task has no place any more. */
static err wait_for_others(struct registry *r)
{
    char what[LACKING_BYTES];
    err e = look(r);
    r->waiting.began_ms = r->waiting.noted_ms = clock_ms();
    while (e || (has_place(r) && lacks(r, what))) { /* ends: look_once_more has a limit */
        TRY(look_once_more(r, e, what));
        e = look(r);
    }
    return OK;
}

static err find_once(struct registry *r)
{
    r->waiting.began_ms = r->waiting.noted_ms = clock_ms();
    if (r->place != PLACE_NONE) let_coordinator_go(r);
    r->place = PLACE_NONE;
    if (!r->coordinator) TRY(open_coordinator(r));
    if (r->options.address) TRY(take_place(r));
    return wait_for_others(r);
}

/* Tries again if its place belonged to a former run's membership, or was lost meanwhile. */
static err find_all(struct registry *r)
{
    for (int found = 0; found < MEMBERSHIPS_MAX; found++) {
        TRY(find_once(r));
        if (has_place(r)) return OK;
    }
    return fail(ERR_TIMEOUT, "cluster %s: each place that was taken was lost again, %d times",
                r->cluster->name, MEMBERSHIPS_MAX);
}

static err open_addresses(struct registry *r)
{
    for (enum job job = 0; job < JOB_COUNT; job++) {
        r->room[job] = cluster_room(r->cluster, job);
        r->shared.address[job] = calloc((size_t)r->room[job], sizeof *r->shared.address[job]);
        if (!r->shared.address[job]) return fail(ERR_MEMORY, "no memory for addresses");
    }
    r->free_ms = calloc((size_t)r->room[r->cluster->job], sizeof *r->free_ms);
    return r->free_ms ? OK : fail(ERR_MEMORY, "no memory for places");
}

static bool has_lost(void *registry)
{
    struct registry *r = registry;
    pthread_mutex_lock(&r->shared.lock);
    const bool is_lost = r->shared.is_lost;
    pthread_mutex_unlock(&r->shared.lock);
    return is_lost;
}

/* Sets what lists of hosts would have set. */
static err tell_cluster(struct registry *r, struct arena *arena)
{
    struct cluster_spec *cluster = r->cluster;
    TRY(cluster_resize(cluster, &r->shared.now));
    for (enum job job = 0; job < JOB_COUNT; job++)
        for (int task = 0; task < r->shared.now.count[job]; task++) {
            const char *address = r->shared.address[job][task];
            if (*address) cluster->hosts[job].at[task] = arena_string(arena, address);
        }
    cluster->find = find;
    cluster->has_lost = has_lost;
    cluster->registry = r;
    return OK;
}

static err join(struct registry *r, struct arena *arena)
{
    TRY(open_addresses(r));
    TRY(find_all(r));
    TRY(tell_cluster(r, arena));
    r->has_joined = true;
    r->joined_ms = clock_ms();
    if (r->shared.now.resizes) registry_resized(r);
    TRY(thread_start(&r->thread, keep_place, r));
    r->has_thread = true;
    return OK;
}

err registry_join(const struct registry_options *o, struct arena *arena, struct registry **ret)
{
    struct registry *r = calloc(1, sizeof *r);
    if (!r) return fail(ERR_MEMORY, "no memory for a registry");
    r->options = *o;
    r->cluster = o->cluster;
    r->last_job = o->only_ps ? JOB_PS : JOB_WORKER;
    r->wanted = o->cluster->task;
    r->first = r->shared.now = cluster_membership(o->cluster);
    pthread_mutex_init(&r->shared.lock, NULL);
    pthread_cond_init(&r->shared.wakes, NULL);
    const err e = join(r, arena);
    if (e)
        registry_leave(r);
    else
        *ret = r;
    return e;
}

void registry_resized(struct registry *r)
{
    if (!r) return;
    pthread_mutex_lock(&r->shared.lock);
    r->shared.now = cluster_membership(r->cluster);
    r->shared.is_due = r->shared.is_asked = true;
    pthread_cond_signal(&r->shared.wakes);
    pthread_mutex_unlock(&r->shared.lock);
}

void registry_leave(struct registry *r)
{
    if (!r) return;
    pthread_mutex_lock(&r->shared.lock);
    r->shared.is_over = true;
    pthread_cond_signal(&r->shared.wakes);
    pthread_mutex_unlock(&r->shared.lock);
    if (r->has_thread) pthread_join(r->thread, NULL);
    let_coordinator_go(r);
    for (enum job job = 0; job < JOB_COUNT; job++) free(r->shared.address[job]);
    free(r->free_ms);
    pthread_mutex_destroy(&r->shared.lock);
    pthread_cond_destroy(&r->shared.wakes);
    free(r);
}
