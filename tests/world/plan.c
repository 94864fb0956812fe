/* plan.c - what a seed says of a job. */
#include "tests/world/cluster.h"

#include "net/message.h"
#include "tests/world/coordinator.h"

#include <string.h>

static uint64_t draw_ns(uint64_t most_ms)
{
    return draw_below(most_ms * MS_NS);
}

/* As job_plan_draw() has it */
struct wanted {
    enum mishap_kind only;
    bool is_found, has_rows;
};

/* Most happen while it trains, some while it starts or ends, some one soon after another. */
static void draw_mishap(const struct job_plan *plan, const struct mishap *before,
                        struct mishap *ret)
{
    static const uint64_t within_ms[] = {60, 300, 1000, 3000};
    const int tasks = plan->ps + plan->workers;
    ret->kind = (enum mishap_kind)draw_below(MISHAP_DISK);
    ret->task = (int)draw_below((uint64_t)tasks);
    ret->other = (ret->task + 1 + (int)draw_below((uint64_t)tasks - 1)) % tasks;
    ret->at_ns = draw_ns(within_ms[draw_below(4)]) + 40 * MS_NS;
    if (before && draw_below(2) == 0) ret->at_ns += before->at_ns + before->lasts_ns;
    ret->lasts_ns = draw_ns(draw_below(3) == 0 ? 8000 : 400);
}

/* It may last until long after the last step. */
static void draw_disk(struct mishap *ret, const struct job_plan *plan)
{
    static const uint64_t lasts_ms[] = {400, 8000, 8000, 45000};
    draw_mishap(plan, NULL, ret);
    ret->kind = MISHAP_DISK + (enum mishap_kind)draw_below(DISK_FAULTS);
    ret->lasts_ns = draw_ns(lasts_ms[draw_below(4)]);
}

static void draw_disks(struct job_plan *plan, const struct wanted *wanted)
{
    if (plan->mishap_count < MISHAPS_MOST && draw_below(3) == 0)
        draw_disk(&plan->mishaps[plan->mishap_count++], plan);
    plan->is_url = wanted->only == MISHAP_STORE || draw_below(8) == 0;
    plan->is_large = plan->is_url && !plan->grows && draw_below(5) == 0;
    for (int i = 0; i < plan->mishap_count; i++) {
        struct mishap *mishap = &plan->mishaps[i];
        if (plan->is_url && mishap->kind >= MISHAP_DISK) mishap->kind = MISHAP_STORE;
        if (wanted->only >= MISHAP_DISK && wanted->only < MISHAP_COORDINATOR)
            draw_disk(mishap, plan);
        mishap->is_everywhere = draw_below(2) == 0;
        mishap->share = draw_below(2) == 0 ? 1024 : 16 << draw_below(5);
        if (wanted->only != MISHAP_KINDS) mishap->kind = wanted->only;
    }
}

/* Some are cut off for longer than a lease, or stall the job for as long. */
static void draw_coordinator(struct job_plan *plan, const struct wanted *wanted)
{
    const bool is_one = draw_below(6) == 0;
    if (is_one || wanted->is_found || wanted->only == MISHAP_COORDINATOR)
        plan->coordinator = draw_below(2) ? FOUND_BY_ZOOKEEPER : FOUND_BY_ETCD;
    plan->has_indices = draw_below(2) == 0;
    for (int i = 0; i < plan->mishap_count && plan->coordinator; i++) {
        struct mishap *mishap = &plan->mishaps[i];
        mishap->share = (int)draw_below(1024);
        if (draw_below(4) == 0 && wanted->only == MISHAP_KINDS) mishap->kind = MISHAP_COORDINATOR;
        if (draw_below(4) == 0) mishap->lasts_ns = draw_ns(45000);
    }
}

/* Nobody is beside it. */
static void be_alone(struct job_plan *plan)
{
    plan->is_alone = true;
    plan->ps = 0;
    plan->workers = 1;
    plan->hosts = 0;
    plan->has_evaluator = plan->is_in_graph = false;
    for (int i = 0; i < plan->mishap_count; i++) plan->mishaps[i].task = plan->mishaps[i].other = 0;
}

