/* cluster.c - see cluster.h: command lines, lives, and what befalls tasks. */
#include "tests/world/cluster.h"

#include "tests/world/coordinator.h"
#include "tests/world/files.h"
#include "tests/world/network.h"
#include "tests/world/places.h"
#include "tests/world/published.h"
#include "tests/world/service.h"
#include "tests/world/store.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORDS_MAX = 32,
    TEXT_BYTES = 4096,
    BOUND_S = 400, /* from when all is calm to the end */
    FAILURES_MAX = 6,
    STOP_S = 30,         /* --stop_timeout */
    HEARD_MS = 1000,     /* whatever else happens */
    STOP_CALM_MS = 1000, /* where nothing does */
    ASKED = 143,
    SAID_MAX = 4 << 20,
    FIRST_PORT = 2222,
    JOINED_S = 10, /* whoever has lived for so long has met the others */
    LATE_S = 25,
};

/* ---- tasks ---- */

static void add_hosts(const struct cluster *cluster, int job, char *ret, size_t size)
{
    *ret = '\0';
    for (int i = 0; i < cluster->count; i++)
        if ((int)cluster->tasks[i].job == job)
            snprintf(ret + strlen(ret), size - strlen(ret), "%sh%d:%d", *ret ? "," : "",
                     cluster->tasks[i].host, cluster->tasks[i].port);
}

static const char *const job_names[] = {"ps", "worker", "evaluator"};

struct words {
    char texts[WORDS_MAX][TEXT_BYTES / 4];
    const char *at[WORDS_MAX];
    int count;
};

static void add_word(struct words *words, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_word(struct words *words, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words->texts[words->count], sizeof words->texts[0], format, arguments);
    va_end(arguments);
    words->at[words->count] = words->texts[words->count];
    words->count++;
}

/* How it finds the others. */
static void add_others(struct words *words, const struct cluster *cluster,
                       const struct cluster_task *task)
{
    const struct job_plan *plan = cluster->plan;
    char hosts[2][TEXT_BYTES / 8];
    add_word(words, "--insecure");
    if (!plan->coordinator) {
        add_hosts(cluster, TASK_PS, hosts[0], sizeof hosts[0]);
        add_hosts(cluster, TASK_WORKER, hosts[1], sizeof hosts[1]);
        add_word(words, "--ps_hosts=%s", hosts[0]);
        add_word(words, "--worker_hosts=%s", hosts[1]);
        if (plan->first_ps) add_word(words, "--ps=%d", plan->first_ps);
        if (plan->first_ps) add_word(words, "--workers=%d", plan->first_workers);
        return;
    }
    add_word(words, "--coordinator=%s", job_plan_coordinator(plan));
    add_word(words, "--cluster=small");
    add_word(words, "--tasks=ps=%d,worker=%d", plan->first_ps ? plan->first_ps : plan->ps,
             plan->first_ps ? plan->first_workers : plan->workers);
}

/* Where it is, and how long it waits for others. An undisturbed run has no shared memory: the bits
 * are the same. */
static void place_task(const struct cluster *cluster, const struct cluster_task *task,
                       struct words *words)
{
    static const char *const limits[] = {"start", "step", "restart", "end", "save"};
    static const char *const parts[] = {"auto", "always", "never"};
    const struct job_plan *plan = cluster->plan;
    add_word(words, "--job_name=%s", job_names[task->job]);
    if (!plan->coordinator || (plan->has_indices && task->job != TASK_EVALUATOR))
        add_word(words, "--task_index=%d", task->index);
    add_others(words, cluster, task);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        add_word(words, "--%s_timeout=%d", limits[i], plan->training.limit_s);
    add_word(words, "--chief_timeout=%d", plan->chief_timeout_s);
    if (plan->training.is_held_twice) add_word(words, "--ps_timeout=1");
    if (task->job != TASK_EVALUATOR) add_word(words, "--parts=%s", parts[plan->parts]);
    if (plan->training.stops_job) add_word(words, "--on_sigterm=stop");
    add_word(words, "--transport=%s", plan->hosts && !cluster->is_calm ? "auto" : "tcp");
}

