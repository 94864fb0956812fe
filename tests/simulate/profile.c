/* profile.c - see profile.h. */
#include "tests/simulate/profile.h"

#include <stdio.h>
#include <string.h>

#include "core/base/random.h"
#include "core/base/replicas.h"

enum {
    DRAWN_WORKERS_MAX = 6,
    MS = 1000, /* microseconds */
    MODES = 6,
    STARTING_MESSAGES = 8, /* about, of each pair */
};

struct dice {
    uint64_t key, draws;
    struct profile *profile;
};

static uint64_t below(struct dice *dice, uint64_t limit)
{
    return random_u64(dice->key, dice->draws++) % limit;
}

static uint64_t between(struct dice *dice, uint64_t least, uint64_t most)
{
    return least + below(dice, most - least + 1);
}

const char *story_name(enum story story)
{
    static const char *const names[STORIES] = {
        [STORY_CALM] = "calm",
        [STORY_DISTURBED] = "disturbed",
        [STORY_SLOW_RETURN] = "slow return",
        [STORY_WORKER_GONE] = "worker gone",
        [STORY_TOO_FEW] = "too few",
        [STORY_PS_GONE] = "ps gone",
        [STORY_CHIEF_GONE] = "chief gone",
        [STORY_LEAVE] = "leave",
        [STORY_FINISH] = "finish",
        [STORY_HARSH] = "harsh",
    };
    return names[story];
}

static void draw_story(struct dice *dice)
{
    static const int percents[STORIES] = {
        [STORY_CALM] = 8,        [STORY_DISTURBED] = 46, [STORY_SLOW_RETURN] = 9,
        [STORY_WORKER_GONE] = 9, [STORY_TOO_FEW] = 4,    [STORY_PS_GONE] = 4,
        [STORY_CHIEF_GONE] = 3,  [STORY_LEAVE] = 7,      [STORY_FINISH] = 4,
        [STORY_HARSH] = 6,
    };
    int drawn = (int)below(dice, 100), story = 0;
    while (story < STORY_HARSH && drawn >= percents[story]) drawn -= percents[story++];
    struct profile *p = dice->profile;
    p->story = (enum story)story;
    bool needs_two = story == STORY_SLOW_RETURN || story == STORY_WORKER_GONE;
    if (needs_two && p->workers == 1) p->story = STORY_DISTURBED;
}

static void draw_cluster(struct dice *dice)
{
    struct profile *p = dice->profile;
    p->homes = p->ps_count = (int)between(dice, 1, HOMES_MAX);
    p->workers = (int)between(dice, 1, DRAWN_WORKERS_MAX);
    int empty = below(dice, 3) ? NOTHING : (int)below(dice, (uint64_t)p->ps_count);
    for (int i = 0; i < p->ps_count; i++) p->has_variables[i] = i != empty || p->ps_count == 1;
    p->saves = below(dice, 5) != 0;
    bool all_see_folder = below(dice, 2);
    for (int i = 0; i < p->ps_count; i++) p->sees_folder[i] = all_see_folder;
    p->shares_memory = below(dice, 2);
    p->replaces_links = below(dice, 2);
    p->arrays_restored = (int)between(dice, 1, 3);
}

static void draw_mode(struct dice *dice)
{
    struct profile *p = dice->profile;
    uint32_t workers = (uint32_t)p->workers, replicas = workers;
    uint64_t mode = below(dice, MODES);
    p->config.is_sync = mode < 4;
    p->config.max_staleness = mode == 4 ? (int64_t)below(dice, 4) : -1;
    if (mode == 2) replicas = (uint32_t)between(dice, 1, workers); /* backup workers */
    if (mode == 3) replicas = (uint32_t)between(dice, workers, REPLICAS_EACH_MAX * workers);
    if (!p->config.is_sync) replicas = 1;
    p->config.replicas_to_aggregate = replicas;
    p->config.takes_all = p->config.is_sync && replicas >= workers;
    p->drops_gradients = p->config.is_sync ? !p->config.takes_all : p->config.max_staleness >= 0;
    for (uint32_t w = 0; w < workers; w++)
        p->gradients_per_push[w] =
            replicas <= workers ? 1 : replicas / workers + (w < replicas % workers);
    p->config.last_step = between(dice, 5, 60);
}

