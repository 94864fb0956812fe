/* published.c - see published.h. */
#include "tests/world/published.h"

#include "tests/world/cluster.h"
#include "tests/world/files.h"
#include "tests/world/store.h"
#include "tests/world/tensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ASIDE_MOST = 4, NAMED_MOST = 101 };
#define LIST "published.json"

/* A checkpoint, and deltas that follow it. */
struct list {
    int count;
    struct {
        char name[FILE_NAME_BYTES];
        int64_t step;
    } named[NAMED_MOST];
};

static struct list aside[ASIDE_MOST]; /* the latest; their files are in /aside-N */
static int aside_count;

static const char *text_of(const struct cluster *cluster, const char *file, size_t *ret_count)
{
    char path[FILE_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", cluster->plan->is_url ? "bucket" : "/disk",
             cluster->folder);
    snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", file);
    return cluster->plan->is_url ? store_bytes(path, ret_count) : files_text(path, ret_count);
}

static void read_named(const json_t *json, struct list *ret)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    if (!name || ret->count == NAMED_MOST) machine_fail("a name is missing in " LIST);
    if (machine.failed) return;
    snprintf(ret->named[ret->count].name, sizeof ret->named[0].name, "%s", name);
    ret->named[ret->count++].step = json_integer_value(json_object_get(json, "step"));
}

static void read_list(const char *text, size_t count, struct list *ret)
{
    json_t *json = json_loadb(text, count, 0, NULL);
    size_t index;
    const json_t *delta;
    ret->count = 0;
    if (!json) machine_fail(LIST " cannot be read: %.*s", (int)count, text);
    if (json) read_named(json_object_get(json, "checkpoint"), ret);
    json_array_foreach(json_object_get(json, "deltas"), index, delta) read_named(delta, ret);
    json_decref(json);
}

/* Of its folder. */
static const char *name_at(const struct cluster *cluster, int index)
{
    char path[FILE_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s%s", cluster->plan->is_url ? "bucket" : "/disk",
             cluster->folder, cluster->plan->is_url ? "/" : "");
    if (cluster->plan->is_url) return store_name(path, index);
    const struct inode *folder = files_find(path, NULL, NULL);
    return folder && index < folder->entries.count ? folder->entries.at[index].name : NULL;
}

static void put_aside(const struct cluster *cluster, int number, const char *text, size_t count)
{
    char path[FILE_PATH_BYTES];
    const char *name;
    struct list *list = &aside[number];
    read_list(text, count, list);
    snprintf(path, sizeof path, "/aside-%d", number);
    files_remove(path);
    files_make_folder(path);
    for (int i = 0; (name = name_at(cluster, i)); i++) {
        const char *bytes = text_of(cluster, name, &count);
        if (strchr(name, '/')) continue; /* of a checkpoint that is being made */
        if (!bytes || strncmp(name, list->named[0].name, strlen(list->named[0].name)) != 0)
            continue;
        snprintf(path, sizeof path, "/aside-%d/%s", number, name);
        files_put_bytes(path, bytes, count);
    }
}

void published_look(const struct cluster *cluster)
{
    static char *last;
    static size_t last_count;
    size_t count;
    /* of a folder that somebody removes the list may name what went with it */
    const bool is_emptied = job_plan_has(cluster->plan, MISHAP_DISK + (int)DISK_EMPTIED);
    if (!cluster->plan->training.publish_ms || cluster->is_calm || is_emptied) return;
    const char *text = text_of(cluster, LIST, &count);
    if (!text || (count == last_count && memcmp(text, last, count) == 0)) return;
    last = realloc(last, count + 1);
    last_count = count;
    memcpy(last, text, count);
    put_aside(cluster, aside_count++ % ASIDE_MOST, text, count);
}

uint64_t published_deltas(void)
{
    uint64_t ret = 0;
    for (int i = 0; i < aside_count && i < ASIDE_MOST; i++) ret += (uint64_t)aside[i].count - 1;
    return ret;
}

/* ---- what they are, when all is over ---- */

/* Of a table, by id. */
struct rows {
    double at[ROWS];
};