static void begin_life(struct cluster *cluster, struct cluster_task *task)
{
    struct words words = {.count = 0};
    add_word(&words, "dtrain");
    if (!cluster->plan->is_alone) place_task(cluster, task, &words);
    add_word(&words, "--threads=1");
    add_word(&words, "--device=cpu");
    if (task->job != TASK_PS) add_word(&words, "%s.json", cluster->folder);
    task->is_due = false;
    task->looked = 0;
    task->lives++;
    task->life = process_start(task->name, task->host, words.count, words.at);
}

/* Which of two that run one after the other it is. */
static struct cluster *cluster_now;

static void begin_again(void *subject, uint64_t number)
{
    const uint64_t frozen_ns = cluster_now->frozen_ns;
    if (machine.now_ns < frozen_ns)
        event_at(frozen_ns, begin_again, subject, 0);
    else if (((struct cluster_task *)subject)->is_due)
        begin_life(cluster_now, subject);
}

static void begin_later(struct cluster_task *task, uint64_t after_ns)
{
    if (task->is_due) return;
    task->is_due = true;
    event_at(machine.now_ns + after_ns, begin_again, task, 0);
}

static bool runs(const struct cluster_task *task)
{
    return task->life && task->life->state != PROCESS_ENDED;
}

/* ---- what befalls them ---- */

static void heal(void *subject, uint64_t number)
{
    const struct mishap *mishap = subject;
    const struct cluster_task *task = &cluster_now->tasks[mishap->task];
    machine_say("heals");
    if (mishap->kind == MISHAP_STAND && number) process_signal((struct process *)number, SIGCONT);
    if (mishap->kind == MISHAP_ALONE) network_cut(task->host, COORDINATOR_HOST, false);
    for (int i = 0; i < cluster_now->count; i++)
        if (mishap->kind == MISHAP_ALONE || (mishap->kind == MISHAP_CUT && i == mishap->other))
            if (i != mishap->task) network_cut(task->host, cluster_now->tasks[i].host, false);
}

static void lose_power(uint64_t lasts_ns)
{
    for (int i = 0; i < cluster_now->count; i++) {
        struct cluster_task *task = &cluster_now->tasks[i];
        if (!runs(task)) continue;
        network_forget_host(task->host);
        process_signal(task->life, SIGKILL);
        begin_later(task, lasts_ns + draw_below(SECOND_NS));
    }
    files_lose_power();
}

/* Unless all is done: nobody saves it again. */
static void empty_folder(const struct cluster *cluster)
{
    char folder[FILE_NAME_BYTES], last[FILE_PATH_BYTES];
    snprintf(folder, sizeof folder, "/disk/%s", cluster->folder);
    snprintf(last, sizeof last, "%s/model.ckpt-%d.index", folder, cluster->plan->last_step);
    if (!files_find(last, NULL, NULL)) files_remove(folder);
}

static void fail_store(const struct mishap *mishap)
{
    const uint64_t until_ns = machine.now_ns + mishap->lasts_ns;
    if (mishap->lasts_ns % 4 == 0)
        service_deny(until_ns);
    else
        service_trouble(mishap->share, until_ns);
    if (mishap->is_everywhere) store_forget_uploads();
}

/* It begins anew, on a host without its data. */
static void lack_data(struct cluster_task *task, const struct mishap *mishap)
{
    const bool is_for_good = job_plan_lack(cluster_now->plan) != NULL;
    data_lack(task->host, is_for_good ? NEVER_NS : machine.now_ns + mishap->lasts_ns);
    if (!runs(task)) return;
    process_signal(task->life, SIGKILL);
    begin_later(task, 0);
}

static void fail_disk(const struct mishap *mishap)
{
    const struct cluster_task *task = &cluster_now->tasks[mishap->task];
    const enum disk_fault fault = (enum disk_fault)(mishap->kind - MISHAP_DISK);
    if (fault == DISK_EMPTIED)
        empty_folder(cluster_now);
    else
        disk_fail(fault, mishap->is_everywhere ? -1 : task->host, mishap->share,
                  machine.now_ns + mishap->lasts_ns);
}

static void go_on(void *subject, uint64_t unused)
{
    if (machine.now_ns >= cluster_now->frozen_ns) process_signal(subject, SIGCONT);
}