/* Milliseconds; parts: of so many equal ones, one. */
static uint64_t draw_patience(struct dice *dice, uint64_t parts)
{
    bool is_harsh = dice->profile->story == STORY_HARSH;
    return between(dice, (is_harsh ? 300 : 12000) / parts, (is_harsh ? 2500 : 20000) / parts);
}

static uint64_t draw_limit(struct dice *dice, const uint64_t *limit)
{
    const struct profile *p = dice->profile;
    /* A worker that a ps has not met is waited for so long; whoever waits for that ps waits longer.
     */
    if (limit == &p->limits.start_ms && p->story != STORY_HARSH) return between(dice, 5000, 8000);
    if (limit == &p->limits.chief_ms) return 0;   /* profile_add_terms */
    if (limit == &p->limits.publish_ms) return 1; /* which no role asks for */
    return draw_patience(dice, limit == &p->limits.stop_ms || limit == &p->limits.save_ms ? 4 : 1);
}

#define DRAW_LIMIT(NAME, ...) p->limits.NAME##_ms = draw_limit(dice, &p->limits.NAME##_ms)

static void draw_limits(struct dice *dice)
{
    struct profile *p = dice->profile;
    WAIT_LIMITS(DRAW_LIMIT);
    p->config.worker_timeout_ms = draw_patience(dice, 2);
    p->config.min_workers =
        p->story == STORY_HARSH ? (int)between(dice, 1, (uint64_t)p->workers) : 1;
    if (p->story == STORY_SLOW_RETURN) p->config.worker_timeout_ms = between(dice, 300, 900);
    if (p->story == STORY_WORKER_GONE) p->config.worker_timeout_ms = between(dice, 3000, 5000);
    if (p->story == STORY_TOO_FEW) p->config.min_workers = p->workers;
}

static void draw_pace(struct dice *dice)
{
    struct profile *p = dice->profile;
    p->delay_us = between(dice, 10, 3 * MS);
    p->compute_us = between(dice, 100, 20 * MS);
    p->notice_us = below(dice, 4) ? between(dice, MS, 50 * MS) : between(dice, 50 * MS, 800 * MS);
    p->write_us = between(dice, MS, below(dice, 4) ? 20 * MS : 400 * MS);
    p->read_us = between(dice, 1, 20 * MS);
    p->start_us = between(dice, 1, 500 * MS);
    p->save_interval_us = below(dice, 5) ? between(dice, 10 * MS, 500 * MS) : 0;
}

/* ---- faults ---- */

static int any_actor(struct dice *dice)
{
    const struct profile *p = dice->profile;
    int drawn = (int)below(dice, (uint64_t)(p->ps_count + p->workers));
    return drawn < p->ps_count ? drawn : actor_of(JOB_WORKER, drawn - p->ps_count);
}

static int any_peer(struct dice *dice, int actor)
{
    int count = actor < PS_MAX ? dice->profile->workers : dice->profile->ps_count;
    return (int)below(dice, (uint64_t)count);
}

static struct fault *add_fault(struct dice *dice, enum fault_kind kind, int actor)
{
    static struct fault surplus; /* of a list that is full: does not happen */
    struct profile *p = dice->profile;
    uint64_t pairs = (uint64_t)p->ps_count * (uint64_t)p->workers;
    uint64_t pushes = p->config.is_sync ? (uint64_t)p->workers : 1;
    uint64_t messages =
        pairs * STARTING_MESSAGES + p->config.last_step * pushes * (uint64_t)p->ps_count * 2;
    struct fault *fault = p->fault_count < FAULTS_MAX ? &p->faults[p->fault_count++] : &surplus;
    *fault = (struct fault){
        .kind = kind,
        .deliveries = (int)below(dice, messages),
        .actor = actor,
        .peer = any_peer(dice, actor),
        .after_actions = below(dice, 2) ? (int)between(dice, 1, 8) : 0,
    };
    return fault;
}

