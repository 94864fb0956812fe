/* named.c - see named.h. */
#include "core/cluster/description/named.h"

#include <ctype.h>
#include <string.h>

#include "core/cluster/description/ranks.h"
#include "core/cluster/description/tf_config.h"

enum { NAME_MAX_BYTES = 100, ENTRY_BYTES = 32 };

/* It is a folder of the coordinator's. */
static err check_name(const char *name)
{
    bool is_good = name[0] && name[0] != '.' && strlen(name) <= NAME_MAX_BYTES;
    for (const char *c = name; *c; c++)
        is_good &= isalnum((unsigned char)*c) || strchr("-_.", *c) != NULL;
    return is_good ? OK
                   : fail(ERR_INPUT,
                          "--cluster: expected up to %d letters, digits and \"-_.\", got \"%.64s\"",
                          NAME_MAX_BYTES, name);
}

/* "ps=2" */
static bool read_entry(const char *from, size_t bytes, int ret[JOB_COUNT])
{
    char entry[ENTRY_BYTES];
    if (bytes >= sizeof entry) return false;
    snprintf(entry, sizeof entry, "%.*s", (int)bytes, from);
    for (enum job job = 0; job < JOB_COUNT; job++) {
        const size_t name = strlen(job_name(job));
        int64_t count;
        if (strncmp(entry, job_name(job), name) != 0 || entry[name] != '=') continue;
        if (ret[job] || !ranks_number(entry + name + 1, 1, cluster_tasks_max(job), &count))
            return false;
        ret[job] = (int)count;
        return true;
    }
    return false;
}

static err read_tasks(const char *tasks, int ret[JOB_COUNT])
{
    const char *comma = strchr(tasks, ',');
    ret[JOB_PS] = ret[JOB_WORKER] = 0;
    if (comma && read_entry(tasks, (size_t)(comma - tasks), ret) &&
        read_entry(comma + 1, strlen(comma + 1), ret))
        return OK;
    return fail(ERR_INPUT,
                "--tasks: expected ps=N,worker=N with N from 1 to %d and %d, got \"%.64s\"",
                cluster_tasks_max(JOB_PS), cluster_tasks_max(JOB_WORKER), tasks);
}

static err fail_missing(const char *missing)
{
    return missing ? fail(ERR_INPUT, "--coordinator needs %s", missing) : OK;
}

static err check_words(const struct cluster_flags *flags)
{
    if (flags->ps_hosts || flags->worker_hosts)
        return fail(ERR_INPUT,
                    "--coordinator: tasks find each other there, so that %s is in its "
                    "way",
                    flags->ps_hosts ? "--ps_hosts" : "--worker_hosts");
    if (flags->slurm || flags->ranks)
        return fail(ERR_INPUT, "--%s and --coordinator say where tasks are, each in its own way",
                    flags->slurm ? "slurm" : "ranks");
    return flags->cluster ? check_name(flags->cluster) : fail_missing("--cluster=NAME");
}

err named_cluster_tasks(const char *tasks, struct arena *arena, struct cluster_spec *ret)
{
    int count[JOB_COUNT];
    TRY(read_tasks(tasks, count));
    for (enum job job = 0; job < JOB_COUNT; job++) {
        struct strings *hosts = &ret->hosts[job];
        hosts->at = arena_array(arena, (size_t)count[job], sizeof *hosts->at);
        for (hosts->count = 0; hosts->count < count[job]; hosts->count++)
            hosts->at[hosts->count] = arena_format(arena, "%s/%d", job_name(job), hosts->count);
    }
    return OK;
}

err named_cluster_make(const struct cluster_flags *flags, struct arena *arena,
                       struct cluster_spec *ret)
{
    TRY(check_words(flags));
    TRY(fail_missing(!flags->tasks      ? "--tasks=ps=N,worker=N"
                     : !flags->job_name ? "--job_name"
                                        : NULL));
    TRY(named_cluster_tasks(flags->tasks, arena, ret));
    ret->task = (int)flags->task_index;
    ret->name = flags->cluster;
    ret->is_distributed = true;
    return OK;
}

err named_cluster_visit(const struct cluster_flags *flags, struct cluster_spec *ret)
{
    TRY(check_words(flags));
    ret->name = flags->cluster;
    ret->is_distributed = true;
    return OK;
}

err named_cluster_check_absent(const struct cluster_flags *flags)
{
    const char *given = flags->cluster ? "cluster" : flags->tasks ? "tasks" : NULL;
    return given ? fail(ERR_INPUT, "--%s goes with --coordinator", given) : OK;
}
