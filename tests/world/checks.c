/* checks.c - what must hold when a job has ended: see cluster.h. */
#include "tests/world/cluster.h"

#include "tests/world/files.h"
#include "tests/world/published.h"
#include "tests/world/store.h"

#include <fnmatch.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { WARNINGS_MOST = 40 }; /* of a life, of some minutes */

#define COUNT(ARRAY) (int)(sizeof(ARRAY) / sizeof *(ARRAY))

/* Of an epoch: rounds that ended without somebody leave batches for more steps. Of num_steps: they
 * may be counted anew. */
static bool may_take_longer(const struct job_plan *plan)
{
    return job_plan_counts_from_start(plan) || (plan->is_sync && job_plan_has_epochs(plan) &&
                                                (job_plan_asks(plan) || !job_plan_is_steady(plan)));
}

/* Its step. */
static int check_whole(const struct cluster *cluster)
{
    static const char words_of_step[] = ": ok, global step ";
    const struct job_plan *plan = cluster->plan;
    const char *folder = job_folder(plan, cluster->folder);
    const char *const words[] = {"dtrain", "checkpoint", "verify", folder};
    int code;
    const char *said = cluster_ask(&code, COUNT(words), words), *step = strstr(said, words_of_step);
    const int ret = step ? atoi(step + sizeof words_of_step - 1) : -1;
    const bool is_right = may_take_longer(plan) ? ret >= plan->last_step : ret == plan->last_step;
    if (code || !is_right) machine_fail("the last checkpoint is not right: %s", said);
    return ret;
}

struct range {
    double count, least, most, sum;
};

static void widen(struct range *range, const struct tensor *tensor)
{
    for (int64_t i = 0; i < tensor->count; i++) {
        const double value = tensor_at(tensor, i);
        if (!range->count || value < range->least) range->least = value;
        if (!range->count || value > range->most) range->most = value;
        range->sum += value;
        range->count++;
    }
}

static bool is_part_of_table(const char *name)
{
    int end = 0;
    sscanf(name, TABLE "/part_%*5d/rows%n", &end);
    return strcmp(name, TABLE) == 0 || (end && !name[end]);
}

/* A table that grows has a part on each ps. */
static struct range range_of_rows(const struct tensors *tensors)
{
    struct range all = {0};
    for (int i = 0; i < tensors->count; i++)
        if (is_part_of_table(tensors->at[i].name)) widen(&all, &tensors->at[i]);
    return all;
}

/* What ps/0 has counted of the rows (core/cluster/role/coverage.h). */
struct counted {
    double first, lost, total; /* epochs that are closed; rows */
};

static struct counted counted_of(const struct tensors *tensors)
{
    enum { FIRST = 4, LOST = 6, TOTAL = 8 };
    const struct tensor *t = tensors_find(tensors, "dtrain/ledger/rows");
    if (!t || t->count <= TOTAL) machine_fail("what was counted is not there");
    return machine.failed
               ? (struct counted){0}
               : (struct counted){tensor_at(t, FIRST), tensor_at(t, LOST), tensor_at(t, TOTAL)};
}

/* Rows count themselves: what was counted is what was used. */
static void check_counted(const struct cluster *cluster, const struct tensors *tensors,
                          const struct range *rows, double use)
{
    const struct counted counted = counted_of(tensors);
    const double used = rows->sum / use, least = rows->least / use;
    if (fabs(used - counted.total) > 0.02 / use)
        machine_fail("rows were used %g times, and %g are counted", used, counted.total);
    if (least < counted.first - counted.lost - 0.01)
        machine_fail("a row was used %g times in %g epochs, of which %g are lost", least,
                     counted.first, counted.lost);
    if (job_plan_has_epochs(cluster->plan) && !counted.lost &&
        fabs(least - rows->most / use) > 0.01)
        machine_fail("at the end of epochs a row was used %g times, and another one %g", least,
                     rows->most / use);
}

