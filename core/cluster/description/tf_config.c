/* tf_config.c - see tf_config.h.
 *
 *     {"cluster": {"chief": ["h0:2222"], "worker": ["h1:2222"], "ps": ["h3:2222"]},
 *      "task": {"type": "worker", "index": 0}}
 *
 * The chief (old spelling: master) is worker 0 here, and TensorFlow's workers follow it.
 */
#include "core/cluster/description/tf_config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { TF_CONFIG_BYTES_MAX = 1 << 20, INDEX_DIGITS_MAX = 9 };

enum type { TYPE_CHIEF, TYPE_MASTER, TYPE_WORKER, TYPE_PS, TYPE_EVALUATOR, TYPE_COUNT };

static const char *const type_names[TYPE_COUNT] = {"chief", "master", "worker", "ps", "evaluator"};

static err fail_type(const char *where, const char *name)
{
    const struct suggestion near = suggest(name, type_names, TYPE_COUNT);
    return fail(ERR_INPUT, "%s: unknown job \"%.64s\"%s", where, name,
                *near.text ? near.text : "; known are chief, worker, ps, master, evaluator");
}

static int count_tasks(json_t *cluster, enum type type)
{
    return (int)json_array_size(json_object_get(cluster, type_names[type]));
}

/* Every member must be a job that TensorFlow knows, with a list. */
static err check_jobs(json_t *cluster)
{
    const char *name;
    json_t *list;
    json_object_foreach(cluster, name, list)
    {
        int type = text_find(type_names, TYPE_COUNT, name);
        if (type < 0) return fail_type("TF_CONFIG.cluster", name);
        if (!json_is_array(list))
            return fail(ERR_INPUT, "TF_CONFIG.cluster.%s: expected a list of \"host:port\"", name);
        int tasks_max = cluster_tasks_max(type == TYPE_PS ? JOB_PS : JOB_WORKER);
        if (json_array_size(list) >= (size_t)tasks_max)
            return fail(ERR_INPUT, "TF_CONFIG.cluster.%s: %zu tasks, too many", name,
                        json_array_size(list));
    }
    return OK;
}

/* One chief at most, under one of its names; and the jobs without which nothing can be trained. */
static err check_cluster(json_t *cluster)
{
    if (!json_is_object(cluster))
        return fail(ERR_INPUT, "TF_CONFIG.cluster: expected an object of jobs");
    TRY(check_jobs(cluster));
    bool has_chief = json_object_get(cluster, "chief");
    bool has_master = json_object_get(cluster, "master");
    if (has_chief && has_master)
        return fail(ERR_INPUT, "TF_CONFIG.cluster: both \"chief\" and \"master\" (its old name)");
    if (has_master && json_object_get(cluster, "evaluator"))
        return fail(ERR_INPUT, "TF_CONFIG.cluster: \"evaluator\" does not go with \"master\"");
    enum type type = has_master ? TYPE_MASTER : TYPE_CHIEF;
    if ((has_chief || has_master) && count_tasks(cluster, type) != 1)
        return fail(ERR_INPUT, "TF_CONFIG.cluster.%s: expected exactly one task, got %d",
                    type_names[type], count_tasks(cluster, type));
    if (!has_chief && !has_master && count_tasks(cluster, TYPE_WORKER) == 0)
        return fail(ERR_INPUT, "TF_CONFIG.cluster: names no \"chief\" and no \"worker\"");
    if (count_tasks(cluster, TYPE_PS) == 0)
        return fail(ERR_INPUT, "TF_CONFIG.cluster: names no \"ps\"");
    return OK;
}

/* Appends the addresses of one job. */
static err add_hosts(json_t *cluster, enum type type, struct arena *arena, struct strings *hosts)
{
    char where[64];
    snprintf(where, sizeof where, "TF_CONFIG.cluster.%s", type_names[type]);
    json_t *list = json_object_get(cluster, type_names[type]);
    for (int i = 0; i < count_tasks(cluster, type); i++) {
        const char *address = json_string_value(json_array_get(list, (size_t)i));
        if (!address) return fail(ERR_INPUT, "%s[%d]: expected a string \"host:port\"", where, i);
        TRY(cluster_host_check(where, i, address));
        hosts->at[hosts->count++] = arena_string(arena, address);
    }
    return OK;
}

/* At most one of chief and master is there, so the order makes it worker 0. */
static err read_cluster(json_t *cluster, struct arena *arena, struct tf_config *ret)
{
    TRY(check_cluster(cluster));
    int ps_count = count_tasks(cluster, TYPE_PS);
    int worker_count = 1 + count_tasks(cluster, TYPE_WORKER);
    struct strings *ps = &ret->hosts[JOB_PS], *workers = &ret->hosts[JOB_WORKER];
    ps->at = arena_array(arena, (size_t)ps_count, sizeof *ps->at);
    workers->at = arena_array(arena, (size_t)worker_count, sizeof *workers->at);
    TRY(add_hosts(cluster, TYPE_PS, arena, ps));
    TRY(add_hosts(cluster, TYPE_CHIEF, arena, workers));
    TRY(add_hosts(cluster, TYPE_MASTER, arena, workers));
    TRY(add_hosts(cluster, TYPE_WORKER, arena, workers));
    ret->has_cluster = true;
    return OK;
}