static void draw_places(struct job_plan *plan, const struct wanted *wanted)
{
    const bool is_found = plan->coordinator; /* whose tasks have a host each */
    if (draw_below(3) == 0 && !is_found) plan->hosts = 1 + (int)draw_below(3);
    if (draw_below(6) == 0) plan->towers = 2;
    if (plan->evaluates && !plan->is_url && draw_below(3) == 0)
        plan->keep_best = 1 + (int)draw_below(3);
    const int evaluator = plan->ps + plan->workers;
    for (int i = 0; i < plan->mishap_count && plan->has_evaluator && !is_found; i++)
        if (draw_below(6) == 0) plan->mishaps[i].task = evaluator;
    if (draw_below(10) == 0 && !is_found) be_alone(plan);
}

/* An epoch is of twelve batches of all workers, whose number divides that. */
static void draw_end(struct job_plan *plan)
{
    enum { BATCHES = 12 };
    struct training_plan *t = &plan->training;
    const int step = BATCHES / (plan->is_sync ? plan->workers : 1);
    if (t->replicas || t->accumulate > 1 || plan->model != MODEL_COUNTS || plan->is_large ||
        draw_below(3))
        return;
    t->epochs = 1 + (int)draw_below(12);
    plan->last_step = t->epochs * step;
}

static void draw_ways(struct job_plan *plan)
{
    struct training_plan *t = &plan->training;
    const int each = plan->model == MODEL_COUNTS ? 1 : 2; /* with a table: one of a worker */
    if (plan->is_sync && draw_below(4) == 0)
        t->replicas = 1 + (int)draw_below((uint64_t)(each * plan->workers));
    if (!plan->towers && draw_below(8) == 0) t->accumulate = 2;
    if (!plan->is_sync && draw_below(8) == 0) t->staleness = (int)draw_below(4);
    if (draw_below(4) == 0) t->worker_timeout_s = 1 + (int)draw_below(8);
    t->stops_job = draw_below(4) == 0;
    t->evaluates_much = plan->evaluates && draw_below(4) == 0;
    draw_end(plan);
}

/* Most jobs train as ever. Who sleeps may do so for longer than any wait takes. */
static void draw_training(struct job_plan *plan, const struct wanted *wanted)
{
    enum { WAIT_S = 60, SHORT_S = 3 };
    bool only_freezes = plan->mishap_count > 0;
    plan->training = (struct training_plan){.accumulate = 1, .staleness = -1, .limit_s = WAIT_S};
    if (draw_below(2)) draw_ways(plan);
    if (plan->mishap_count && wanted->only == MISHAP_KINDS && draw_below(8) == 0)
        plan->mishaps[0].kind = MISHAP_FREEZE;
    for (int i = 0; i < plan->mishap_count; i++) {
        struct mishap *mishap = &plan->mishaps[i];
        only_freezes &= mishap->kind == MISHAP_FREEZE;
        if (mishap->kind == MISHAP_FREEZE && draw_below(2)) mishap->lasts_ns = draw_ns(100000);
    }
    if (only_freezes && draw_below(2)) plan->training.limit_s = SHORT_S;
}

/* A large table is put aside by nobody. Of steps a millisecond each deltas have few.
 */
static void draw_keeping(struct job_plan *plan, const struct wanted *wanted)
{
    struct training_plan *t = &plan->training;
    if (draw_below(3) == 0 && !plan->is_large) t->publish_ms = 100 << draw_below(3);
    if (t->publish_ms && !t->epochs &&
        draw_below(2)) { /* between two checkpoints, and for longer */
        t->publish_ms = t->publish_ms > 200 ? 200 : t->publish_ms;
        plan->save_steps = 150 + (int)draw_below(150);
        plan->last_step = 500 + (int)draw_below(500);
    }
    if (draw_below(t->publish_ms ? 2 : 4) == 0) t->average = 1 + (int)draw_below(2);
}

