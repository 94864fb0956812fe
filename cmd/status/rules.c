/* rules.c - see rules.h. */
#include "cmd/status/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fields/help.h"

/* Thresholds of the rules */
enum {
    SILENT_MS = 30000,
    SILENT_PS_NAMED = 8, /* others are only counted */
    STARVING_NAMED = 8,
    STEPS_LEAST = 10, /* of a worker, for meaningful times */
    OLD_CHECKPOINT_S = 30 * 60,
    LONG_CHECKPOINT_S = 60,
    CLOCK_OFF_S = 10,
    CLOCKS_NAMED = 8,
    AWAY_NAMED = 8,
    TASKS_LOOKED_AT = 1 << 16, /* more cannot be true */
    MANY_RETRIES = 5,          /* recently */
    LOST_LATELY = 2,           /* connections, and */
    LOST_LEAST = 4,            /* in total: one task that ends is normal */
    CHECKPOINTS_LEAST = 3,     /* of a chief, for a meaningful interval */
    QUEUED_LEAST = 64 << 20,
    BYTES_LEAST = 1 << 20, /* of all ps, for meaningful shares */
};
static const double slower = 1.5, memory_left = 0.1, waits_for_data = 0.3, waits_for_one = 0.3,
                    unequal = 1.4, throttles = 0.25, drops = 0.05, busy = 0.7, stale_for_each = 2,
                    always_saves = 0.5, late_s = 0.005, slower_s = 0.001;

static double of(const struct task_status *t, enum counter c)
{
    return t->counters.at[c];
}

/* Seconds over which task_status_lately() has counted */
static double lately_s(const struct task_status *t)
{
    return t->recent_s > 0 ? t->recent_s : of(t, COUNTER_UPTIME);
}

const struct task_status *tasks_chief(const struct task_status *tasks, int count)
{
    const struct task_status *chief = NULL;
    for (int i = 0; i < count; i++) {
        if (tasks[i].is_ps || !(of(&tasks[i], COUNTER_IS_CHIEF) > 0)) continue;
        if (!chief || of(&tasks[i], COUNTER_TERM) > of(chief, COUNTER_TERM)) chief = &tasks[i];
    }
    return chief;
}

/* ---- workers ---- */

static const struct {
    enum counter time;
    const char *doing;
} parts[] = {
    {COUNTER_TIME_COMPUTE, "it computes longer"},
    {COUNTER_TIME_DATA, "it waits for data"},
    {COUNTER_TIME_PUSH, "its gradients leave slowly"},
    {COUNTER_TIME_PULL, "values come slowly"},
    {COUNTER_TIME_HOOKS, "its hooks take time"},
    {COUNTER_TIME_OTHERS, "it is answered late: its link, or a ps that is busy with it"},
};
enum { PARTS = sizeof parts / sizeof *parts };

/* The time that a worker itself needs for a step */
struct pace {
    double steps;            /* that it is measured over */
    double part[PARTS], all; /* seconds */
};

/* Leaves out the time in which workers wait for each other, except in asynchronous training, which
 * counts staleness and where they do not. If steps are few, times may include a part of one more,
 * so that counts; and hooks do not, as a chief that evaluates or saves is not slow. */
static struct pace pace_of(const struct task_status *t, bool lately)
{
    double (*const counted)(const struct task_status *, enum counter) =
        lately ? task_status_lately : of;
    const bool waits_for_others = !(of(t, COUNTER_STALENESS_COUNT) > 0);
    struct pace ret = {.steps = counted(t, COUNTER_STEPS)};
    const bool are_few = ret.steps < STEPS_LEAST;
    const double steps = ret.steps + are_few;
    for (int i = 0; i < PARTS; i++) {
        if (parts[i].time == COUNTER_TIME_OTHERS && waits_for_others) continue;
        if (parts[i].time == COUNTER_TIME_HOOKS && are_few) continue;
        ret.part[i] = counted(t, parts[i].time) / steps;
        ret.all += ret.part[i];
    }
    return ret;
}