static uint64_t draw_pause(struct dice *dice)
{
    uint64_t most_us = dice->profile->story == STORY_HARSH ? 4000 * MS : 1200 * MS;
    return between(dice, MS, below(dice, 2) ? most_us / 20 : most_us);
}

/* Several tasks, or all, at the same moment. */
static void draw_disaster(struct dice *dice)
{
    const struct profile *p = dice->profile;
    bool takes_all = below(dice, 3) == 0;
    int deliveries = NOTHING;
    for (int i = 0; i < p->ps_count + p->workers; i++) {
        if (!takes_all && below(dice, 2)) continue;
        int actor = i < p->ps_count ? i : actor_of(JOB_WORKER, i - p->ps_count);
        struct fault *fault = add_fault(dice, FAULT_KILL, actor);
        fault->duration_us = draw_pause(dice);
        fault->after_actions = 0;
        if (deliveries == NOTHING) deliveries = fault->deliveries;
        fault->deliveries = deliveries;
    }
}

static void draw_fault(struct dice *dice)
{
    static const enum fault_kind kinds[] = {
        FAULT_KILL, FAULT_KILL, FAULT_KILL,  FAULT_KILL,  FAULT_CUT,    FAULT_CUT,
        FAULT_CUT,  FAULT_CUT,  FAULT_STALL, FAULT_STALL, FAULT_FREEZE, FAULT_UNPLUG,
    };
    uint64_t kind = below(dice, sizeof kinds / sizeof *kinds + 2);
    if (kind == 0) {
        draw_disaster(dice);
        return;
    }
    if (kind == 1) {
        add_fault(dice, FAULT_DISK, 0)->duration_us = draw_pause(dice);
        return;
    }
    struct fault *fault = add_fault(dice, kinds[kind - 2], any_actor(dice));
    fault->duration_us = draw_pause(dice);
}

static int another_worker(struct dice *dice)
{
    return actor_of(JOB_WORKER, 1 + (int)below(dice, (uint64_t)dice->profile->workers - 1));
}

/* What the story is about. */
static void draw_turning_point(struct dice *dice)
{
    struct profile *p = dice->profile;
    switch (p->story) {
    case STORY_SLOW_RETURN:
        add_fault(dice, below(dice, 2) ? FAULT_KILL : FAULT_UNPLUG, another_worker(dice))
            ->duration_us = between(dice, 1000 * MS, 3000 * MS);
        break;
    case STORY_WORKER_GONE:
        add_fault(dice, FAULT_KILL, another_worker(dice));
        break;
    case STORY_TOO_FEW:
        add_fault(dice, FAULT_KILL, actor_of(JOB_WORKER, (int)below(dice, (uint64_t)p->workers)));
        break;
    case STORY_PS_GONE:
        add_fault(dice, FAULT_KILL, (int)below(dice, (uint64_t)p->ps_count));
        break;
    case STORY_CHIEF_GONE:
        add_fault(dice, FAULT_KILL, actor_of(JOB_WORKER, 0));
        break;
    case STORY_LEAVE:
        add_fault(dice, FAULT_LEAVE, any_actor(dice));
        break;
    case STORY_FINISH:
        add_fault(dice, FAULT_FINISH, actor_of(JOB_WORKER, 0));
        break;
    default:
        break;
    }
}

static void draw_faults(struct dice *dice)
{
    struct profile *p = dice->profile;
    draw_turning_point(dice);
    if (p->story == STORY_CALM || p->story == STORY_SLOW_RETURN) return;
    uint64_t others = between(dice, 1, 4);
    if (p->story != STORY_DISTURBED && p->story != STORY_HARSH) others = below(dice, 3);
    for (uint64_t i = 0; i < others; i++) draw_fault(dice);
}