/* After so many steps, each of which adds one. */
static double average_of(const struct job_plan *plan, int step)
{
    double ret = 0;
    for (int n = 1; n <= step; n++) {
        const double grown = (1.0 + n) / (10.0 + n), most = grown < 0.99 ? grown : 0.99;
        const double kept = plan->training.average == AVERAGE_FIXED ? 0.9 : most;
        ret += (n - ret) * (1 - kept);
    }
    return ret;
}

static void check_variable(const struct tensors *tensors, const char *name, double wanted)
{
    const struct tensor *tensor = tensors_find(tensors, name);
    if (!tensor) machine_fail("%s is not there", name);
    for (int64_t i = 0; tensor && i < tensor->count; i++)
        if (fabs(tensor_at(tensor, i) - wanted) > 0.01)
            machine_fail("%s has %g gradients, and not %g", name, tensor_at(tensor, i), wanted);
}

void counts_check_dense(const struct job_plan *plan, const struct tensors *tensors, int step)
{
    static const char *const variables[] = {"a/kernel", "a/bias", "b/kernel", "b/bias"};
    char name[TENSOR_NAME_BYTES];
    const int frozen = plan->training.frozen;
    for (int i = 0; i < COUNT(variables); i++) {
        const bool is_frozen = frozen == FROZEN_ALL || (frozen && variables[i][0] == 'b');
        check_variable(tensors, variables[i], is_frozen ? 0 : step);
        snprintf(name, sizeof name, "%s/ExponentialMovingAverage", variables[i]);
        if (plan->training.average && !is_frozen)
            check_variable(tensors, name, average_of(plan, step));
    }
}

/* What the run says of its rows at its end, where that is not that each was used once. */
struct said {
    unsigned long long used, twice, lost;
};
static struct said said_of_rows(const struct cluster *cluster)
{
    static const char words[] = "rows of the run: ";
    struct said ret = {0};
    for (int i = 0; i < cluster->count; i++) {
        const struct process *life = cluster->tasks[i].life;
        const char *at = life && life->said ? strstr(life->said, words) : NULL;
        if (at)
            sscanf(at + sizeof words - 1, "%llu used, %llu of them twice, %llu lost", &ret.used,
                   &ret.twice, &ret.lost);
    }
    return ret;
}

/* Of a worker that died between two ps, and came no more: each row was used once in each epoch, or
 * is said not to have been. */
static void check_gone(const struct cluster *cluster, const struct tensors *tensors, double use)
{
    const struct said said = said_of_rows(cluster);
    double lacking = 0, more = 0;
    for (int i = 0; i < tensors->count; i++) {
        const struct tensor *t = &tensors->at[i];
        for (int64_t k = 0; k < t->count && is_part_of_table(t->name); k++) {
            const double apart = tensor_at(t, k) / use - cluster->plan->training.epochs;
            if (apart < 0) lacking -= apart;
            if (apart > 0) more += apart;
        }
    }
    if (lacking > (double)said.lost + 0.01 || more > (double)said.twice + 0.01)
        machine_fail("rows lack %g uses and have %g more, and %llu are said to be lost, %llu twice",
                     lacking, more, said.lost, said.twice);
    if (said.lost + said.twice > COUNTS_BATCH)
        machine_fail("one worker is gone, and %llu rows are lost, %llu twice", said.lost,
                     said.twice);
}

/* Each gradient is in each variable once; of the batches that they were of no row was used two
 * times more than another. */