/* The list of files is not kept behind a URL. */
static void draw_following(struct job_plan *plan, const struct wanted *wanted)
{
    enum { FILES_MOST = 8, BATCHES = 12 };
    struct training_plan *t = &plan->training;
    const bool may = !plan->is_sync && plan->model == MODEL_COUNTS && !plan->is_url &&
                     !plan->is_in_graph && !plan->towers && t->staleness < 0 && !t->epochs &&
                     t->accumulate == 1;
    if (may && draw_below(3)) {
        t->files = 1 + (int)draw_below(FILES_MOST);
        plan->last_step = t->files * BATCHES;
    }
}

/* Of a worker that has a host of its own, and reads. */
static void draw_lack(struct job_plan *plan, const struct wanted *wanted)
{
    if (wanted->only == MISHAP_LACK) {
        plan->model = MODEL_COUNTS;
        plan->hosts = 0;
        plan->is_in_graph = false;
        plan->workers += plan->workers == 1 && !plan->is_alone;
    }
    const bool may = plan->workers > 1 && !plan->training.files && !plan->hosts &&
                     !plan->is_in_graph && plan->model == MODEL_COUNTS;
    const bool is_one = draw_below(12) == 0 && wanted->only == MISHAP_KINDS;
    const int back_ms = plan->training.worker_timeout_s ? 400 : 20000;
    if (may && (is_one || wanted->only == MISHAP_LACK)) {
        if (plan->mishap_count == 0) plan->mishap_count = 1;
        plan->training.lacks_for_good = draw_below(3) == 0;
        if (plan->training.lacks_for_good) plan->mishap_count = 1;
        struct mishap *mishap = &plan->mishaps[plan->mishap_count - 1];
        mishap->kind = MISHAP_LACK;
        mishap->task = plan->ps + 1 + (int)draw_below((uint64_t)plan->workers - 1);
        mishap->other = 0;
        mishap->at_ns = draw_ns(draw_below(2) ? 60 : 1000);
        mishap->lasts_ns = draw_ns((uint64_t)back_ms);
    } else if (wanted->only == MISHAP_LACK) {
        plan->mishap_count = 0;
    }
}

/* Another one leads meanwhile, or not. */
static void draw_last(struct job_plan *plan, const struct wanted *wanted)
{
    enum { CALLS_MOST = 40, LASTS_MS = 40000 };
    const bool may = !plan->is_url && !plan->is_alone;
    const bool is_one = draw_below(12) == 0 && wanted->only == MISHAP_KINDS && plan->mishap_count;
    if (may && (is_one || wanted->only == MISHAP_LAST)) {
        if (plan->mishap_count == 0) plan->mishap_count = 1;
        if (wanted->only == MISHAP_LAST) plan->mishap_count = 1;
        plan->mishaps[plan->mishap_count - 1] =
            (struct mishap){.kind = MISHAP_LAST,
                            .share = 1 + (int)draw_below(CALLS_MOST),
                            .lasts_ns = draw_ns(LASTS_MS)};
        if (draw_below(4)) plan->chief_timeout_s = 2 + (int)draw_below(10);
    } else if (wanted->only == MISHAP_LAST) {
        plan->mishap_count = 0;
    }
}

/* It has shown the push to some ps, and perhaps not to others. */
static void draw_gone(struct job_plan *plan, const struct wanted *wanted)
{
    if (wanted->only != MISHAP_GONE) return;
    struct training_plan *t = &plan->training;
    plan->model = MODEL_COUNTS;
    plan->is_sync = plan->is_in_graph = plan->has_evaluator = plan->is_url = false;
    plan->is_large = plan->is_alone = false;
    plan->hosts = plan->towers = plan->coordinator = plan->keep_best = 0;
    if (plan->ps < 2) plan->ps = 2;
    if (plan->workers < 2) plan->workers = 2;
    plan->chief_timeout_s = 2 + (int)draw_below(6);
    *t = (struct training_plan){.accumulate = 1, .staleness = -1, .limit_s = t->limit_s};
    t->worker_timeout_s = 1 + (int)draw_below(4);
    t->epochs = 1 + (int)draw_below(4);
    plan->last_step = t->epochs * ROWS / COUNTS_BATCH;
    plan->save_steps = 5 + (int)draw_below(40);
    plan->mishaps[0] = (struct mishap){.kind = MISHAP_GONE};
    plan->mishap_count = plan->blow_count = 1;
    plan->blows[0] = (struct blow){.kind = BLOW_KILL,
                                   .message = MESSAGE_PUSH,
                                   .nth = 1 + (int)draw_below(2 * (uint64_t)plan->last_step),
                                   .is_at_sender = true,
                                   .is_after = draw_below(2) == 0,
                                   .later_ns = draw_below(UINT64_C(1) << draw_below(20))};
}

