/* checks.c - what must hold when a job has ended: see cluster.h. */
#include "tests/world/cluster.h"

#include "tests/world/files.h"
#include "tests/world/store.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARNINGS_MOST = 40 }; /* of a life, of some minutes */

#define COUNT(ARRAY) (int)(sizeof(ARRAY) / sizeof *(ARRAY))

/* Of an epoch: rounds that ended without somebody leave batches for more steps. */
static bool may_take_longer(const struct job_plan *plan)
{
    return plan->is_sync && job_plan_has_epochs(plan) &&
           (job_plan_asks(plan) || !job_plan_is_steady(plan));
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
    double count, least, most, mean;
};

static struct range range_of(const struct cluster *cluster, const char *variable)
{
    const char *folder = job_folder(cluster->plan, cluster->folder);
    const char *const words[] = {"dtrain", "checkpoint", "show", folder, variable};
    struct range ret = {0};
    int code;
    const char *said = cluster_ask(&code, COUNT(words), words), *from = strstr(said, "\nfrom ");
    const char *count = strstr(said, " elements, ");
    while (count && count > said && count[-1] != '\n') count--;
    if (code || !from || !count || sscanf(count, "%lf elements", &ret.count) != 1 ||
        sscanf(from, "\nfrom %lf to %lf, mean %lf", &ret.least, &ret.most, &ret.mean) != 3)
        machine_fail("cannot read %s: %s", variable, said);
    return ret;
}

/* At last: each has written a shard. */
static int ps_of_checkpoint(const struct cluster *cluster)
{
    const char *folder = job_folder(cluster->plan, cluster->folder);
    const char *const words[] = {"dtrain", "checkpoint", "verify", folder};
    int code, ret = 0;
    const char *said = cluster_ask(&code, COUNT(words), words), *in = strstr(said, " in ");
    if (!in || sscanf(in, " in %d shard", &ret) != 1 || ret < 1 ||
        ret > (cluster->plan->is_alone ? 1 : cluster->plan->ps))
        machine_fail("no number of shards: %s", said);
    return ret;
}

/* A table that grows has a part on each ps. */
static struct range range_of_rows(const struct cluster *cluster)
{
    struct range all = {.least = 1e30, .most = -1e30};
    char name[64];
    if (!cluster->plan->grows) return range_of(cluster, "rows/embedding_weights");
    for (int i = 0; i < ps_of_checkpoint(cluster); i++) {
        snprintf(name, sizeof name, "rows/embedding_weights/part_%05d/rows", i);
        const struct range part = range_of(cluster, name);
        if (part.least < all.least) all.least = part.least;
        if (part.most > all.most) all.most = part.most;
        all.mean += part.mean * part.count;
        all.count += part.count;
    }
    all.mean /= all.count;
    return all;
}

/* What ps/0 has counted of the rows (core/cluster/role/coverage.h). */
struct counted {
    double first, lost, total; /* epochs that are closed; rows */
};

static struct counted counted_of(const struct cluster *cluster)
{
    const char *folder = job_folder(cluster->plan, cluster->folder);
    const char *const words[] = {"dtrain", "checkpoint", "show", folder, "dtrain/ledger/rows"};
    struct counted ret = {0};
    int code;
    const char *said = cluster_ask(&code, COUNT(words), words), *values = strstr(said, "values: ");
    if (code || !values ||
        sscanf(values, "values: %*f %*f %*f %*f %lf %*f %lf %*f %lf", &ret.first, &ret.lost,
               &ret.total) != 3)
        machine_fail("cannot read what was counted: %s", said);
    return ret;
}

/* Rows count themselves: what was counted is what was used. */
static void check_counted(const struct cluster *cluster, const struct range *rows, double use)
{
    const struct counted counted = counted_of(cluster);
    const double used = rows->mean * rows->count / use, least = rows->least / use;
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

/* Each gradient is in each variable once; of the batches that they were of no row was used two
 * times more than another. */
static void check_counts(const struct cluster *cluster, int last_step)
{
    enum { BATCH = 4 };
    static const char *const variables[] = {"a/kernel", "a/bias", "b/kernel", "b/bias"};
    const struct job_plan *plan = cluster->plan;
    for (int i = 0; i < COUNT(variables); i++) {
        const struct range range = range_of(cluster, variables[i]);
        const double off = range.mean - last_step;
        if (off > 0.01 || off < -0.01)
            machine_fail("%s has %g gradients, and the step is %d", variables[i], range.mean,
                         last_step);
    }
    const struct range rows = range_of_rows(cluster);
    const double off = rows.mean * rows.count - last_step;
    const double use = 1.0 / (BATCH * job_plan_gradients(plan));
    if (off > 0.01 || off < -0.01)
        machine_fail("rows have %g gradients, and the step is %d", rows.mean * rows.count,
                     last_step);
    /* others count for more then */
    const bool is_uneven = plan->is_large || job_plan_asks(plan) || visits_resize(plan) ||
                           (plan->is_sync && !job_plan_is_steady(plan));
    if (is_uneven) return;
    if (rows.most - rows.least > 2.01 * use)
        machine_fail("a row was used %g times, and another one %g", rows.most / use,
                     rows.least / use);
    check_counted(cluster, &rows, use);
}

static bool is_known(const char *name)
{
    static const char *const known[] = {"checkpoint",
                                        "measured.json",
                                        "last_spec.json",
                                        "model.ckpt-*.index",
                                        "model.ckpt-*.data-*-of-*",
                                        "events.out.*",
                                        ".token",
                                        "rows-*",
                                        "best",
                                        "eval"};
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
        if (!is_known(name) && strncmp(name, "eval/", 5) != 0 &&
            !job_plan_has(cluster->plan, MISHAP_STORE))
            machine_fail("%s is left at the server", name);
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
        job_plan_has(cluster->plan, MISHAP_DARK) || job_plan_has_disks(cluster->plan);
    for (int i = 0; folder && i < folder->entries.count; i++)
        if (!is_known(folder->entries.at[i].name) && !may_leave)
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

void cluster_check(const struct cluster *cluster)
{
    const int last_step = check_whole(cluster);
    check_leftovers(cluster);
    check_lead(cluster);
    visits_check(cluster);
    check_logs(cluster);
    if (cluster->plan->model == MODEL_COUNTS && !machine.failed) check_counts(cluster, last_step);
}

/* What a worker had given to some ps only when it was lost is computed once more, from other
 * values, and it says so. */
static bool says_that_bits_differ(const struct cluster *cluster)
{
    for (int i = 0; i < machine.process_count; i++) {
        const struct process *life = machine.processes[i];
        if (life->said && life->started_ns >= cluster->started_ns &&
            strstr(life->said, "from here on the bits are not those of an undisturbed run"))
            return true;
    }
    return false;
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