/* Only workers that are still there count. */
static bool is_worker(const struct task_status *t)
{
    return !t->is_ps && !task_status_is_gone(t);
}

/* Whether to judge by the last seconds, if some workers take enough steps in them; otherwise, if
 * steps are long, by the whole run. */
static bool is_judged_lately(const struct job_facts *j)
{
    for (int i = 0; i < j->count; i++)
        if (is_worker(&j->tasks[i]) &&
            task_status_lately(&j->tasks[i], COUNTER_STEPS) >= STEPS_LEAST)
            return true;
    return false;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of two the lower one; NAN: no workers. part PARTS: the sum of all parts */
static double median(const struct job_facts *j, bool lately, int part)
{
    double *all = malloc((size_t)(j->count + 1) * sizeof *all), found = (double)NAN;
    int count = 0;
    for (int i = 0; all && i < j->count; i++) {
        const struct pace p = pace_of(&j->tasks[i], lately);
        if (!is_worker(&j->tasks[i]) || p.steps < STEPS_LEAST) continue;
        all[count++] = part == PARTS ? p.all : p.part[part];
    }
    if (count) {
        qsort(all, (size_t)count, sizeof *all, compare);
        found = all[(count - 1) / 2];
    }
    free(all);
    return found;
}

/* Ignores steps of less than a millisecond, where logging or another program matters. */
static void slow_worker(const struct job_facts *j, struct findings *f)
{
    const bool lately = is_judged_lately(j);
    double usual[PARTS + 1];
    for (int k = 0; k <= PARTS; k++) usual[k] = median(j, lately, k);
    for (int i = 0; i < j->count; i++) {
        const struct task_status *t = &j->tasks[i];
        const struct pace p = pace_of(t, lately);
        const bool is_measured = is_worker(t) && of(t, COUNTER_STEPS) >= STEPS_LEAST;
        const bool is_slow = p.all > slower * usual[PARTS] && p.all > usual[PARTS] + slower_s;
        if (!is_measured || !is_slow) continue;
        int worst = 0;
        for (int k = 1; k < PARTS; k++)
            if (p.part[k] - usual[k] > p.part[worst] - usual[worst]) worst = k;
        findings_say(f, FINDING_WARNING, "%s is %.1f x slower than the median (%.3g s a step): %s",
                     t->task, p.all / usual[PARTS], p.all, parts[worst].doing);
    }
}

static bool is_named(const struct findings *f, const char *rule, const char *task)
{
    const size_t length = strlen(task);
    for (int i = 0; i < f->count; i++)
        if (!strcmp(f->at[i].rule, rule) && !strncmp(f->at[i].text, task, length) &&
            f->at[i].text[length] == ' ')
            return true;
    return false;
}

/* Others wait for this worker. One that computes longer is found by its own times (slow_worker).
 * Ignores steps of about a millisecond, where trifles matter. */
static void late_worker(const struct job_facts *j, struct findings *f)
{
    char task[STATUS_NAME_MAX];
    const struct task_status *worst = NULL;
    double most = waits_for_one;
    for (int i = 0; i < j->count; i++) {
        const struct task_status *t = &j->tasks[i];
        const double part = task_status_lately(t, COUNTER_LATE) / lately_s(t);
        const bool is_long =
            task_status_lately(t, COUNTER_LATE) > late_s * task_status_lately(t, COUNTER_UPDATES);
        if (!t->is_ps || !is_long || !(lately_s(t) > 0 && part > most)) continue;
        most = part;
        worst = t;
    }
    if (!worst) return;
    snprintf(task, sizeof task, "worker/%.0f", of(worst, COUNTER_LATEST));
    if (!is_named(f, "slow_worker", task))
        findings_say(f, FINDING_WARNING,
                     "%s is waited for %.0f %% of the time, when all others have sent their "
                     "gradients: its link is slow, or it has hooks or an evaluation that they do "
                     "not have",
                     task, 100 * fmin(most, 1));
}

/* The share of a worker's time in which it waits for data; NAN: unknown. While it waits, it takes
 * no steps. */
static double data_part(const struct task_status *t)
{
    if (t->is_ps || of(t, COUNTER_STEPS) < STEPS_LEAST) return (double)NAN;
    const double all = task_status_time_lately(t);
    return all > 0 ? task_status_lately(t, COUNTER_TIME_DATA) / all : (double)NAN;
}

static void starved(const struct job_facts *j, struct findings *f)
{
    const char *const advice = "see data.prefetch, and where the files are";
    int workers = 0, starving = 0;
    double sum = 0;
    for (int i = 0; i < j->count; i++) {
        const double part = data_part(&j->tasks[i]);
        workers += isfinite(part);
        if (!(part > waits_for_data)) continue;
        starving++;
        sum += part;
    }
    if (starving && starving == workers) {
        findings_say(f, FINDING_WARNING, "workers wait for data %.0f %% of their time: %s",
                     100 * sum / starving, advice);
        return;
    }
    for (int i = 0, named = 0; i < j->count && named < STARVING_NAMED; i++) {
        const double part = data_part(&j->tasks[i]);
        if (!(part > waits_for_data)) continue;
        findings_say(f, FINDING_WARNING, "%s waits for data %.0f %% of its time: %s",
                     j->tasks[i].task, 100 * part, advice);
        named++;
    }
}

static void no_answer(const struct job_facts *j, struct findings *f)
{
    const int count = j->unanswered_count;
    for (int i = 0; i < count && i < SILENT_PS_NAMED; i++) {
        const struct unanswered *u = &j->unanswered[i];
        char waited[32] = "";
        if (u->waited_ms) snprintf(waited, sizeof waited, " (%.0f s)", (double)u->waited_ms / 1000);
        findings_say(f, FINDING_WARNING, "ps/%d does not answer%s: %s", u->ps, waited,
                     u->why[0] ? u->why : "it is busy or stopped, or its host hangs");
    }
    if (count > SILENT_PS_NAMED)
        findings_say(f, FINDING_WARNING, "%d more ps do not answer", count - SILENT_PS_NAMED);
}

static void silent(const struct job_facts *j, struct findings *f)
{
    for (int i = 0; i < j->count; i++) {
        const uint64_t age_ms = j->now_ms - j->tasks[i].heard_ms;
        if (age_ms >= SILENT_MS && !task_status_is_gone(&j->tasks[i]))
            findings_say(f, FINDING_WARNING,
                         "%s has sent nothing for %llu s: it is gone, stands still, or computes "
                         "one step or evaluation",
                         j->tasks[i].task, (unsigned long long)age_ms / 1000);
    }
}

static void loss(const struct job_facts *j, struct findings *f)
{
    for (int i = 0; i < j->count; i++)
        if (!j->tasks[i].is_ps && !isfinite(of(&j->tasks[i], COUNTER_LOSS)))
            findings_say(f, FINDING_WARNING, "the loss of %s is not finite", j->tasks[i].task);
}

static void stale(const struct job_facts *j, struct findings *f)
{
    double sum = 0, count = 0;
    int workers = 0;
    for (int i = 0; i < j->count; i++) {
        sum += task_status_lately(&j->tasks[i], COUNTER_STALENESS_SUM);
        count += task_status_lately(&j->tasks[i], COUNTER_STALENESS_COUNT);
        workers += !j->tasks[i].is_ps;
    }
    if (count >= STEPS_LEAST && sum / count > stale_for_each * workers)
        findings_say(
            f, FINDING_WARNING,
            "gradients are %.1f updates old in the mean, with %d worker%s: some are much slower "
            "than others (train.max_staleness drops what is too old)",
            sum / count, workers, workers == 1 ? "" : "s");
}

/* ---- parameter servers ---- */

static double moved_bytes(const struct task_status *t)
{
    return of(t, COUNTER_SENT_VALUES) + of(t, COUNTER_SENT_ROWS) + of(t, COUNTER_CAME_GRADIENTS) +
           of(t, COUNTER_CAME_ROWS);
}

static double held_bytes(const struct task_status *t)
{
    return of(t, COUNTER_DENSE_BYTES) + of(t, COUNTER_TABLE_BYTES);
}

/* A ps' share of bytes. of_update: bytes per update, as ps report at different times */
static double part_of(const struct task_status *t, double (*bytes)(const struct task_status *),
                      bool of_update)
{
    return bytes(t) / (of_update ? fmax(of(t, COUNTER_UPDATES), 1) : 1);
}

static void shares(const struct job_facts *j, double (*bytes)(const struct task_status *),
                   bool of_update, const char *what, struct findings *f)
{
    double all = 0, sum = 0;
    int ps = 0;
    for (int i = 0; i < j->count; i++) {
        const struct task_status *t = &j->tasks[i];
        if (!t->is_ps) continue;
        all += bytes(t);
        sum += part_of(t, bytes, of_update);
        ps++;
    }
    for (int i = 0; i < j->count && ps > 1 && all >= BYTES_LEAST; i++) {
        const struct task_status *t = &j->tasks[i];
        const double share = part_of(t, bytes, of_update) / sum;
        if (t->is_ps && share > unequal / ps)
            findings_say(
                f, FINDING_WARNING,
                "%s %s %.0f %% of the bytes of %d ps: a placement.partitioner cuts large variables",
                t->task, what, 100 * share, ps);
    }
}

static void unequal_ps(const struct job_facts *j, struct findings *f)
{
    const int before = f->count;
    shares(j, held_bytes, false, "holds", f);
    if (f->count == before) shares(j, moved_bytes, true, "moves", f);
}

static void throttled(const struct job_facts *j, struct findings *f)
{
    for (int i = 0; i < j->count; i++) {
        const struct task_status *t = &j->tasks[i];
        const double part = task_status_lately(t, COUNTER_THROTTLED) / lately_s(t);
        if (lately_s(t) > 0 && part > throttles)
            findings_say(f, FINDING_WARNING,
                         "%s is held up by its CPU quota in %.0f %% of the time: raise it "
                         "(limits.cpu, --cpus), or let it use fewer --threads",
                         t->task, 100 * fmin(part, 1));
    }
}

/* Whose clock is off is unknown if there are only two: names the one that is ahead. */
static void clocks(const struct job_facts *j, struct findings *f)
{
    double *off = malloc((size_t)(j->count + 1) * sizeof *off);
    int count = 0;
    for (int i = 0; off && i < j->count && j->unix_s > 0; i++)
        if (of(&j->tasks[i], COUNTER_CLOCK) > 0)
            off[count++] = task_status_clock_s(&j->tasks[i], j->now_ms) - j->unix_s;
    if (count) qsort(off, (size_t)count, sizeof *off, compare);
    const double usual = count ? off[(count - 1) / 2] : 0;
    free(off);
    for (int i = 0, named = 0; count && i < j->count && named < CLOCKS_NAMED; i++) {
        const struct task_status *t = &j->tasks[i];
        const double more = task_status_clock_s(t, j->now_ms) - j->unix_s - usual;
        if (!(of(t, COUNTER_CLOCK) > 0 && fabs(more) > CLOCK_OFF_S)) continue;
        findings_say(f, FINDING_WARNING,
                     "the clock of %s is %.0f s %s the others': run chrony or systemd-timesyncd on "
                     "its host, since storage may refuse its requests, and times in logs and "
                     "summaries do not line up",
                     t->task, fabs(more), more > 0 ? "ahead of" : "behind");
        named++;
    }
}

/* Names the task with most, without a sum: tasks in one process report the same counter. */
static void retries(const struct job_facts *j, struct findings *f)
{
    const struct task_status *most = NULL, *lately = NULL;
    for (int i = 0; i < j->count; i++) {
        const struct task_status *t = &j->tasks[i];
        if (!most || of(t, COUNTER_RETRIES) > of(most, COUNTER_RETRIES)) most = t;
        if (!lately ||
            task_status_lately(t, COUNTER_RETRIES) > task_status_lately(lately, COUNTER_RETRIES))
            lately = t;
    }
    if (lately && task_status_lately(lately, COUNTER_RETRIES) >= MANY_RETRIES)
        findings_say(f, FINDING_WARNING,
                     "%s had to ask storage or the coordinator again %.0f times lately: it fails, "
                     "or answers late (\"asks again\" in the log)",
                     lately->task, task_status_lately(lately, COUNTER_RETRIES));
    else if (most && of(most, COUNTER_RETRIES) > 0)
        findings_say(f, FINDING_NOTE,
                     "%s has had to ask storage or the coordinator again %.0f times (\"asks "
                     "again\" in the log)",
                     most->task, of(most, COUNTER_RETRIES));
}

/* Names only the task with least memory, as tasks of a host report the same. */
static void memory(const struct job_facts *j, struct findings *f)
{
    const struct task_status *least = NULL;
    int others = -1;
    for (int i = 0; i < j->count; i++) {
        const struct task_status *t = &j->tasks[i];
        const double left = of(t, COUNTER_MEMORY_LEFT);
        if (!(left > 0 && left < memory_left * of(t, COUNTER_MEMORY_LIMIT))) continue;
        if (!least || left < of(least, COUNTER_MEMORY_LEFT)) least = t;
        others++;
    }
    if (!least) return;
    char more[64] = "";
    if (others) snprintf(more, sizeof more, ", as %d more,", others);
    findings_say(f, FINDING_WARNING,
                 "%s%s has little memory left, %.3g of %.3g GB: without any it is killed (code "
                 "137): %s",
                 least->task, more, of(least, COUNTER_MEMORY_LEFT) / 1e9,
                 of(least, COUNTER_MEMORY_LIMIT) / 1e9,
                 least->is_ps ? "more ps share it (dtrain scale), evict_after_steps bounds tables"
                              : "a smaller data.prefetch or batch, data that are streamed");
}

static void busy_ps(const struct job_facts *j, struct findings *f)
{
    for (int i = 0; i < j->count; i++) {
        const struct task_status *t = &j->tasks[i];
        const double part = task_status_lately(t, COUNTER_TIME_APPLY) / lately_s(t);
        if (t->is_ps && lately_s(t) > 0 && part > busy)
            findings_say(
                f, FINDING_WARNING,
                "%s updates values %.0f %% of its time: more ps, or more cores for it, would help",
                t->task, 100 * part);
    }
}

static void dropped(const struct job_facts *j, struct findings *f)
{
    for (int i = 0; i < j->count; i++) {
        const struct task_status *t = &j->tasks[i];
        const double lost = task_status_lately(t, COUNTER_DROPPED_STALE),
                     all = lost + task_status_lately(t, COUNTER_UPDATES);
        if (t->is_ps && t->index == 0 && all >= STEPS_LEAST && lost > drops * all)
            findings_say(f, FINDING_WARNING,
                         "%.0f %% of the gradients came too late and were dropped",
                         100 * lost / all);
    }
}

/* ": worker/0": names workers without reports, if these are all that are missing */
static void name_away(const struct job_facts *j, int workers, int away, char *ret, size_t room)
{
    bool *is_known = calloc((size_t)workers + 1, sizeof *is_known);
    int unknown = 0, named = 0;
    *ret = '\0';
    if (!is_known) return;
    for (int i = 0; i < j->count; i++)
        if (!j->tasks[i].is_ps && j->tasks[i].index < workers) is_known[j->tasks[i].index] = true;
    for (int i = 0; i < workers; i++) unknown += !is_known[i];
    for (int i = 0; i < workers && unknown == away && named < AWAY_NAMED; i++) {
        const size_t used = strlen(ret);
        if (is_known[i]) continue;
        snprintf(ret + used, room - used, "%sworker/%d", named++ ? ", " : ": ", i);
    }
    free(is_known);
}

/* Compares with the number of ps that workers report. */
static void not_shown(const struct job_facts *j, struct findings *f)
{
    double all = 0, shown = 0;
    if (!j->all_asked) return;
    for (int i = 0; i < j->count; i++) {
        const struct task_status *t = &j->tasks[i];
        shown += t->is_ps;
        if (!t->is_ps && of(t, COUNTER_PEERS) > all) all = of(t, COUNTER_PEERS);
    }
    shown += j->unanswered_count;
    if (shown > 0 && shown < all)
        findings_say(
            f, FINDING_WARNING,
            "nothing is known of %.0f of %.0f ps: --ps_hosts names too few, or they do not answer",
            all - shown, all);
}

/* A task is connected but has never reported anything. */
static void unheard(const struct job_facts *j, const struct task_status *first, struct findings *f)
{
    const double all = of(first, COUNTER_PEERS);
    char names[AWAY_NAMED * STATUS_NAME_MAX];
    int known = 0;
    for (int i = 0; i < j->count; i++) known += !j->tasks[i].is_ps;
    const bool is_late = of(first, COUNTER_PEERS_STEADY) * 1000 >= SILENT_MS;
    if (!(known < all) || all > TASKS_LOOKED_AT || !is_late) return;
    if (of(first, COUNTER_PEERS_UP) < all) return;
    name_away(j, (int)all, (int)all - known, names, sizeof names);
    findings_say(
        f, FINDING_WARNING,
        "nothing has been heard of %.0f of %.0f workers%s, connected for %.0f s (in a first "
        "step, stopped, or their hosts hang)",
        all - known, all, names, of(first, COUNTER_PEERS_STEADY));
}

/* Workers that have left, as they were allowed to */
static int gone(const struct job_facts *j)
{
    int count = 0;
    for (int i = 0; i < j->count; i++) count += task_status_is_gone(&j->tasks[i]);
    return count;
}

static void missing(const struct job_facts *j, struct findings *f)
{
    not_shown(j, f);
    for (int i = 0; i < j->count; i++) {
        const struct task_status *t = &j->tasks[i];
        const double all = of(t, COUNTER_PEERS),
                     away = all - of(t, COUNTER_PEERS_UP) - (t->is_ps ? gone(j) : 0);
        char names[AWAY_NAMED * STATUS_NAME_MAX] = "";
        if (t->is_ps && t->index == 0) unheard(j, t, f);
        if (!(away > 0) || (t->index && t->is_ps)) continue;
        if (t->is_ps && all <= TASKS_LOOKED_AT)
            name_away(j, (int)all, (int)away, names, sizeof names);
        findings_say(f, FINDING_WARNING, "%s is not connected to %.0f of %.0f %s%s", t->task, away,
                     all, t->is_ps ? "workers" : "ps", names);
    }
}

/* Names the task that lost most connections: all others lose those to a task that restarts. */
static void unstable(const struct job_facts *j, struct findings *f)
{
    const struct task_status *most = NULL;
    for (int i = 0; i < j->count; i++) {
        const struct task_status *t = &j->tasks[i];
        const double lately = task_status_lately(t, COUNTER_PEERS_LOST);
        if (lately < LOST_LATELY || of(t, COUNTER_PEERS_LOST) < LOST_LEAST) continue;
        if (!most || lately > task_status_lately(most, COUNTER_PEERS_LOST)) most = t;
    }
    if (most)
        findings_say(
            f, FINDING_WARNING,
            "%s has lost its %s %.0f times, %.0f of them lately: tasks end and are started "
            "again, or links break (dtrain logs says which)",
            most->task, most->is_ps ? "workers" : "ps", of(most, COUNTER_PEERS_LOST),
            task_status_lately(most, COUNTER_PEERS_LOST));
}

static void without(const struct job_facts *j, struct findings *f)
{
    const struct task_status *t = tasks_chief(j->tasks, j->count);
    if (t && of(t, COUNTER_WITHOUT_PS) > 0)
        findings_say(f, FINDING_WARNING,
                     "the job continues without %.0f ps, since others hold the same: if they are "
                     "lost, too, it returns to its last checkpoint; start it again",
                     of(t, COUNTER_WITHOUT_PS));
}

static void queue(const struct job_facts *j, struct findings *f)
{
    for (int i = 0; i < j->count; i++)
        if (of(&j->tasks[i], COUNTER_QUEUED) > QUEUED_LEAST)
            findings_say(f, FINDING_WARNING,
                         "%.0f MB wait to leave %s: its peers, or the network, are slow",
                         of(&j->tasks[i], COUNTER_QUEUED) / 1e6, j->tasks[i].task);
}

/* ---- checkpoints ---- */

static void checkpoints(const struct job_facts *j, struct findings *f)
{
    const struct task_status *t = tasks_chief(j->tasks, j->count);
    if (!t) return;
    const double last_s = of(t, COUNTER_CHECKPOINT_TIME), up_s = of(t, COUNTER_UPTIME),
                 now_s = j->unix_s > 0 ? task_status_clock_s(t, j->now_ms) : 0,
                 since_s = last_s > 0 && now_s - last_s < up_s ? now_s - last_s : up_s;
    if (of(t, COUNTER_CHECKPOINT_FAILURES) > 0)
        findings_say(f, FINDING_WARNING, "%.0f checkpoints have failed since %s came",
                     of(t, COUNTER_CHECKPOINT_FAILURES), t->task);
    if (of(t, COUNTER_DELTA_FAILURES) > 0)
        findings_say(f, FINDING_WARNING,
                     "%.0f deltas for servers (train.publish) have failed since %s came",
                     of(t, COUNTER_DELTA_FAILURES), t->task);
    if (of(t, COUNTER_CHECKPOINT_SECONDS) > LONG_CHECKPOINT_S)
        findings_say(
            f, FINDING_WARNING,
            "the last checkpoint took %.0f s: where checkpoint_dir lies is slow (dtrain doctor "
            "with the spec measures it)",
            of(t, COUNTER_CHECKPOINT_SECONDS));
    if (of(t, COUNTER_SAVING) > LONG_CHECKPOINT_S)
        findings_say(
            f, FINDING_WARNING,
            "the checkpoint being made has taken %.0f s so far: a ps that \"writes a checkpoint\" "
            "has a slow disk, or one is away (--save_timeout ends it)",
            of(t, COUNTER_SAVING));
    const double writing_s = of(t, COUNTER_CHECKPOINT_SECONDS) * of(t, COUNTER_CHECKPOINTS);
    if (of(t, COUNTER_CHECKPOINTS) >= CHECKPOINTS_LEAST && writing_s > always_saves * up_s)
        findings_say(f, FINDING_WARNING,
                     "a checkpoint takes %.3g s, and one is begun every %.3g s: where "
                     "checkpoint_dir lies is slow, or train.save_checkpoint_secs is short",
                     of(t, COUNTER_CHECKPOINT_SECONDS), up_s / of(t, COUNTER_CHECKPOINTS));
    if (since_s < OLD_CHECKPOINT_S) return;
    if (of(t, COUNTER_SAVES_TO))
        findings_say(f, FINDING_WARNING,
                     "no checkpoint for %.0f min: see train.save_checkpoint_secs", since_s / 60);
    else
        findings_say(f, FINDING_WARNING, "nothing is saved: the spec has no train.checkpoint_dir");
}

/* ---- events ---- */

static void begun_anew(const struct task_status *t, struct findings *f)
{
    const double set = of(t, COUNTER_SETTINGS), others = of(t, COUNTER_GENERATION) - 1 - set;
    if (set > 0)
        findings_say(f, FINDING_NOTE, "all tasks have begun anew %.0f times for dtrain set", set);
    if (others > 0)
        findings_say(
            f, FINDING_NOTE,
            "all tasks have begun anew %.0f times: after a loss, for dtrain scale, or to take "
            "in a ps that is back",
            others);
}

static void events(const struct job_facts *j, struct findings *f)
{
    for (int i = 0; i < j->count; i++) {
        const struct task_status *t = &j->tasks[i];
        if (!t->is_ps || t->index) continue;
        begun_anew(t, f);
        if (of(t, COUNTER_TERM) > 0)
            findings_say(f, FINDING_NOTE, "another worker has come to lead %.0f times",
                         of(t, COUNTER_TERM));
        if (of(t, COUNTER_EVICTIONS) > 0)
            findings_say(f, FINDING_NOTE, "workers were gone for too long %.0f times",
                         of(t, COUNTER_EVICTIONS));
        if (of(t, COUNTER_ROWS_LOST) > 0 || of(t, COUNTER_ROWS_TWICE) > 0)
            findings_say(f, FINDING_NOTE,
                         "of epochs that are over %.0f rows are missing, %.0f counted twice",
                         of(t, COUNTER_ROWS_LOST), of(t, COUNTER_ROWS_TWICE));
    }
    for (int i = 0; i < j->count; i++)
        if (of(&j->tasks[i], COUNTER_REFUSED) > 0)
            findings_say(f, FINDING_NOTE, "%s refused %.0f connections: its log says why",
                         j->tasks[i].task, of(&j->tasks[i], COUNTER_REFUSED));
}

static const struct {
    const char *name, *help;
    void (*apply)(const struct job_facts *, struct findings *);
} rules[] = {
    {"no_answer", "a ps does not answer", no_answer},
    {"silent", "a task has sent nothing for 30 s", silent},
    {"missing", "tasks are not connected, or not asked", missing},
    {"unstable", "a task loses connections again and again", unstable},
    {"without", "the job continues without a ps whose values another one has, too", without},
    {"loss", "a loss is not finite", loss},
    {"slow_worker", "a worker's steps take 1.5 times the median, and 1 ms more, and why",
     slow_worker},
    {"late_worker", "synchronous rounds wait for one worker more than 30 % of the time",
     late_worker},
    {"starved", "workers, or one, wait for data more than 30 % of the time", starved},
    {"unequal_ps", "a ps holds, or moves, 1.4 times its share of the bytes", unequal_ps},
    {"memory", "less than 10 % of the memory of a container or host is left", memory},
    {"throttled", "a task is held up by its CPU quota more than 25 % of the time", throttled},
    {"clocks", "the clock of a task is 10 s off those of the others", clocks},
    {"retries", "storage or the coordinator had to be asked again", retries},
    {"busy_ps", "a ps updates values more than 70 % of its time", busy_ps},
    {"queue", "more than 64 MB wait to leave a task", queue},
    {"dropped", "more than 5 % of the gradients are dropped", dropped},
    {"stale", "gradients are older than twice the number of workers", stale},
    {"checkpoints", "checkpoints fail, take more than 60 s or half of the time, or none for 30 min",
     checkpoints},
    {"events", "restarts, elections, evictions, lost rows, refused connections", events},
};

int rules_apply(const struct job_facts *j, struct finding ret[FINDINGS_MAX])
{
    struct finding found[FINDINGS_MAX];
    struct findings f = {.at = found, .most = FINDINGS_MAX};
    int count = 0;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        f.rule = rules[i].name;
        rules[i].apply(j, &f);
    }
    for (int level = FINDING_WARNING; level >= FINDING_NOTE; level--)
        for (int i = 0; i < f.count; i++)
            if ((int)found[i].level == level) ret[count++] = found[i];
    return count;
}

void rules_help(FILE *out)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        help_row(out, rules[i].name, rules[i].help, HELP_SHORT_NAMES);
}