static void lay(struct rows *rows, const struct tensor *ids, const struct tensor *values)
{
    const int64_t columns = values && values->count ? ids->count / values->count : 1;
    for (int64_t i = 0; values && i < values->count; i++) {
        const double id = tensor_at(ids, i * columns);
        if (id < 0 || id >= ROWS)
            machine_fail("%s has %g", ids->name, id);
        else
            rows->at[(int)id] = tensor_at(values, i);
    }
}

static void lay_all(struct rows *rows, const struct tensors *tensors, const char *ids)
{
    char name[TENSOR_NAME_BYTES];
    for (int i = 0; i < tensors->count; i++) {
        const struct tensor *tensor = &tensors->at[i];
        const size_t stem = strlen(tensor->name) - strlen(ids);
        if (strlen(tensor->name) < strlen(ids) || strcmp(tensor->name + stem, ids) != 0) continue;
        snprintf(name, sizeof name, "%.*s/rows", (int)stem, tensor->name);
        lay(rows, tensor, tensors_find(tensors, name));
    }
}

static void lay_whole(struct rows *rows, const struct tensors *tensors)
{
    const struct tensor *table = tensors_find(tensors, TABLE);
    for (int i = 0; table && i < ROWS && i < table->count; i++) rows->at[i] = tensor_at(table, i);
}

static void check_rows(const struct rows *rows, const char *name, int64_t step)
{
    double sum = 0;
    for (int i = 0; i < ROWS; i++) sum += rows->at[i];
    if (fabs(sum - (double)step) > 0.01)
        machine_fail("rows of %s have %g gradients, and its step is %" PRId64, name, sum, step);
}

static void check_steps(const struct tensors *tensors, const char *name, int64_t step)
{
    static const char of_ps[] = "dtrain/delta/ps_";
    int ps = 0;
    for (int i = 0; i < tensors->count; i++) {
        const struct tensor *tensor = &tensors->at[i];
        if (strncmp(tensor->name, of_ps, sizeof of_ps - 1) != 0) continue;
        ps++;
        if (tensor_at(tensor, 0) != (double)step)
            machine_fail("%s is of step %" PRId64 ", and %s of %g", name, step, tensor->name,
                         tensor_at(tensor, 0));
    }
    if (!ps) machine_fail("%s is of no ps", name);
}

static void check_list(const struct cluster *cluster, int number)
{
    static struct tensors tensors;
    const struct list *list = &aside[number];
    const bool is_counts = cluster->plan->model == MODEL_COUNTS;
    struct rows rows = {{0}};
    char prefix[FILE_PATH_BYTES];
    for (int i = 0; i < list->count && !machine.failed; i++) {
        const char *name = list->named[i].name;
        const int64_t step = list->named[i].step;
        snprintf(prefix, sizeof prefix, "/aside-%d/%s", number, name);
        tensors_read(prefix, &tensors);
        if (machine.failed) return;
        if (i) check_steps(&tensors, name, step);
        if (i && step < list->named[i - 1].step) machine_fail("%s goes back in time", name);
        if (!is_counts) continue;
        if (!i) lay_whole(&rows, &tensors);
        lay_all(&rows, &tensors, i ? "/ids" : "/keys");
        check_rows(&rows, name, step);
        counts_check_dense(cluster->plan, &tensors, (int)step);
    }
}

static void read_now(const struct cluster *cluster, struct list *ret)
{
    size_t count;
    const char *text = text_of(cluster, LIST, &count);
    ret->count = 0;
    if (text) read_list(text, count, ret);
}

void published_check(const struct cluster *cluster, int last_step)
{
    static struct list now;
    const struct job_plan *plan = cluster->plan;
    if (!plan->training.publish_ms) return;
    for (int i = 0; i < aside_count && i < ASIDE_MOST; i++) check_list(cluster, i);
    if (job_plan_has_disks(plan) || job_plan_has(plan, MISHAP_DARK)) return;
    read_now(cluster, &now);
    if (now.count != 1 || now.named[0].step != last_step)
        machine_fail("the last checkpoint is of step %d, and " LIST " names %d of step %" PRId64,
                     last_step, now.count, now.count ? now.named[0].step : -1);
}

bool published_names(const struct cluster *cluster, const char *file)
{
    static struct list now;
    read_now(cluster, &now);
    for (int i = 1; i < now.count; i++)
        if (strncmp(file, now.named[i].name, strlen(now.named[i].name)) == 0) return true;
    return false;
}
