/* cluster_spec.c - see cluster_spec.h. */
#include "core/cluster/description/cluster_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cluster/description/named.h"
#include "core/cluster/description/ports.h"
#include "core/cluster/description/slurm.h"
#include "core/cluster/description/tf_config.h"
#include "core/train/variables/layout.h"

enum { MISSING_MAX = 3, MISSING_TEXT_MAX = 96, SOURCE_TEXT_MAX = 160 };

static const char *const hosts_names[JOB_COUNT] = {"ps_hosts", "worker_hosts"};
static const enum cluster_word hosts_words[JOB_COUNT] = {WORD_PS_HOSTS, WORD_WORKER_HOSTS};

const char *const cluster_flag_names[WORD_COUNT] = {"job_name", "task_index", "ps_hosts",
                                                    "worker_hosts"};
static const char *const variables[WORD_COUNT] = {"JOB_NAME", "TASK_INDEX", "PS_HOSTS",
                                                  "WORKER_HOSTS"};

/* "--job_name=boss", "JOB_NAME=boss in the environment"; value NULL: the name alone. */
static const char *source(const struct cluster_flags *flags, enum cluster_word word,
                          const char *value, char text[SOURCE_TEXT_MAX])
{
    const bool is_variable = flags->is_by_environment[word];
    snprintf(text, SOURCE_TEXT_MAX, "%s%s%s%.64s%s", is_variable ? "" : "--",
             is_variable ? variables[word] : cluster_flag_names[word], value ? "=" : "",
             value ? value : "", is_variable ? " in the environment" : "");
    return text;
}

bool cluster_flags_say(const struct cluster_flags *flags, enum cluster_word word)
{
    return word == WORD_JOB_NAME     ? flags->job_name != NULL
           : word == WORD_TASK_INDEX ? flags->task_index >= 0
           : word == WORD_PS_HOSTS   ? flags->ps_hosts != NULL
                                     : flags->worker_hosts != NULL;
}

int cluster_tasks_max(enum job job)
{
    return job == JOB_PS ? PS_MAX : WORKERS_MAX;
}

err cluster_host_check(const char *where, int index, const char *address)
{
    err e = address_check(address);
    return e ? fail_prefix(e, "%s[%d]", where, index) : OK;
}

/* Or a line end: lists may come from files with one entry per line. */
static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* One entry of a comma separated list, without the blanks around it. */
static char *cut_entry(struct arena *arena, const char *from, size_t length)
{
    while (length && is_blank(*from)) from++, length--;
    while (length && is_blank(from[length - 1])) length--;
    return arena_format(arena, "%.*s", (int)length, from);
}

err cluster_split_hosts(enum job job, const char *list, struct arena *arena, struct strings *ret)
{
    int entries = 1;
    for (const char *c = list; *c; c++) entries += *c == ',';
    if (entries > cluster_tasks_max(job))
        return fail(ERR_INPUT, "%s: %d tasks, at most %d are allowed", hosts_names[job], entries,
                    cluster_tasks_max(job));
    struct strings hosts = {.at = arena_array(arena, (size_t)entries, sizeof *hosts.at)};
    for (const char *from = list; hosts.count < entries; hosts.count++) {
        size_t length = strcspn(from, ",");
        hosts.at[hosts.count] = cut_entry(arena, from, length);
        TRY(cluster_host_check(hosts_names[job], hosts.count, hosts.at[hosts.count]));
        from += length + 1;
    }
    *ret = hosts;
    return OK;
}

static const char evaluator_name[] = "evaluator";