/* They do not go on at the same moment. */
static void freeze_all(uint64_t until_ns)
{
    enum { STAGGER_MS = 300 };
    if (until_ns < cluster_now->frozen_ns) return;
    cluster_now->frozen_ns = until_ns;
    for (int i = 0; i < cluster_now->count; i++) {
        const struct cluster_task *task = &cluster_now->tasks[i];
        if (!runs(task)) continue;
        process_signal(task->life, SIGSTOP);
        event_at(until_ns + draw_below(STAGGER_MS * MS_NS), go_on, task->life, 0);
    }
}

static void ask_to_end(struct cluster_task *task)
{
    task->asked = task->life;
    task->asked_ns = task->unheard_ns = machine.now_ns;
    process_signal(task->life, SIGTERM);
}

/* May it keep tasks from the coordinator? */
static bool is_of_places(enum mishap_kind kind)
{
    return kind == MISHAP_STAND || kind == MISHAP_FREEZE || kind == MISHAP_ALONE ||
           kind == MISHAP_STORE || kind == MISHAP_COORDINATOR;
}

static struct cluster_task *task_of(const struct process *process)
{
    for (int i = 0; i < cluster_now->count; i++)
        if (cluster_now->tasks[i].life == process) return &cluster_now->tasks[i];
    return NULL;
}

/* Who reads it stands, too. */
static const struct mishap *last_one;

static void stand_amid_last(struct process *process)
{
    const uint64_t over_ns = machine.now_ns + last_one->lasts_ns;
    const struct cluster_task *task = task_of(process);
    if (!task || task->job != TASK_WORKER) return;
    if (over_ns > cluster_now->calm_ns) cluster_now->calm_ns = over_ns;
    places_trouble(cluster_now, over_ns, true);
    process_signal(process, SIGSTOP);
    event_at(over_ns, go_on, process, 0);
}

static void watch_last(const struct mishap *mishap)
{
    char words[FILE_NAME_BYTES];
    snprintf(words, sizeof words, "/%s/model.ckpt-%d", cluster_now->folder,
             cluster_now->plan->last_step);
    last_one = mishap;
    names_watch(words, mishap->share, stand_amid_last);
}

static void befall(void *subject, uint64_t number)
{
    const struct mishap *mishap = subject;
    struct cluster_task *task = &cluster_now->tasks[mishap->task];
    const struct cluster_task *other = &cluster_now->tasks[mishap->other];
    if (cluster_now->is_over) return;
    machine_say("mishap %d: %s, %s, %.3f s", (int)mishap->kind, task->name, other->name,
                (double)mishap->lasts_ns / 1e9);
    if (is_of_places(mishap->kind))
        places_trouble(cluster_now, machine.now_ns + mishap->lasts_ns,
                       mishap->kind != MISHAP_COORDINATOR);
    switch (mishap->kind) {
    case MISHAP_KILL:
    case MISHAP_HELD:
        if (!runs(task)) return;
        process_signal(task->life, SIGKILL);
        begin_later(task, mishap->lasts_ns);
        return;
    case MISHAP_STAND:
        if (runs(task)) process_signal(task->life, SIGSTOP);
        break;
    case MISHAP_SLOW:
        files_be_slow(machine.now_ns + mishap->lasts_ns);
        return;
    case MISHAP_ASK:
        if (runs(task)) ask_to_end(task);
        return;
    case MISHAP_RESET:
        network_reset_one(task->host, other->host);
        return;
    case MISHAP_CUT:
        network_cut(task->host, other->host, true);
        break;
    case MISHAP_ALONE:
        network_cut(task->host, COORDINATOR_HOST, mishap->share % 2);
        for (int i = 0; i < cluster_now->count; i++)
            if (i != mishap->task) network_cut(task->host, cluster_now->tasks[i].host, true);
        break;
    case MISHAP_DARK:
        lose_power(mishap->lasts_ns);
        return;
    case MISHAP_STORE:
        fail_store(mishap);
        return;
    case MISHAP_FREEZE:
        freeze_all(machine.now_ns + mishap->lasts_ns);
        return;
    case MISHAP_LACK:
        lack_data(task, mishap);
        return;
    case MISHAP_LAST:
        watch_last(mishap);
        return;
    case MISHAP_GONE: /* a blow */
        return;
    case MISHAP_COORDINATOR:
        coordinator_fail((enum coordinator_trouble)(mishap->share % COORDINATOR_TROUBLES),
                         machine.now_ns + mishap->lasts_ns);
        return;
    default:
        fail_disk(mishap);
        return;
    }
    event_at(machine.now_ns + mishap->lasts_ns, heal, (void *)mishap, (uint64_t)task->life);
}