static void check_counts(const struct cluster *cluster, int last_step)
{
    enum { BATCH = COUNTS_BATCH };
    static struct tensors tensors;
    const struct job_plan *plan = cluster->plan;
    tensors_read(job_folder(plan, cluster->folder), &tensors);
    if (machine.failed) return;
    if (job_plan_has(plan, MISHAP_GONE)) {
        check_gone(cluster, &tensors, 1.0 / BATCH);
        return;
    }
    counts_check_dense(plan, &tensors, last_step);
    const struct range rows = range_of_rows(&tensors);
    const double use = 1.0 / (BATCH * job_plan_gradients(plan));
    if (fabs(rows.sum - last_step) > 0.01)
        machine_fail("rows have %g gradients, and the step is %d", rows.sum, last_step);
    if (job_plan_follows(plan) && rows.most - rows.least > 0.01 * use)
        machine_fail("a row that came was used %g times, and another one %g", rows.most / use,
                     rows.least / use);
    /* others count for more then */
    const bool is_uneven = plan->is_large || job_plan_asks(plan) || visits_resize(plan) ||
                           (plan->is_sync && !job_plan_is_steady(plan));
    if (is_uneven || job_plan_follows(plan)) return;
    if (rows.most - rows.least > 2.01 * use)
        machine_fail("a row was used %g times, and another one %g", rows.most / use,
                     rows.least / use);
    check_counted(cluster, &tensors, &rows, use);
}

/* What they read has their lease until it is over, or the checkpoint goes. */
static bool some_were_killed(const struct cluster *cluster)
{
    for (int i = 0; i < machine.process_count; i++)
        if (machine.processes[i]->started_ns >= cluster->started_ns &&
            machine.processes[i]->killed_by == SIGKILL)
            return true;
    return false;
}

static bool is_known(const struct cluster *cluster, const char *name)
{
    static const char *const known[] = {"checkpoint",
                                        "measured.json",
                                        "last_spec.json",
                                        "settings.json",
                                        "model.ckpt-*.index",
                                        "model.ckpt-*.data-*-of-*",
                                        "events.out.*",
                                        ".token",
                                        ".ended",
                                        "rows-*",
                                        "best",
                                        "published.json",
                                        "followed",
                                        "eval"};
    if (strstr(name, ".delta-")) return published_names(cluster, name);
    if (fnmatch(".lease-*", name, 0) == 0) return some_were_killed(cluster);
    for (int i = 0; i < COUNT(known); i++)
        if (fnmatch(known[i], name, 0) == 0) return true;
    return false;
}

static void check_left_objects(const struct cluster *cluster)
{
    char prefix[64];
    const char *name;
    snprintf(prefix, sizeof prefix, "bucket/%s/", cluster->folder);
    for (int i = 0; (name = store_name(prefix, i)); i++)
        if (!is_known(cluster, name) && strncmp(name, "eval/", 5) != 0 &&
            !job_plan_has(cluster->plan, MISHAP_STORE))
            machine_fail("%s is left at the server", name);
}

/* A disk that is full lets go of names. */
static bool removals_may_fail(const struct job_plan *plan)
{
    for (enum mishap_kind kind = MISHAP_DISK; kind <= MISHAP_STORE; kind++)
        if (kind != MISHAP_DISK + (int)DISK_FULL && job_plan_has(plan, kind)) return true;
    return false;
}

/* That a name is gone may be lost with the power, or fail, and nobody looks again after the end. */
static void check_leftovers(const struct cluster *cluster)
{
    if (cluster->plan->is_url) {
        check_left_objects(cluster);
        return;
    }
    char path[FILE_PATH_BYTES];
    snprintf(path, sizeof path, "/disk/%s", cluster->folder);
    const struct inode *folder = files_find(path, NULL, NULL);
    const bool may_leave =
        job_plan_has(cluster->plan, MISHAP_DARK) || removals_may_fail(cluster->plan);
    for (int i = 0; folder && i < folder->entries.count; i++)
        if (!is_known(cluster, folder->entries.at[i].name) && !may_leave)
            machine_fail("%s is left in the folder", folder->entries.at[i].name);
}

/* Who lives and is reached leads on, whatever its disks do. */
static void check_lead(const struct cluster *cluster)
{
    const struct job_plan *plan = cluster->plan;
    if (plan->blow_count) return;
    for (int i = 0; i < plan->mishap_count; i++)
        if (plan->mishaps[i].kind != MISHAP_SLOW && plan->mishaps[i].kind != MISHAP_RESET) return;
    const char *said = cluster->tasks[0].life->said,
               *gone = said ? strstr(said, " is gone for ") : NULL;
    if (gone) machine_fail("the chief was there:%.40s", gone);
}