/* Whatever befalls it, a ps and the one that follows it are two of the tasks. */
static void draw_replicas(struct job_plan *plan, const struct wanted *wanted)
{
    const bool may = plan->ps == PS_MOST && !plan->coordinator;
    plan->training.is_held_twice = may && draw_below(3) == 0;
}

/* Amid the messages of a step, at the start or the end, or one after the other and each back before
 * the next one goes. */
static void draw_held(struct job_plan *plan, const struct wanted *wanted)
{
    enum { BACK_S = 4 };
    if (wanted->only != MISHAP_HELD) return;
    const int limit_s = plan->training.limit_s;
    plan->ps = PS_MOST;
    plan->model = wanted->has_rows ? MODEL_COUNTS : MODEL_DIGITS;
    plan->is_alone = plan->is_url = plan->is_large = plan->is_in_graph = false;
    plan->has_evaluator = false;
    plan->coordinator = plan->keep_best = 0;
    plan->training = (struct training_plan){
        .accumulate = 1, .staleness = -1, .limit_s = limit_s, .is_held_twice = true};
    if (!plan->is_sync && draw_below(3) == 0) plan->training.staleness = (int)draw_below(4);
    plan->save_steps = 10 + (int)draw_below(300);
    plan->mishap_count = 1 + (int)draw_below(3);
    for (int i = 0; i < plan->mishap_count; i++)
        plan->mishaps[i] =
            (struct mishap){.kind = MISHAP_HELD,
                            .task = 1 + (int)draw_below(2),
                            .at_ns = (uint64_t)i * BACK_S * SECOND_NS + draw_ns(1500),
                            .lasts_ns = draw_ns(draw_below(2) ? 300 : 2000)};
    if (draw_below(4) == 0) {
        plan->last_step = 500 + (int)draw_below(1500);
        plan->blow_count = 0;
    } else {
        plan->mishap_count = 1;
        blows_draw(plan->blows, &plan->blow_count, 0);
        plan->blow_count = 1;
        plan->blows[0].kind = BLOW_KILL;
        if (draw_below(3)) plan->blows[0].message = draw_below(2) ? MESSAGE_PUSH : MESSAGE_VALUES;
        plan->blows[0].lasts_ns = draw_ns(2000);
        plan->mishaps[0].at_ns += 5 * BACK_S * SECOND_NS; /* after its end */
    }
}

static void draw_wire(struct job_plan *plan, const struct wanted *wanted)
{
    if (draw_below(5) == 0) plan->training.wire = (int)draw_below(WIRES);
}

static void draw_frozen(struct job_plan *plan, const struct wanted *wanted)
{
    if (draw_below(5) == 0) plan->training.frozen = 1 + (int)draw_below(FROZEN - 1);
}

/* Each has dice of its own: what one draws more leaves the others of a seed as they are. */
struct apart {
    const char *key;
    void (*draw)(struct job_plan *, const struct wanted *);
};

static void draw_apart(struct job_plan *plan, const struct apart *apart,
                       const struct wanted *wanted)
{
    const uint64_t kept = machine.random;
    uint64_t other = 0;
    for (const char *key = apart->key; *key; key++) other = other << 8 | (unsigned char)*key;
    machine.random ^= other;
    apart->draw(plan, wanted);
    machine.random = kept;
}