static err read_type(json_t *task, enum type *ret)
{
    json_t *json = json_object_get(task, "type");
    if (!json) return fail(ERR_INPUT, "TF_CONFIG.task: \"type\" is missing");
    if (!json_is_string(json))
        return fail(ERR_INPUT,
                    "TF_CONFIG.task.type: expected a string (chief, worker, ps or evaluator)");
    int type = text_find(type_names, TYPE_COUNT, json_string_value(json));
    if (type < 0) return fail_type("TF_CONFIG.task.type", json_string_value(json));
    *ret = (enum type)type;
    return OK;
}

/* A number, or a string "0", as some launchers write it; -1: neither. */
static json_int_t index_of(const json_t *json)
{
    const char *text = json_string_value(json);
    if (!text) return json_is_integer(json) ? json_integer_value(json) : -1;
    const size_t length = strlen(text);
    const bool is_number =
        length > 0 && length <= INDEX_DIGITS_MAX && strspn(text, "0123456789") == length;
    return is_number ? strtol(text, NULL, 10) : -1;
}

/* Whether the job has this index is checked with the cluster. */
static err read_index(json_t *task, int *ret)
{
    json_t *json = json_object_get(task, "index");
    if (!json) return fail(ERR_INPUT, "TF_CONFIG.task: \"index\" is missing");
    const json_int_t index = index_of(json);
    if (index < 0 || index >= cluster_tasks_max(JOB_WORKER))
        return fail(ERR_INPUT, "TF_CONFIG.task.index: expected an integer from 0 to %d",
                    cluster_tasks_max(JOB_WORKER) - 1);
    *ret = (int)index;
    return OK;
}

/* Without a cluster TensorFlow knows one task only. */
static err check_alone(enum type type, int index)
{
    if (type == TYPE_WORKER && index == 0) return OK;
    return fail(ERR_INPUT, "TF_CONFIG: task %s/%d needs a \"cluster\"", type_names[type], index);
}

/* Without a cluster the task says no more than that there is one process. */
static err read_task(json_t *task, json_t *cluster, struct tf_config *ret)
{
    if (!json_is_object(task))
        return fail(ERR_INPUT, "TF_CONFIG.task: expected an object with \"type\" and \"index\"");
    enum type type = TYPE_WORKER;
    int index = 0;
    TRY(read_type(task, &type));
    TRY(read_index(task, &index));
    if (!cluster) return check_alone(type, index);
    int tasks = count_tasks(cluster, type);
    ret->is_evaluator = type == TYPE_EVALUATOR;
    if (ret->is_evaluator) tasks = 1; /* the cluster need not list it */
    if (index >= tasks && ret->is_evaluator)
        return fail(ERR_INPUT, "TF_CONFIG.task: evaluator/%d, but there is one evaluator", index);
    if (index >= tasks)
        return fail(ERR_INPUT, "TF_CONFIG.task: %s/%d, but cluster names %d task%s of \"%s\"",
                    type_names[type], index, tasks, tasks == 1 ? "" : "s", type_names[type]);
    int chiefs = count_tasks(cluster, TYPE_CHIEF) + count_tasks(cluster, TYPE_MASTER);
    ret->has_task = true;
    ret->job = type == TYPE_PS ? JOB_PS : JOB_WORKER;
    ret->task = type == TYPE_WORKER ? chiefs + index : index;
    return OK;
}

/* An empty cluster means no cluster, as in TensorFlow. */
static err read_root(json_t *root, struct arena *arena, struct tf_config *ret)
{
    if (!json_is_object(root)) return fail(ERR_INPUT, "TF_CONFIG: expected a JSON object");
    json_t *cluster = json_object_get(root, "cluster"), *task = json_object_get(root, "task");
    if (cluster && json_is_object(cluster) && json_object_size(cluster) == 0) cluster = NULL;
    if (!cluster && json_object_get(root, "sparseCluster"))
        return fail(ERR_INPUT, "TF_CONFIG.sparseCluster: names this task and the ps alone, and all "
                               "workers are wanted: leave enableDynamicWorker out of the TFJob");
    if (cluster) TRY(read_cluster(cluster, arena, ret));
    if (task) TRY(read_task(task, cluster, ret));
    return OK;
}

err tf_config_read(const char *text, struct arena *arena, struct tf_config *ret)
{
    if (strlen(text) > TF_CONFIG_BYTES_MAX)
        return fail(ERR_INPUT, "TF_CONFIG: longer than %d bytes", TF_CONFIG_BYTES_MAX);
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return fail(ERR_INPUT, "TF_CONFIG: not JSON: line %d, column %d: %s", error.line,
                    error.column, error.text);
    struct tf_config config = {0};
    err e = read_root(root, arena, &config);
    json_decref(root);
    if (!e) *ret = config;
    return e;
}