static err parse_job(const struct cluster_flags *flags, struct cluster_spec *spec)
{
    const char *name = flags->job_name;
    spec->is_evaluator = strcmp(name, evaluator_name) == 0;
    spec->job = JOB_WORKER;
    if (spec->is_evaluator) return OK;
    for (int job = 0; job < JOB_COUNT; job++)
        if (strcmp(name, job_name((enum job)job)) == 0) {
            spec->job = (enum job)job;
            return OK;
        }
    char text[SOURCE_TEXT_MAX];
    const bool is_chief =
        strcmp(name, "chief") == 0 || strcmp(name, "master") == 0; /* TF_CONFIG's */
    return fail(ERR_INPUT, "%s: expected ps, worker or evaluator, got \"%.64s\"%s",
                source(flags, WORD_JOB_NAME, NULL, text), name,
                is_chief ? " (the chief is worker 0)" : "");
}

/* A place among all tasks, to find equal addresses by sorting. */
struct address_place {
    const char *address;
    enum job job;
    int task;
};

static int compare_places(const void *left, const void *right)
{
    const struct address_place *a = left, *b = right;
    int order = strcmp(a->address, b->address);
    if (order) return order;
    return a->job != b->job ? (int)a->job - (int)b->job : a->task - b->task;
}

/* Two tasks cannot listen at one address, and a list that was pasted twice is a common mistake. */
static err check_distinct(const struct cluster_spec *spec, struct arena *arena)
{
    int count = spec->hosts[JOB_PS].count + spec->hosts[JOB_WORKER].count, filled = 0;
    struct address_place *places = arena_array(arena, (size_t)count, sizeof *places);
    for (int job = 0; job < JOB_COUNT; job++)
        for (int task = 0; task < spec->hosts[job].count; task++)
            places[filled++] =
                (struct address_place){spec->hosts[job].at[task], (enum job)job, task};
    qsort(places, (size_t)count, sizeof *places, compare_places);
    for (int i = 1; i < count; i++) {
        const struct address_place *a = &places[i - 1], *b = &places[i];
        if (strcmp(a->address, b->address) == 0 && !port_is_open(a->address))
            return fail(ERR_INPUT, "the same address twice: \"%s\" is %s/%d and %s/%d", a->address,
                        job_name(a->job), a->task, job_name(b->job), b->task);
    }
    return OK;
}

/* Whether the flags suffice: then TF_CONFIG, which may be for another program, is not read. */
static bool is_complete(const struct cluster_flags *flags)
{
    return flags->job_name && flags->task_index >= 0 && flags->ps_hosts && flags->worker_hosts;
}

/* Flags that only make sense together with a job. */
static err check_no_flags(const struct cluster_flags *flags)
{
    const enum cluster_word given = flags->ps_hosts          ? WORD_PS_HOSTS
                                    : flags->worker_hosts    ? WORD_WORKER_HOSTS
                                    : flags->task_index >= 0 ? WORD_TASK_INDEX
                                                             : WORD_COUNT;
    if (given == WORD_COUNT) return OK;
    char text[SOURCE_TEXT_MAX];
    return fail(ERR_INPUT, "%s needs --job_name (ps or worker)", source(flags, given, NULL, text));
}

/* The text lists what is missing: "--task_index, --ps_hosts and --worker_hosts". */
static err check_missing(const struct cluster_flags *flags, const struct cluster_spec *spec)
{
    const char *missing[MISSING_MAX];
    int count = 0;
    if (spec->task < 0) missing[count++] = "--task_index";
    if (spec->hosts[JOB_PS].count == 0) missing[count++] = "--ps_hosts";
    if (spec->hosts[JOB_WORKER].count == 0) missing[count++] = "--worker_hosts";
    if (count == 0) return OK;
    char text[MISSING_TEXT_MAX];
    int used = 0;
    for (int i = 0; i < count; i++) {
        const char *before = i == 0 ? "" : i + 1 == count ? " and " : ", ";
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s", before, missing[i]);
    }
    char job[SOURCE_TEXT_MAX];
    const char *name = spec->is_evaluator ? evaluator_name : job_name(spec->job);
    return fail(ERR_INPUT, "%s needs %s", source(flags, WORD_JOB_NAME, name, job), text);
}