/* A few epochs, whose ends lie anywhere in the batches. */
static void draw_data(struct dice *dice)
{
    struct profile *p = dice->profile;
    const uint64_t gradients = (uint64_t)p->workers * REPLICAS_EACH_MAX;
    struct data_share share = {
        .batch = between(dice, 1, 9),
        .workers = (uint64_t)p->workers,
        .replicas = p->config.replicas_to_aggregate,
    };
    const uint64_t most = p->config.last_step * share.batch * gradients;
    share.rows = share.batch * gradients + below(dice, 2 + most / between(dice, 1, 12));
    if (!p->config.is_sync && below(dice, 4)) { /* batches are handed out */
        share.workers = 1;
        share.replicas = 0;
        p->config.stretch = below(dice, 2) ? (int)between(dice, 1, 30) : 0;
        p->data_end = below(dice, 3) ? 0 : between(dice, 1, p->config.last_step + 5);
        if (p->data_end) share.rows = DATA_ROWS_ENDLESS;
    }
    coverage_begin(&p->config.coverage, &share, NULL);
}

uint64_t profile_last_step(const struct profile *p)
{
    const uint64_t last = p->config.last_step;
    return p->data_end && p->data_end < last ? p->data_end : last;
}

/* Three quarters have tables beside their blocks. */
static void draw_tables(struct dice *dice)
{
    dice->profile->has_rows = below(dice, 4) != 0;
}

/* Half of the runs push in parts. */
static void draw_parts(struct dice *dice)
{
    struct profile *p = dice->profile;
    p->has_parts = below(dice, 2);
    p->advances = p->has_parts && below(dice, 4);
    if (p->has_parts && !p->shares_memory) p->starved_percent = (int)below(dice, 8);
}

/* In half of them a chief feeds the others, in a quarter batches come late. */
static void draw_feeding(struct dice *dice)
{
    struct profile *p = dice->profile;
    enum { AHEAD_MAX = 4, LATE_MAX = 60 };
    if (below(dice, 2))
        p->feed_ahead = (int)between(dice, 1, AHEAD_MAX);
    else if (below(dice, 2))
        p->starved_percent = (int)between(dice, 1, LATE_MAX);
}

static bool is_killed(const struct profile *p, int actor)
{
    for (int i = 0; i < p->fault_count; i++)
        if (p->faults[i].kind == FAULT_KILL && p->faults[i].actor == actor) return true;
    return false;
}

/* The chief is away for longer than its lease lasts: it stands still, is cut off, dies. */
static void draw_absence(struct dice *dice, enum fault_kind kind)
{
    struct profile *p = dice->profile;
    const uint64_t lease_us = p->limits.chief_ms * 1000;
    const int worker = below(dice, 4) ? 0 : (int)below(dice, (uint64_t)p->workers);
    struct fault *fault = add_fault(dice, kind, actor_of(JOB_WORKER, worker));
    fault->duration_us = between(dice, lease_us, 2 * lease_us);
    if (below(dice, 2)) fault->saves = (int)between(dice, 1, 2 * (uint64_t)p->ps_count);
    fault->after_us = below(dice, p->write_us);
}

/* In three quarters chiefs are away for longer than limits.chief_ms. Where a worker never comes
 * back that may be the chief. */
static void draw_terms(struct dice *dice)
{
    struct profile *p = dice->profile;
    if (!below(dice, 4)) return;
    p->limits.chief_ms = between(dice, 300, 1200);
    if (p->story == STORY_WORKER_GONE && !p->feed_ahead && !is_killed(p, actor_of(JOB_PS, 0)))
        p->faults[0].actor = actor_of(JOB_WORKER, (int)below(dice, (uint64_t)p->workers));
    if (p->story != STORY_DISTURBED && p->story != STORY_HARSH && p->story != STORY_WORKER_GONE)
        return;
    if (below(dice, 4)) draw_absence(dice, FAULT_FREEZE);
    if (below(dice, 2)) draw_absence(dice, below(dice, 2) ? FAULT_UNPLUG : FAULT_KILL);
}