void job_plan_draw(struct job_plan *plan, enum mishap_kind only, bool is_found, bool has_rows)
{
    static const struct apart draws[] = {
        {"disk", draw_disks},    {"coor", draw_coordinator}, {"host", draw_places},
        {"tran", draw_training}, {"fres", draw_keeping},     {"foll", draw_following},
        {"lack", draw_lack},     {"last", draw_last},        {"wire", draw_wire},
        {"cold", draw_frozen},   {"twos", draw_replicas},    {"gone", draw_gone},
        {"held", draw_held},
    };
    const struct wanted wanted = {only, is_found, has_rows};
    *plan = (struct job_plan){
        .ps = 1 + (int)draw_below(PS_MOST),
        .workers = 1 + (int)draw_below(WORKERS_MOST),
        .is_sync = draw_below(2) == 0,
        .evaluates = draw_below(3) == 0,
        .model = (enum model_kind)draw_below(MODEL_KINDS),
        .last_step = 20 + (int)draw_below(180),
        .save_steps = 5 + (int)draw_below(40),
        .has_evaluator = draw_below(4) == 0,
        .grows = draw_below(2) == 0,
        .is_streamed = draw_below(3) == 0,
        .is_in_graph = draw_below(5) == 0,
        .parts = (int)draw_below(3),
        .chief_timeout_s = draw_below(2) == 0 ? 0 : 2 + (int)draw_below(10),
        .mishap_count = (int)draw_below(MISHAPS_MOST),
    };
    plan->evaluates |= plan->has_evaluator;
    for (int i = 0; i < plan->mishap_count; i++)
        draw_mishap(plan, i ? &plan->mishaps[i - 1] : NULL, &plan->mishaps[i]);
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) draw_apart(plan, &draws[i], &wanted);
}

bool job_plan_has_epochs(const struct job_plan *plan)
{
    return plan->training.epochs && !visits_resize(plan);
}

bool job_plan_follows(const struct job_plan *plan)
{
    return plan->training.files && !visits_resize(plan);
}

bool job_plan_counts_from_start(const struct job_plan *plan)
{
    bool has_its_name = false; /* the last checkpoint's, by which a mishap knows it */
    for (int i = 0; i < plan->mishap_count; i++)
        has_its_name |= plan->mishaps[i].kind >= MISHAP_DISK;
    return visits_resize(plan) && !has_its_name;
}

const struct mishap *job_plan_lack(const struct job_plan *plan)
{
    const bool is_it = plan->training.lacks_for_good && plan->mishap_count == 1 &&
                       !plan->visit_count && !plan->blow_count && !plan->coordinator;
    return is_it ? &plan->mishaps[0] : NULL;
}

bool job_plan_is_steady(const struct job_plan *plan)
{
    const struct training_plan *t = &plan->training;
    const bool waits = !t->replicas || t->replicas % plan->workers == 0;
    return plan->is_sync && waits && !t->worker_timeout_s;
}

int job_plan_gradients(const struct job_plan *plan)
{
    const struct training_plan *t = &plan->training;
    const int pushes = !plan->is_sync ? 1 : t->replicas ? t->replicas : plan->workers;
    return pushes * t->accumulate;
}

const char *job_plan_coordinator(const struct job_plan *plan)
{
    return plan->coordinator == FOUND_BY_ETCD ? COORDINATOR_ETCD : COORDINATOR_ZOOKEEPER;
}

const char *job_folder(const struct job_plan *plan, const char *name)
{
    static char paths[2][64];
    static int next;
    char *ret = paths[next++ % 2];
    snprintf(ret, sizeof paths[0], "%s%s", plan->is_url ? "s3://bucket/" : "/disk/", name);
    return ret;
}

bool job_plan_has_disks(const struct job_plan *plan)
{
    for (int i = 0; i < plan->mishap_count; i++)
        if (plan->mishaps[i].kind >= MISHAP_DISK && plan->mishaps[i].kind <= MISHAP_STORE)
            return true;
    return false;
}