/* What fails again and again is told now and then. */
static void check_logs(const struct cluster *cluster)
{
    for (int i = 0; i < machine.process_count; i++) {
        const struct process *life = machine.processes[i];
        int warnings = 0;
        for (const char *at = life->said; at && (at = strstr(at, " WARNING: ")); at++) warnings++;
        if (life->started_ns >= cluster->started_ns && warnings > WARNINGS_MOST)
            machine_fail("%s warns %d times", life->name, warnings);
    }
}

/* All end as the one does that never has its data, or do without it: all of them. true: the first.
 */
static bool has_lacked(const struct cluster *cluster)
{
    const struct mishap *lack = job_plan_lack(cluster->plan);
    const struct process *first = cluster->tasks[0].life;
    if (!lack || cluster->tasks[lack->task].life->code != 2) return false;
    for (int i = 0; i < cluster->count; i++) {
        const struct process *life = cluster->tasks[i].life;
        if (i != lack->task && life->code != first->code)
            machine_fail("%s ended with %d, and %s with %d", life->name, life->code, first->name,
                         first->code);
    }
    return first->code == 2;
}

/* All have heard of it. */
static bool has_torn(const struct cluster *cluster)
{
    for (int i = 0; i < cluster->count; i++)
        if (!cluster_is_torn(cluster, cluster->tasks[i].life)) return false;
    return true;
}

/* What one of two held the other one has, and nobody waits for it long. */
static void check_held(const struct cluster *cluster)
{
    if (!job_plan_has(cluster->plan, MISHAP_HELD)) return;
    for (int i = 0; i < machine.process_count; i++) {
        const struct process *life = machine.processes[i];
        const char *at = life->said;
        if (life->started_ns < cluster->started_ns) continue;
        if (at && strstr(at, " to answer (--step_timeout"))
            machine_fail("%s waits for a ps that had a follower", life->name);
        while (at && (at = strstr(at, " came back empty: all go back to step "))) {
            int step = 0, lost = 0;
            sscanf(at++, " came back empty: all go back to step %d, %d", &step, &lost);
            if (lost) machine_fail("%d steps are lost with a ps that had a follower", lost);
        }
    }
}

void cluster_check(const struct cluster *cluster)
{
    if (has_lacked(cluster) || has_torn(cluster)) return;
    const int last_step = check_whole(cluster);
    check_leftovers(cluster);
    check_lead(cluster);
    check_held(cluster);
    visits_check(cluster);
    check_logs(cluster);
    published_check(cluster, last_step);
    if (cluster->plan->model == MODEL_COUNTS && !machine.failed) check_counts(cluster, last_step);
}

bool cluster_says(const struct cluster *cluster, const char *words)
{
    for (int i = 0; i < machine.process_count; i++) {
        const struct process *life = machine.processes[i];
        if (life->started_ns >= cluster->started_ns && life->said && strstr(life->said, words))
            return true;
    }
    return false;
}

/* What a worker had given to some ps only when it was lost is computed once more, from other
 * values, and it says so. */
static bool says_that_bits_differ(const struct cluster *cluster)
{
    return cluster_says(cluster, "from here on the bits are not those of an undisturbed run");
}

/* Ledgers name lives, which are never the same. */
void cluster_compare(const struct cluster *a, const struct cluster *b)
{
    if (says_that_bits_differ(a)) return;
    const char *const words[] = {"dtrain", "checkpoint", "diff", job_folder(a->plan, a->folder),
                                 job_folder(b->plan, b->folder)};
    int code;
    const char *line = cluster_ask(&code, COUNT(words), words);
    for (const char *end; (end = strchr(line, '\n')); line = end + 1)
        if (strncmp(line, "dtrain/ledger/", strlen("dtrain/ledger/")) && strncmp(line, "equal:", 6))
            machine_fail("differs from an undisturbed run: %.*s", (int)(end - line), line);
}