static bool is_to_return(struct dice *dice)
{
    struct profile *p = dice->profile;
    const bool may = p->story == STORY_DISTURBED || p->story == STORY_LEAVE;
    if (p->workers == 1 || p->feed_ahead) return false;
    if (p->story == STORY_SLOW_RETURN) return true;
    if ((!may && p->story != STORY_FINISH) || below(dice, 4)) return false;
    if (p->story == STORY_DISTURBED) p->story = STORY_SLOW_RETURN;
    return true;
}

/* In a part a worker is back after it was evicted, by some ps or all. */
static void draw_returns(struct dice *dice)
{
    struct profile *p = dice->profile;
    enum { RESETS_MAX = 3, SAVES_MAX = 6 };
    static const enum fault_kind kinds[] = {FAULT_FREEZE, FAULT_UNPLUG, FAULT_KILL, FAULT_SEVER};
    if (!is_to_return(dice)) return;
    p->fault_count = p->story != STORY_SLOW_RETURN; /* what ends the job stays */
    p->config.worker_timeout_ms = between(dice, 200, 700);
    if (below(dice, 2)) p->save_interval_us = between(dice, 10 * MS, 60 * MS);
    const int worker = actor_of(JOB_WORKER, (int)below(dice, (uint64_t)p->workers));
    for (uint64_t i = between(dice, 1, 2); i > 0; i--) {
        struct fault *fault =
            add_fault(dice, kinds[below(dice, sizeof kinds / sizeof *kinds)], worker);
        fault->duration_us = between(dice, 300 * MS, 3000 * MS);
        if (below(dice, 2)) fault->saves = (int)between(dice, 1, SAVES_MAX);
        fault->after_us = below(dice, p->write_us + p->compute_us);
    }
    for (uint64_t i = below(dice, RESETS_MAX + 1); i > 0; i--)
        add_fault(dice, below(dice, 2) ? FAULT_RESET : FAULT_CUT, worker);
}

/* In some all stand still for longer than every limit. */
static void draw_standstill(struct dice *dice)
{
    enum { LEAST_MS = 20000, MOST_MS = 60000 }; /* draw_patience */
    if (below(dice, 6)) return;
    add_fault(dice, FAULT_STANDSTILL, 0)->duration_us = between(dice, LEAST_MS * MS, MOST_MS * MS);
}

/* In some the job is to move to another membership, and ends there. */
static void draw_resizes(struct dice *dice)
{
    struct profile *p = dice->profile;
    const bool may = p->story == STORY_DISTURBED || p->story == STORY_SLOW_RETURN;
    if (may && p->saves && !below(dice, 6)) add_fault(dice, FAULT_SCALE, actor_of(JOB_PS, 0));
}

/* In half of them workers leave a job which continues. */
static void draw_leaving(struct dice *dice)
{
    struct profile *p = dice->profile;
    enum { DEPARTURES_MAX = 3 };
    if (p->story == STORY_TOO_FEW || p->story == STORY_CHIEF_GONE || below(dice, 2)) return;
    for (uint64_t i = between(dice, 1, DEPARTURES_MAX); i > 0; i--) {
        const int worker = (int)below(dice, (uint64_t)p->workers);
        struct fault *fault = add_fault(dice, FAULT_DEPART, actor_of(JOB_WORKER, worker));
        fault->after_actions = 0;
        if (below(dice, 4)) fault->duration_us = draw_pause(dice);
        if (below(dice, 3) == 0) fault->saves = (int)between(dice, 1, 6);
    }
}

static struct fault *add_at_save(struct dice *dice, enum fault_kind kind, int actor, int saves,
                                 uint64_t after_us)
{
    struct fault *fault = add_fault(dice, kind, actor);
    fault->peer = fault->after_actions = 0;
    fault->saves = saves;
    fault->after_us = after_us;
    return fault;
}

/* The SAVE to a ps is late. ps/0, which has made its snapshot and written it, thinks that the chief
 * is gone and continues, so that a push of the next round comes to the late ps before the SAVE. The
 * chief hears of its loss when the checkpoint is published, and all begin again from that. */