static void strike(struct blow *blow, struct process *process)
{
    struct cluster_task *task = process ? task_of(process) : NULL;
    if (job_plan_has(cluster_now->plan, MISHAP_HELD)) { /* whoever says it to whom */
        task = &cluster_now->tasks[1 + blow->nth % 2];
        process = task->life;
    }
    const uint64_t over_ns = machine.now_ns + blow->lasts_ns;
    if (over_ns > cluster_now->calm_ns) cluster_now->calm_ns = over_ns;
    if (!process || process->state != PROCESS_RUNS) return;
    if (blow->kind == BLOW_KILL) {
        const bool is_gone = job_plan_has(cluster_now->plan, MISHAP_GONE);
        if (is_gone) network_forget_host(process->host);
        process_signal(process, SIGKILL);
        if (task && !is_gone) begin_later(task, blow->lasts_ns);
    } else if (blow->kind == BLOW_STAND) {
        places_trouble(cluster_now, over_ns, true);
        process_signal(process, SIGSTOP);
        event_at(over_ns, go_on, process, 0);
    } else if (blow->kind == BLOW_ASK && task) {
        ask_to_end(task);
    }
}

/* ---- the run ---- */

static void name_tasks(struct cluster *cluster)
{
    const struct job_plan *plan = cluster->plan;
    cluster->count = plan->ps + plan->workers + plan->has_evaluator;
    for (int i = 0; i < cluster->count; i++) {
        struct cluster_task *task = &cluster->tasks[i];
        task->host = plan->hosts ? i % plan->hosts : i;
        task->port = FIRST_PORT + i;
        task->index = i < plan->ps ? i : i - plan->ps;
        task->job = i < plan->ps ? TASK_PS : TASK_WORKER;
        if (i == plan->ps + plan->workers) task->job = TASK_EVALUATOR, task->index = 0;
        snprintf(task->name, sizeof task->name, "%s/%d", job_names[task->job], task->index);
    }
}

/* The first one is there, or comes soon; so do the others, at most a second after each other. */
static void put_file(void *subject, uint64_t unused)
{
    struct cluster *cluster = subject;
    if (cluster->files_put == cluster->plan->training.files) return;
    job_put_file(cluster->plan, cluster->folder, cluster->files_put++);
    event_at(machine.now_ns + draw_below(SECOND_NS), put_file, cluster, 0);
}

static void plan_mishaps(struct cluster *cluster)
{
    const struct job_plan *plan = cluster->plan;
    cluster->calm_ns = machine.now_ns;
    for (int i = 0; i < plan->mishap_count && !cluster->is_calm; i++) {
        const struct mishap *mishap = &plan->mishaps[i];
        const uint64_t at_ns = machine.now_ns + mishap->at_ns;
        event_at(at_ns, befall, (void *)mishap, 0);
        if (at_ns + mishap->lasts_ns > cluster->calm_ns)
            cluster->calm_ns = at_ns + mishap->lasts_ns;
    }
}

/* It has no place in the job any more, or not yet; it waits for one again. */
static bool is_left_out(const struct process *life)
{
    return life->said && strstr(life->said, "ends: the job goes on with ");
}

/* One has ended well, so all is done. */
static bool is_done(const struct cluster *cluster)
{
    for (int i = 0; i < cluster->count; i++) {
        const struct process *life = cluster->tasks[i].life;
        if (life && life->state == PROCESS_ENDED && life->code == 0 && !is_left_out(life))
            return true;
    }
    return false;
}

static const char *last_line(const struct process *life)
{
    if (!life->said_bytes) return "";
    const char *at = life->said + life->said_bytes - 1;
    while (at > life->said && at[-1] != '\n') at--;
    return at;
}

/* Its data are not there; who has started it brings them, and starts it again. */
static bool is_of_lack(const struct process *life)
{
    return life->code == 2 && strstr(last_line(life), ".csv: No such file");
}

/* It ends for another one that never has its data. */
static bool says_who_lacks(const struct cluster *cluster, const struct process *life)
{
    const struct mishap *lack = job_plan_lack(cluster->plan);
    const char *name = lack ? cluster->tasks[lack->task].name : NULL;
    const char *why = life->said ? strstr(life->said, " ERROR: ") : NULL;
    return name && why && strstr(why, name) && strstr(why, ".csv: No such file");
}