/* Takes the list of one job, if given. */
static err take_hosts(const struct cluster_flags *flags, enum job job, struct arena *arena,
                      struct strings *hosts)
{
    const enum cluster_word word = hosts_words[job];
    const char *list = job == JOB_PS ? flags->ps_hosts : flags->worker_hosts;
    if (!list) return OK;
    err e = cluster_split_hosts(job, list, arena, hosts);
    return e && flags->is_by_environment[word]
               ? fail_prefix(e, "%s in the environment", variables[word])
               : e;
}

/* "ps-0" matches "ps-0.training.svc", and vice versa. */
static bool is_of_host(const char *address, const char *name)
{
    const size_t host = strcspn(address, ":"), length = strlen(name);
    const size_t both = host < length ? host : length;
    if (both == 0 || strncmp(address, name, both) != 0) return false;
    return host == length || (host < length ? name : address)[both] == '.';
}

/* -1: this host is not in the list, or more than once. */
static int find_own(const struct strings *hosts, const char *host_name)
{
    int found = -1;
    for (int i = 0; i < hosts->count; i++) {
        if (!is_of_host(hosts->at[i], host_name)) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found;
}

/* Flags override TF_CONFIG, whose task index counts only for its own job. */
static err merge(const struct cluster_flags *flags, const struct tf_config *config,
                 struct arena *arena, struct cluster_spec *spec)
{
    spec->job = config->job;
    spec->is_evaluator = config->is_evaluator;
    if (flags->job_name) TRY(parse_job(flags, spec));
    bool is_named_there =
        config->has_task && config->job == spec->job && config->is_evaluator == spec->is_evaluator;
    spec->task = flags->task_index >= 0 ? (int)flags->task_index
                 : is_named_there       ? config->task
                                        : -1;
    for (int job = 0; job < JOB_COUNT; job++) {
        spec->hosts[job] = config->hosts[job];
        TRY(take_hosts(flags, (enum job)job, arena, &spec->hosts[job]));
    }
    if (spec->task < 0 && flags->host_name && !spec->is_evaluator)
        spec->task = find_own(&spec->hosts[spec->job], flags->host_name);
    return OK;
}

static err check_task(const struct cluster_flags *flags, const struct cluster_spec *spec)
{
    const int tasks = spec->hosts[spec->job].count;
    const bool is_variable = flags->is_by_environment[WORD_TASK_INDEX];
    const char *name = (is_variable ? variables : cluster_flag_names)[WORD_TASK_INDEX];
    const char *where = is_variable ? " in the environment" : "";
    if (spec->is_evaluator && spec->task > 0)
        return fail(ERR_INPUT, "%s %d%s but there is one evaluator", name, spec->task, where);
    if (!spec->is_evaluator && spec->task >= tasks)
        return fail(ERR_INPUT, "%s %d%s but %s names %d task%s", name, spec->task, where,
                    hosts_names[spec->job], tasks, tasks == 1 ? "" : "s");
    return OK;
}

/* A ps is connected to, and connects to nobody. */
static err check_ports(const struct cluster_spec *spec)
{
    if (spec->job == JOB_PS && !spec->is_evaluator) return OK;
    return ports_check_known(JOB_PS, &spec->hosts[JOB_PS],
                             spec->is_evaluator ? "the evaluator" : "a worker");
}

static const char *of_environment(const char *name)
{
    return getenv(name);
}

static err make_of_ranks(const struct cluster_flags *flags, struct arena *arena,
                         struct cluster_spec *ret)
{
    char text[SOURCE_TEXT_MAX];
    if (flags->slurm && flags->ranks)
        return fail(ERR_INPUT, "--slurm and --ranks say where tasks are, each in its own way");
    for (enum cluster_word word = 0; word < WORD_COUNT; word++)
        if (cluster_flags_say(flags, word))
            return fail(ERR_INPUT, "%s: --%s says that already", source(flags, word, NULL, text),
                        flags->slurm ? "slurm" : "ranks");
    if (flags->slurm)
        TRY(slurm_read(flags->slurm, flags->base_port, of_environment, arena, ret));
    else
        TRY(ranks_read(flags->ranks, flags->hostfile, flags->base_port, of_environment, arena,
                       ret));
    return check_distinct(ret, arena);
}

/* A place beyond those that take part may take part later. */
static err make_named(const struct cluster_flags *flags, struct arena *arena,
                      struct cluster_spec *ret)
{
    struct cluster_spec spec = {0};
    TRY(named_cluster_make(flags, arena, &spec));
    TRY(parse_job(flags, &spec));
    if (spec.is_evaluator && spec.task < 0) spec.task = 0;
    if (spec.is_evaluator) TRY(check_task(flags, &spec));
    if (spec.task >= cluster_room(&spec, spec.job))
        return fail(ERR_INPUT, "--task_index %d: a cluster has at most %d %s%s", spec.task,
                    cluster_room(&spec, spec.job), job_name(spec.job),
                    spec.job == JOB_WORKER ? "s" : "");
    *ret = spec;
    return OK;
}

static err make_all(const struct cluster_flags *flags, const char *tf_config_text,
                    struct arena *arena, struct cluster_spec *ret)
{
    if (flags->coordinator) return make_named(flags, arena, ret);
    TRY(named_cluster_check_absent(flags));
    if (flags->slurm || flags->ranks) return make_of_ranks(flags, arena, ret);
    struct tf_config config = {0};
    bool asks_config = tf_config_text && *tf_config_text && !is_complete(flags);
    if (asks_config) TRY(tf_config_read(tf_config_text, arena, &config));
    struct cluster_spec spec = {0};
    if (!flags->job_name && !config.has_task) {
        if (config.has_cluster) return fail(ERR_INPUT, "TF_CONFIG: \"task\" is missing");
        TRY(check_no_flags(flags));
        *ret = spec;
        return OK;
    }
    TRY(merge(flags, &config, arena, &spec));
    if (spec.is_evaluator && spec.task < 0) spec.task = 0; /* there is only one */
    TRY(check_missing(flags, &spec));
    TRY(check_task(flags, &spec));
    TRY(check_distinct(&spec, arena));
    TRY(check_ports(&spec));
    spec.is_distributed = true;
    *ret = spec;
    return OK;
}

/* ---- who takes part ---- */

struct membership cluster_membership(const struct cluster_spec *spec)
{
    return (struct membership){spec->resizes,
                               {spec->hosts[JOB_PS].count, spec->hosts[JOB_WORKER].count}};
}

int cluster_room(const struct cluster_spec *spec, enum job job)
{
    const int count = spec->hosts[job].count;
    return spec->room[job] > count ? spec->room[job] : count;
}

err cluster_resize(struct cluster_spec *spec, const struct membership *to)
{
    for (int job = 0; job < JOB_COUNT; job++) {
        const int room = cluster_room(spec, (enum job)job);
        if (to->count[job] < 1 || to->count[job] > room)
            return fail(ERR_INPUT, "%d %s%s: 1 to %d are possible, by the lists of hosts",
                        to->count[job], job_name((enum job)job), job == JOB_WORKER ? "s" : "",
                        room);
    }
    for (int job = 0; job < JOB_COUNT; job++) {
        spec->room[job] = cluster_room(spec, (enum job)job);
        spec->hosts[job].count = to->count[job];
    }
    spec->resizes = to->resizes;
    return OK;
}

bool cluster_has_place(const struct cluster_spec *spec)
{
    return spec->task < spec->hosts[spec->job].count;
}

err cluster_reduce(const struct cluster_flags *flags, struct cluster_spec *spec)
{
    struct membership membership = cluster_membership(spec);
    if (!flags->ps && !flags->workers) return OK;
    if (membership.count[JOB_PS] == 0)
        return fail(ERR_INPUT, "--ps and --workers say how many of the tasks that are listed take "
                               "part (did you mean --local_ps and --local_workers?)");
    if (flags->ps) membership.count[JOB_PS] = (int)flags->ps;
    if (flags->workers) membership.count[JOB_WORKER] = (int)flags->workers;
    membership.resizes = (uint64_t)flags->resizes;
    const err e = cluster_resize(spec, &membership);
    return e ? fail_prefix(e, "--ps, --workers") : OK;
}

err cluster_spec_make(const struct cluster_flags *flags, const char *tf_config_text,
                      struct arena *arena, struct cluster_spec *ret)
{
    struct cluster_spec spec;
    TRY(make_all(flags, tf_config_text, arena, &spec));
    TRY(cluster_reduce(flags, &spec));
    *ret = spec;
    return OK;
}

void cluster_find(const struct cluster_spec *spec, enum job job, int task, char ret[ADDRESS_MAX])
{
    if (spec->find)
        spec->find(spec->registry, job, task, ret);
    else
        snprintf(ret, ADDRESS_MAX, "%s", spec->hosts[job].at[task]);
}

/* How many of the first `count` workers are on this task's host. */
static int workers_of_host(const struct cluster_spec *spec, int count)
{
    int workers = 0;
    if (spec->task < 0) return 0; /* its index is not known yet */
    const char *own = spec->hosts[spec->job].at[spec->task];
    for (int i = 0; i < count; i++)
        workers += address_is_same_host(own, spec->hosts[JOB_WORKER].at[i]);
    return workers;
}

/* With a coordinator tasks may restart on other hosts, and not all addresses are known: each counts
 * as on a host of its own. host: an address of the lists. */
static int tasks_of_host(const struct cluster_spec *spec, enum job job, const char *host)
{
    const struct strings *tasks = &spec->hosts[job];
    int count = 0;
    for (int i = 0; i < tasks->count; i++)
        count += spec->name ? host == tasks->at[i] : address_is_same_host(host, tasks->at[i]);
    return count;
}

/* What a host's network link carries in one direction with balanced ps, in units of one push to one
 * ps: gradients to its ps and values to its workers, from and to tasks on other hosts. */
static int64_t balanced_load(const struct cluster_spec *spec, const char *host)
{
    const struct strings *ps = &spec->hosts[JOB_PS], *workers = &spec->hosts[JOB_WORKER];
    const int ps_here = tasks_of_host(spec, JOB_PS, host);
    const int workers_here = tasks_of_host(spec, JOB_WORKER, host);
    return (int64_t)ps_here * (workers->count - workers_here) +
           (int64_t)workers_here * (ps->count - ps_here);
}

/* If one ps holds everything, the link of its host is the busiest. */
bool cluster_gains_by_balance(const struct cluster_spec *spec)
{
    const struct strings *ps = &spec->hosts[JOB_PS], *workers = &spec->hosts[JOB_WORKER];
    int64_t alone = 0, balanced = 0;
    for (int i = 0; i < ps->count; i++) {
        const int far = workers->count - tasks_of_host(spec, JOB_WORKER, ps->at[i]);
        if ((int64_t)far * ps->count > alone) alone = (int64_t)far * ps->count;
    }
    for (int job = 0; job < JOB_COUNT; job++) {
        for (int i = 0; i < spec->hosts[job].count; i++) {
            const int64_t load = balanced_load(spec, spec->hosts[job].at[i]);
            if (load > balanced) balanced = load;
        }
    }
    return 2 * alone > 3 * balanced;
}

int cluster_workers_here(const struct cluster_spec *spec)
{
    if (!spec->is_distributed) return 1;
    int workers = workers_of_host(spec, spec->hosts[JOB_WORKER].count);
    return workers > 0 ? workers : 1;
}

int cluster_local_index(const struct cluster_spec *spec)
{
    if (!spec->is_distributed) return 0;
    if (spec->is_evaluator) return cluster_workers_here(spec);
    return spec->job == JOB_WORKER ? workers_of_host(spec, spec->task) : 0;
}