static void draw_late_snapshot(struct dice *dice)
{
    const struct profile *p = dice->profile;
    enum { CHECKPOINTS_MAX = 4 };
    int savers = 0, chief = actor_of(JOB_WORKER, 0), late = any_peer(dice, chief);
    for (int i = 0; i < p->ps_count; i++) savers += i == 0 || p->has_variables[i];
    int saves = 1 + savers * (int)below(dice, CHECKPOINTS_MAX);
    uint64_t gone_us = between(dice, p->write_us / 2, p->write_us + 4 * p->delay_us);
    uint64_t late_us = gone_us + between(dice, 0, 2 * p->compute_us + 10 * MS);
    uint64_t end_us = late_us + between(dice, p->write_us, 3 * p->write_us + 20 * MS);
    struct fault *stall = add_at_save(dice, FAULT_STALL, chief, saves, 0);
    stall->peer = late;
    stall->duration_us = late_us;
    add_at_save(dice, FAULT_RESET, actor_of(JOB_PS, 0), saves, gone_us);
    add_at_save(dice, FAULT_STALL, chief, saves, gone_us + 1)->duration_us = end_us - gone_us;
    add_at_save(dice, FAULT_KILL, (int)below(dice, (uint64_t)p->ps_count), saves, end_us)
        ->duration_us = between(dice, MS, 20 * MS);
}

/* Single connections that are reset, often while a checkpoint is made. */
static void draw_resets(struct dice *dice)
{
    struct profile *p = dice->profile;
    enum { RESETS_MAX = 6, SAVES_MAX = 12 };
    if (p->story == STORY_CALM || p->story == STORY_SLOW_RETURN || below(dice, 2)) return;
    if (below(dice, 2)) draw_late_snapshot(dice);
    uint64_t resets = between(dice, 1, RESETS_MAX);
    for (uint64_t i = 0; i < resets; i++) {
        struct fault *fault = add_fault(dice, FAULT_RESET, any_actor(dice));
        if (below(dice, 2)) fault->saves = (int)between(dice, 1, SAVES_MAX);
    }
}

/* In half of the runs each ps loses the link to one worker as it tells the verdict. */
static void draw_lost_verdict(struct dice *dice)
{
    struct profile *p = dice->profile;
    p->loses_verdict = p->story != STORY_CALM && below(dice, 2);
    p->loses_verdict_of = (int)below(dice, (uint64_t)p->workers);
}

/* A third save what has changed between checkpoints. */
static void draw_deltas(struct dice *dice)
{
    struct profile *p = dice->profile;
    p->saves_changes = below(dice, 3) == 0;
}

/* In half of those over tcp a ps has fewer windows for gradients than there are workers. */
static void draw_windows(struct dice *dice)
{
    struct profile *p = dice->profile;
    if (p->shares_memory || p->workers == 1 || below(dice, 2)) return;
    p->windows = (int)between(dice, 1, (uint64_t)p->workers - 1);
}

/* A third have variables that are frozen. */
static void draw_frozen(struct dice *dice)
{
    struct profile *p = dice->profile;
    if (below(dice, 3) == 0) p->frozen = (int)between(dice, 1, PIECES - 1);
}

/* In some each ps but ps/0 is one of two. One of them, or one after the other, is lost for longer
 * than it is waited for, or comes back before. */