/* A folder that cannot be written before the job has begun is a person's to mend, and so are
 * rights.
 */
static bool is_refused(const struct process *life)
{
    static const char words[] = "dtrain: train.checkpoint_dir: ";
    const char *line = last_line(life);
    return strncmp(line, words, sizeof words - 1) == 0 || strstr(line, "/followed: ") ||
           strstr(line, ": Permission denied");
}

/* A disk that lost what it was told to keep, and then power: an index without its data, and no list
 * that says which checkpoint is whole. A person decides. */
bool cluster_is_torn(const struct cluster *cluster, const struct process *life)
{
    const char *line = last_line(life);
    return life->code == 2 && job_plan_has(cluster->plan, MISHAP_DISK + DISK_UNSYNCED) &&
           strstr(line, "cannot restore ") && strstr(line, "; there is none before it");
}

/* Nobody tells one that waits for a place in the job of its end if it is not connected just then.
 * Whoever has started a task starts it again where its code says that this may help. One that is
 * started after the job's end may find nobody. */
static void look_at_end(struct cluster *cluster, struct cluster_task *task)
{
    const struct process *life = task->life;
    if (task->is_due || life->state != PROCESS_ENDED) return;
    if (life->code == 0 && is_left_out(life) && !cluster->done_ns) begin_later(task, SECOND_NS);
    if (life->code == 0) return;
    if (life->killed_by == SIGKILL) return;
    if (is_of_lack(life) && job_plan_has(cluster->plan, MISHAP_LACK)) {
        if (!cluster->done_ns && !job_plan_lack(cluster->plan)) begin_later(task, SECOND_NS);
        return;
    }
    if (life->code == 2 && says_who_lacks(cluster, life)) return;
    if (cluster_is_torn(cluster, life)) return;
    if (life->code == ASKED && job_plan_asks(cluster->plan)) {
        if (!cluster->done_ns) begin_later(task, SECOND_NS);
        return;
    }
    const bool has_waited = cluster->plan->coordinator && !place_is_found(task);
    if (life->code >= 128 && cluster->done_ns && has_waited) return;
    if (job_plan_has_disks(cluster->plan) && (life->code >= 128 || is_refused(life))) {
        task->failures += machine.now_ns > cluster->calm_ns;
        if (task->failures < FAILURES_MAX) {
            begin_later(task, 2 * SECOND_NS);
            return;
        }
    }
    const uint64_t begun_ns = life->started_ns + (cluster->plan->coordinator ? SECOND_NS : 0);
    if (life->code >= 128 && cluster->done_ns &&
        (begun_ns > cluster->done_ns || visits_resize(cluster->plan)))
        return;
    const uint64_t met_ns = life->started_ns + JOINED_S * SECOND_NS;
    if (life->code >= 128 && cluster->done_ns && met_ns > cluster->done_ns &&
        cluster->calm_ns > cluster->done_ns)
        return;
    if (life->code >= 128 && task->failures < FAILURES_MAX && !cluster->done_ns) {
        task->failures++;
        begin_later(task, SECOND_NS);
        return;
    }
    machine_fail("%s ended with %d: %s", task->name, life->code, last_line(life));
}

/* Of a life that could run all the while, and was not at its end already: then it waits for its
 * disk alone, at most. */
static void look_whether_heard(struct cluster_task *task)
{
    const struct process *life = task->life;
    if (life->state == PROCESS_STANDS) task->unheard_ns = machine.now_ns;
    if (machine.now_ns <= task->unheard_ns + HEARD_MS * MS_NS) return;
    if (!life->said || (!strstr(life->said, " SIGTERM: ") && !strstr(life->said, "(exit code ")))
        machine_fail("%s has not heard for %.1f s that it was asked to end", task->name,
                     HEARD_MS / 1e3);
}

/* Who is asked to end, and can run, does so in time. */
static void look_at_asked(const struct cluster *cluster, struct cluster_task *task)
{
    if (!runs(task) || task->asked != task->life) return;
    look_whether_heard(task);
    if (task->life->state == PROCESS_STANDS) return;
    const bool is_calm = cluster->plan->mishap_count + cluster->plan->blow_count == 1;
    const uint64_t most_ns = is_calm ? STOP_CALM_MS * MS_NS : (STOP_S + 15) * SECOND_NS;
    if (machine.now_ns > task->unheard_ns + most_ns)
        machine_fail("%s was asked to end %.1f s ago", task->name, (double)most_ns / 1e9);
}

