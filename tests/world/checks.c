/* checks.c - what must hold when a job has ended: see cluster.h. */
#include "tests/world/cluster.h"

#include "tests/world/files.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(ARRAY) (int)(sizeof(ARRAY) / sizeof *(ARRAY))

static void check_whole(const struct cluster *cluster)
{
    const char *const words[] = {"dtrain", "checkpoint", "verify", cluster->folder};
    char wanted[64];
    int code;
    const char *said = cluster_ask(&code, COUNT(words), words);
    snprintf(wanted, sizeof wanted, "ok, global step %d,", cluster->plan->last_step);
    if (code || !strstr(said, wanted)) machine_fail("the last checkpoint is not right: %s", said);
}

struct range {
    double least, most, mean;
};

static struct range range_of(const struct cluster *cluster, const char *variable)
{
    const char *const words[] = {"dtrain", "checkpoint", "show", cluster->folder, variable};
    struct range ret = {0};
    int code;
    const char *said = cluster_ask(&code, COUNT(words), words), *from = strstr(said, "\nfrom ");
    if (code || !from ||
        sscanf(from, "\nfrom %lf to %lf, mean %lf", &ret.least, &ret.most, &ret.mean) != 3)
        machine_fail("cannot read %s: %s", variable, said);
    return ret;
}

/* Each gradient is in each variable once; of the batches that they were of no row was used two
 * times more than another. */
static void check_counts(const struct cluster *cluster)
{
    enum { BATCH = 4, ROWS = 48 };
    static const char *const variables[] = {"a/kernel", "a/bias", "b/kernel", "b/bias"};
    const struct job_plan *plan = cluster->plan;
    for (int i = 0; i < COUNT(variables); i++) {
        const struct range range = range_of(cluster, variables[i]);
        const double off = range.mean - plan->last_step;
        if (off > 0.01 || off < -0.01)
            machine_fail("%s has %g gradients, and the step is %d", variables[i], range.mean,
                         plan->last_step);
    }
    const struct range rows = range_of(cluster, "rows/embedding_weights");
    const double off = rows.mean * ROWS - plan->last_step;
    const double use = 1.0 / (BATCH * (plan->is_sync ? plan->workers : 1));
    if (off > 0.01 || off < -0.01)
        machine_fail("rows have %g gradients, and the step is %d", rows.mean * ROWS,
                     plan->last_step);
    if (rows.most - rows.least > 2.01 * use)
        machine_fail("a row was used %g times, and another one %g", rows.most / use,
                     rows.least / use);
}

static bool is_known(const char *name)
{
    static const char *const known[] = {"checkpoint",
                                        "measured.json",
                                        "last_spec.json",
                                        "model.ckpt-*.index",
                                        "model.ckpt-*.data-*-of-*",
                                        "events.out.*",
                                        ".token"};
    for (int i = 0; i < COUNT(known); i++)
        if (fnmatch(known[i], name, 0) == 0) return true;
    return false;
}

static bool was_dark(const struct cluster *cluster)
{
    bool ret = false;
    for (int i = 0; i < cluster->plan->mishap_count; i++)
        ret |= cluster->plan->mishaps[i].kind == MISHAP_DARK;
    return ret;
}

/* That a name is gone may be lost with the power, and nobody looks again after the end. */
static void check_leftovers(const struct cluster *cluster)
{
    char path[FILE_PATH_BYTES];
    snprintf(path, sizeof path, "/job/%s", cluster->folder);
    const struct inode *folder = files_find(path, NULL, NULL);
    for (int i = 0; folder && i < folder->entries.count; i++)
        if (!is_known(folder->entries.at[i].name) && !was_dark(cluster))
            machine_fail("%s is left in the folder", folder->entries.at[i].name);
}

void cluster_check(const struct cluster *cluster)
{
    check_whole(cluster);
    check_leftovers(cluster);
    if (cluster->plan->model == MODEL_COUNTS && !machine.failed) check_counts(cluster);
}

/* Ledgers name lives, which are never the same. */
void cluster_compare(const struct cluster *a, const struct cluster *b)
{
    const char *const words[] = {"dtrain", "checkpoint", "diff", a->folder, b->folder};
    int code;
    const char *line = cluster_ask(&code, COUNT(words), words);
    for (const char *end; (end = strchr(line, '\n')); line = end + 1)
        if (strncmp(line, "dtrain/ledger/", strlen("dtrain/ledger/")) && strncmp(line, "equal:", 6))
            machine_fail("differs from an undisturbed run: %.*s", (int)(end - line), line);
}
