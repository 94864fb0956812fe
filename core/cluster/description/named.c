/* named.c - see named.h. */
#include "core/cluster/description/named.h"

#include <ctype.h>
#include <string.h>

#include "core/cluster/description/ranks.h"
#include "core/cluster/description/tf_config.h"

enum { NAME_MAX_BYTES = 100, ENTRY_BYTES = 32 };

/* The name becomes a folder at the coordinator. */
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

/* "ps=2,worker=3" */
static bool read_tasks(const char *from, size_t bytes, int ret[JOB_COUNT])
{
    const char *comma = memchr(from, ',', bytes);
    ret[JOB_PS] = ret[JOB_WORKER] = 0;
    return comma && read_entry(from, (size_t)(comma - from), ret) &&
           read_entry(comma + 1, bytes - (size_t)(comma + 1 - from), ret);
}

static err read_flag(const char *tasks, int ret[JOB_COUNT])
{
    if (read_tasks(tasks, strlen(tasks), ret)) return OK;
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
    if (flags->ps || flags->workers)
        return fail(ERR_INPUT,
                    "--tasks says how many tasks take part at first, so that --%s is in "
                    "its way",
                    flags->ps ? "ps" : "workers");
    return flags->cluster ? check_name(flags->cluster) : fail_missing("--cluster=NAME");
}

static void make_places(const struct cluster_flags *flags, struct arena *arena,
                        struct cluster_spec *ret)
{
    ret->name = flags->cluster;
    ret->is_distributed = true;
    for (enum job job = 0; job < JOB_COUNT; job++) {
        const int room = ret->room[job] = cluster_tasks_max(job);
        ret->hosts[job].at = arena_array(arena, (size_t)room, sizeof *ret->hosts[job].at);
        for (int i = 0; i < room; i++)
            ret->hosts[job].at[i] = arena_format(arena, "%s/%d", job_name(job), i);
    }
}

err named_cluster_make(const struct cluster_flags *flags, struct arena *arena,
                       struct cluster_spec *ret)
{
    int count[JOB_COUNT];
    TRY(check_words(flags));
    TRY(fail_missing(!flags->tasks      ? "--tasks=ps=N,worker=N"
                     : !flags->job_name ? "--job_name"
                                        : NULL));
    TRY(read_flag(flags->tasks, count));
    make_places(flags, arena, ret);
    for (enum job job = 0; job < JOB_COUNT; job++) ret->hosts[job].count = count[job];
    ret->task = (int)flags->task_index;
    return OK;
}

err named_cluster_visit(const struct cluster_flags *flags, struct arena *arena,
                        struct cluster_spec *ret)
{
    TRY(check_words(flags));
    make_places(flags, arena, ret);
    return OK;
}

/* ---- what is said at a place ---- */

const char *named_tasks_text(const struct membership *r, char ret[NAMED_TASKS_BYTES])
{
    snprintf(ret, NAMED_TASKS_BYTES, "ps=%d,worker=%d", r->count[JOB_PS], r->count[JOB_WORKER]);
    return ret;
}

static const char joined_word[] = " joined", resizes_word[] = " resizes=";

const char *named_place_text(const struct named_place *p, char ret[NAMED_PLACE_BYTES])
{
    char tasks[NAMED_TASKS_BYTES], resizes[NAMED_TASKS_BYTES] = "";
    if (p->membership.resizes)
        snprintf(resizes, sizeof resizes, "%s%llu", resizes_word,
                 (unsigned long long)p->membership.resizes);
    snprintf(ret, NAMED_PLACE_BYTES, "%s %s%s%s", p->address,
             named_tasks_text(&p->membership, tasks), resizes, p->has_joined ? joined_word : "");
    return ret;
}

/* "" or " resizes=1" */
static bool read_resizes(const char *text, size_t bytes, uint64_t *ret)
{
    const size_t before = strlen(resizes_word);
    char number[NAMED_TASKS_BYTES];
    int64_t resizes = 0;
    *ret = 0;
    if (!bytes) return true;
    if (bytes < before || bytes - before >= sizeof number ||
        strncmp(text, resizes_word, before) != 0)
        return false;
    snprintf(number, sizeof number, "%.*s", (int)(bytes - before), text + before);
    if (!ranks_number(number, 1, INT64_MAX - 1, &resizes)) return false;
    *ret = (uint64_t)resizes;
    return true;
}

static size_t without_joined(const char *text, bool *ret_has_joined)
{
    const size_t bytes = strlen(text), word = strlen(joined_word);
    *ret_has_joined = bytes >= word && strcmp(text + bytes - word, joined_word) == 0;
    return *ret_has_joined ? bytes - word : bytes;
}

bool named_place_read(const char *text, struct named_place *ret)
{
    const size_t bytes = strcspn(text, " ");
    if (bytes >= ADDRESS_MAX || !text[bytes]) return false;
    snprintf(ret->address, ADDRESS_MAX, "%.*s", (int)bytes, text);
    const char *tasks = text + bytes + 1;
    const size_t length = strcspn(tasks, " ");
    const size_t rest = without_joined(tasks + length, &ret->has_joined);
    return read_tasks(tasks, length, ret->membership.count) &&
           read_resizes(tasks + length, rest, &ret->membership.resizes) &&
           !address_check(ret->address);
}

err named_cluster_check_absent(const struct cluster_flags *flags)
{
    const char *given = flags->cluster ? "cluster" : flags->tasks ? "tasks" : NULL;
    return given ? fail(ERR_INPUT, "--%s goes with --coordinator", given) : OK;
}