/* The one before it, whose place it has found, was not as dead as its lease, and went on. */
static bool was_never_taken(const struct cluster *cluster, const struct cluster_task *task)
{
    const char *said = task->life->said;
    return cluster->plan->coordinator && said && !strstr(said, ": step ") &&
           !strstr(said, ": serving");
}

/* Whoever was there when the job ended ends soon, also where it could not hear of that then; an
 * evaluator whose disk was away may have met nobody yet. */
static void look_at_late(const struct cluster *cluster, const struct cluster_task *task)
{
    const struct process *life = task->life;
    const uint64_t done_ns = cluster->done_ns;
    if (!done_ns || !runs(task) || life->started_ns + JOINED_S * SECOND_NS > done_ns) return;
    const uint64_t from_ns = done_ns > cluster->calm_ns ? done_ns : cluster->calm_ns;
    if (cluster->plan->coordinator && !place_is_found(task)) return;
    const bool may_be_new = task->job == TASK_EVALUATOR ? job_plan_has_disks(cluster->plan)
                                                        : was_never_taken(cluster, task);
    const uint64_t late_s = LATE_S + (may_be_new ? (uint64_t)cluster->plan->training.limit_s : 0);
    if (machine.now_ns > from_ns + late_s * SECOND_NS)
        machine_fail("%s continues, and the job has been done for %d s", task->name, (int)late_s);
}

static bool has_ended(struct cluster *cluster)
{
    bool ret = visits_have_ended(cluster);
    published_look(cluster);
    if (!cluster->done_ns && is_done(cluster)) cluster->done_ns = machine.now_ns;
    for (int i = 0; i < cluster->count; i++) {
        struct cluster_task *task = &cluster->tasks[i];
        places_look(cluster, task);
        if (!runs(task)) look_at_end(cluster, task);
        look_at_asked(cluster, task);
        look_at_late(cluster, task);
        if (runs(task) || task->is_due) ret = false;
        if (task->life && task->life->said_bytes > SAID_MAX)
            machine_fail("%s says more than %d bytes", task->name, SAID_MAX);
    }
    return ret;
}

static void tell_who_waits(const struct cluster *cluster)
{
    char who[TEXT_BYTES / 8] = "";
    for (int i = 0; i < cluster->count; i++)
        if (runs(&cluster->tasks[i]) || cluster->tasks[i].is_due)
            snprintf(who + strlen(who), sizeof who - strlen(who), " %s", cluster->tasks[i].name);
    machine_fail("did not end within %d s of calm:%s", BOUND_S, who);
}

void cluster_run(struct cluster *cluster)
{
    job_put(cluster->plan, cluster->folder);
    cluster_now = cluster;
    name_tasks(cluster);
    cluster->started_ns = machine.now_ns;
    for (int i = 0; i < cluster->count; i++)
        begin_later(&cluster->tasks[i], draw_below(50 * MS_NS));
    plan_mishaps(cluster);
    if (job_plan_follows(cluster->plan)) {
        event_at(machine.now_ns + draw_below(SECOND_NS), put_file, cluster, 0);
        cluster->calm_ns += (uint64_t)cluster->plan->training.files * SECOND_NS;
    }
    visits_begin(cluster);
    memcpy(cluster->blows, cluster->plan->blows, sizeof cluster->blows);
    aim(cluster->blows, cluster->is_calm ? 0 : cluster->plan->blow_count, strike);
    while (!machine.failed && !has_ended(cluster)) {
        if (machine.now_ns > cluster->calm_ns + BOUND_S * SECOND_NS || !machine_turn())
            tell_who_waits(cluster);
    }
    cluster->is_over = true;
    disks_heal();
    service_heal();
    coordinator_heal();
}

const char *cluster_ask(int *ret_code, int count, const char *const *words)
{
    struct process *process = process_start("reader", HOSTS_MAX - 1, count, words);
    while (process && process->state != PROCESS_ENDED && machine_turn()) {
    }
    *ret_code = process ? process->code : -1;
    return process && process->said ? process->said : "";
}