static void draw_replicas(struct dice *dice)
{
    struct profile *p = dice->profile;
    enum { LOSSES_MAX = 3, SAVES_MAX = 8, MOST_HOMES = (PS_MAX + 1) / 2 };
    static const enum fault_kind kinds[] = {FAULT_KILL, FAULT_KILL, FAULT_KILL, FAULT_UNPLUG,
                                            FAULT_FREEZE};
    const uint64_t most_us = p->config.worker_timeout_ms * MS / 2; /* else it evicts all workers */
    if (p->homes == 1 || below(dice, 3)) return;
    if (p->homes > MOST_HOMES) p->homes = MOST_HOMES;
    p->ps_count = replicas_all(p->homes, true);
    for (int ps = p->homes; ps < p->ps_count; ps++) {
        p->has_variables[ps] = p->has_variables[replicas_home(p->homes, ps)];
        p->sees_folder[ps] = p->sees_folder[0];
    }
    p->limits.ps_ms = between(dice, 50, below(dice, 2) ? 300 : 1500);
    if (p->story == STORY_CALM) return;
    for (uint64_t i = between(dice, 1, LOSSES_MAX); i > 0; i--) {
        const int ps = (int)between(dice, 1, (uint64_t)p->ps_count - 1);
        struct fault *fault = add_fault(dice, kinds[below(dice, sizeof kinds / sizeof *kinds)], ps);
        fault->deliveries /= 2; /* so that it may be back before the end */
        fault->duration_us = between(dice, MS, below(dice, 2) ? 20 * MS : 2 * p->limits.ps_ms * MS);
        if (fault->kind != FAULT_KILL && fault->duration_us > most_us) fault->duration_us = most_us;
        if (p->saves && below(dice, 3) == 0) fault->saves = (int)between(dice, 1, SAVES_MAX);
        fault->after_us = below(dice, p->write_us);
    }
}

int64_t profile_moved_floats(const struct profile *p)
{
    return (PIECES - p->frozen) * PIECE_FLOATS;
}

/* In half of them each worker loses the link to one ps as it tells its own. */
static void draw_lost_word(struct dice *dice)
{
    struct profile *p = dice->profile;
    p->loses_word = p->story != STORY_CALM && below(dice, 2);
    p->loses_word_to = (int)below(dice, (uint64_t)p->ps_count);
}

static void draw_all(struct dice *dice)
{
    draw_cluster(dice);
    draw_mode(dice);
    draw_story(dice);
    draw_limits(dice);
    draw_pace(dice);
    draw_faults(dice);
}

/* Each has dice of its own: what one draws more leaves the others as they were. */
void profile_draw(uint64_t seed, struct profile *ret)
{
    static const struct {
        const char *key;
        void (*draw)(struct dice *);
    } draws[] = {
        {"profile", draw_all},           {"rows", draw_data},
        {"resets", draw_resets},         {"verdict", draw_lost_verdict},
        {"word", draw_lost_word},        {"parts", draw_parts},
        {"tables", draw_tables},         {"feeding", draw_feeding},
        {"terms", draw_terms},           {"returns", draw_returns},
        {"standstill", draw_standstill}, {"moves", draw_resizes},
        {"leaving", draw_leaving},       {"windows", draw_windows},
        {"deltas", draw_deltas},         {"frozen", draw_frozen},
        {"replicas", draw_replicas},
    };
    *ret = (struct profile){0};
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
        struct dice dice = {.key = random_key(seed, draws[i].key), .profile = ret};
        draws[i].draw(&dice);
    }
}

void profile_describe(const struct profile *p, char *ret_text, size_t size)
{
    const struct ps_config *c = &p->config;
    char mode[64];
    if (c->is_sync)
        snprintf(mode, sizeof mode, "sync, %u gradients a step", c->replicas_to_aggregate);
    else
        snprintf(mode, sizeof mode, "async, staleness %d", (int)c->max_staleness);
    int empty = 0;
    for (int i = 0; i < p->ps_count; i++) empty += !p->has_variables[i];
    snprintf(ret_text, size,
             "%s: %d ps (%d empty, %d followers), %d workers, %d windows, %s, %llu steps, %s, %s, "
             "%d faults",
             story_name(p->story), p->ps_count, empty, p->ps_count - p->homes, p->workers,
             p->windows ? p->windows : p->workers, mode, (unsigned long long)c->last_step,
             !p->saves           ? "saves nothing"
             : p->sees_folder[0] ? "one folder"
                                 : "shards travel",
             p->shares_memory ? "shared memory" : "tcp", p->fault_count);
}