bool job_plan_has(const struct job_plan *plan, enum mishap_kind kind)
{
    for (int i = 0; i < plan->mishap_count; i++)
        if (plan->mishaps[i].kind == kind) return true;
    return false;
}

/* Somebody is asked to end. */
bool job_plan_asks(const struct job_plan *plan)
{
    bool ret = job_plan_has(plan, MISHAP_ASK);
    for (int i = 0; i < plan->blow_count; i++) ret |= plan->blows[i].kind == BLOW_ASK;
    return ret;
}

const char *const mishap_names[MISHAP_KINDS] = {
    "kill",        "stand",  "reset",    "cut",    "alone", "dark",     "slow",    "ask",
    "full",        "broken", "readonly", "denied", "hangs", "unsynced", "emptied", "store",
    "coordinator", "freeze", "lack",     "last",   "gone",  "held"};

enum mishap_kind mishap_find(const char *name)
{
    enum mishap_kind ret = 0;
    while (ret < MISHAP_KINDS && strcmp(mishap_names[ret], name) != 0) ret++;
    return ret;
}

void job_plan_print(const struct job_plan *plan, FILE *to)
{
    fprintf(to, "%d ps, %d workers, %s, %s%s%s%s%s%s%s, ", plan->ps, plan->workers,
            plan->is_sync ? "sync" : "async", plan->model == MODEL_COUNTS ? "counts" : "digits",
            plan->grows ? ", grows" : "", plan->is_streamed ? ", streamed" : "",
            plan->is_in_graph ? ", in graph" : "", plan->evaluates ? ", evaluates" : "",
            plan->has_evaluator ? ", evaluator" : "",
            !plan->is_url    ? ""
            : plan->is_large ? ", s3, large"
                             : ", s3");
    if (plan->is_alone) fprintf(to, "one process, ");
    if (plan->hosts) fprintf(to, "%d hosts, ", plan->hosts);
    if (plan->towers) fprintf(to, "%d towers, ", plan->towers);
    if (plan->keep_best) fprintf(to, "keeps the best %d, ", plan->keep_best);
    fprintf(to, "%d steps, saves every %d, chief_timeout %d s, parts %d\n", plan->last_step,
            plan->save_steps, plan->chief_timeout_s, plan->parts);
    const struct training_plan *t = &plan->training;
    fprintf(to,
            "  %d epochs, %d replicas, accumulate %d, staleness %d, worker_timeout %d s, limits %d "
            "s%s%s\n",
            t->epochs, t->replicas, t->accumulate, t->staleness, t->worker_timeout_s, t->limit_s,
            t->stops_job ? ", SIGTERM stops" : "", t->evaluates_much ? ", evaluates much" : "");
    fprintf(to, "  publishes every %d ms, average %d, %d files that come, wire %d, frozen %d%s%s\n",
            t->publish_ms, t->average, t->files, t->wire, t->frozen,
            t->lacks_for_good ? ", lacks for good" : "", t->is_held_twice ? ", held twice" : "");
    for (int i = 0; i < plan->mishap_count; i++) {
        const struct mishap *m = &plan->mishaps[i];
        fprintf(to, "  at %.3f s: %s of task %d (other %d) for %.3f s", (double)m->at_ns / 1e9,
                mishap_names[m->kind], m->task, m->other, (double)m->lasts_ns / 1e9);
        if (m->kind >= MISHAP_DISK)
            fprintf(to, ", %s, %d of 1024", m->is_everywhere ? "for all" : "for it", m->share);
        fputc('\n', to);
    }
    for (int i = 0; i < plan->blow_count; i++) blow_print(&plan->blows[i], to);
    if (plan->coordinator)
        fprintf(to, "  found by %s%s\n", job_plan_coordinator(plan),
                plan->has_indices ? ", with indices" : "");
    if (plan->first_ps)
        fprintf(to, "  begins with %d ps and %d workers\n", plan->first_ps, plan->first_workers);
    for (int i = 0; i < plan->visit_count; i++) visit_print(&plan->visits[i], to);
}
