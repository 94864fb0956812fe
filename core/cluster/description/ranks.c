/* ranks.c - see ranks.h. */
#include "core/cluster/description/ranks.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fingerprint.h"
#include "core/cluster/description/host_file.h"
#include "net/transport.h"

enum {
    PORT_FIRST = 10000,
    PORT_BLOCKS = 220, /* of RANKS_PORTS ports each, up to port 32000 */
};

bool ranks_number(const char *text, int64_t least, int64_t most, int64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    return isdigit((unsigned char)*text) && !*end && !errno && *ret >= least && *ret <= most;
}

err ranks_read_roles(const char *flag, const char *roles, int ranks, int *ret_ps)
{
    static const char word[] = "ps=";
    const size_t before = sizeof word - 1;
    int64_t ps = 0;
    if (strncmp(roles, word, before) != 0)
        return fail(ERR_INPUT, "--%s: expected ps=N, how many of the tasks are ps, got \"%.64s\"",
                    flag, roles);
    if (!ranks_number(roles + before, 1, PS_MAX, &ps))
        return fail(ERR_INPUT, "--%s: expected ps=N with N from 1 to %d, got \"%.64s\"", flag,
                    (int)PS_MAX, roles);
    if (ps >= ranks)
        return fail(ERR_INPUT, "--%s=%.64s: of %d tasks none is left to be a worker", flag, roles,
                    ranks);
    if (ranks - ps > WORKERS_MAX)
        return fail(ERR_INPUT, "--%s=%.64s: %d workers, at most %d are allowed", flag, roles,
                    ranks - (int)ps, (int)WORKERS_MAX);
    *ret_ps = (int)ps;
    return OK;
}

int64_t ranks_base_port(uint64_t job)
{
    return PORT_FIRST + (int64_t)(job % PORT_BLOCKS) * RANKS_PORTS;
}

err ranks_address(const char *host, int64_t port, struct arena *arena, const char **ret)
{
    const bool is_v6 = strchr(host, ':');
    if (port > RANKS_PORT_MAX)
        return fail(ERR_INPUT, "--base_port: the tasks of %.100s have no room below port %d", host,
                    RANKS_PORT_MAX + 1);
    *ret = arena_format(arena, is_v6 ? "[%s]:%lld" : "%s:%lld", host, (long long)port);
    return address_check(*ret);
}

struct ranks ranks_of(int count, int own, struct arena *arena)
{
    return (struct ranks){.count = count,
                          .own = own,
                          .host = arena_array(arena, (size_t)count, sizeof(char *)),
                          .port = arena_array(arena, (size_t)count, sizeof(int64_t))};
}

static err addresses(const struct ranks *ranks, int first, int count, struct arena *arena,
                     struct strings *ret)
{
    *ret = (struct strings){.at = arena_array(arena, (size_t)count, sizeof *ret->at)};
    for (; ret->count < count; ret->count++) {
        const int rank = first + ret->count;
        TRY(ranks_address(ranks->host[rank], ranks->port[rank], arena, &ret->at[ret->count]));
    }
    return OK;
}

err ranks_make(const char *flag, const char *roles, const struct ranks *ranks, struct arena *arena,
               struct cluster_spec *ret)
{
    struct cluster_spec spec = {.is_distributed = true};
    int ps = 0;
    TRY(ranks_read_roles(flag, roles, ranks->count, &ps));
    TRY(addresses(ranks, 0, ps, arena, &spec.hosts[JOB_PS]));
    TRY(addresses(ranks, ps, ranks->count - ps, arena, &spec.hosts[JOB_WORKER]));
    spec.job = ranks->own < ps ? JOB_PS : JOB_WORKER;
    spec.task = ranks->own < ps ? ranks->own : ranks->own - ps;
    *ret = spec;
    return OK;
}

/* ---- what launchers say ---- */

enum rank_word { RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, WORDS };

/* Environment variables of a launcher; job: one that differs from job to job, NULL: none. */
static const struct launcher {
    const char *words[WORDS], *job;
} launchers[] = {
    {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE"},
     "PMIX_NAMESPACE"},                                                     /* Open MPI */
    {{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, NULL}, /* MPICH, Intel MPI */
    {{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}, "MASTER_PORT"}, /* torchrun */
};
enum { LAUNCHERS = sizeof launchers / sizeof launchers[0] };

/* The first launcher whose rank variable is set; NULL: none. */
static const struct launcher *find(ranks_variable *variable)
{
    for (int i = 0; i < LAUNCHERS; i++)
        if (variable(launchers[i].words[RANK])) return &launchers[i];
    return NULL;
}

static err read_words(const struct launcher *l, ranks_variable *variable, int64_t ret[WORDS])
{
    for (enum rank_word word = 0; word < WORDS; word++) {
        const bool is_rank = word == RANK || word == LOCAL_RANK;
        const char *value = variable(l->words[word]);
        if (!value)
            return fail(ERR_INPUT, "--ranks: %s is in the environment, and %s is not",
                        l->words[RANK], l->words[word]);
        if (!ranks_number(value, is_rank ? 0 : ret[word - 1] + 1, RANKS_MAX - is_rank, &ret[word]))
            return fail(ERR_INPUT, "%s=%.100s in the environment cannot be right", l->words[word],
                        value);
    }
    return OK;
}

/* ---- where ranks are ---- */

static err all_here(const int64_t words[WORDS], struct arena *arena, struct host_slots *ret)
{
    if (words[LOCAL_SIZE] != words[SIZE])
        return fail(ERR_INPUT,
                    "--ranks needs --hostfile, which names the hosts: %d of %d ranks are on this "
                    "one",
                    (int)words[LOCAL_SIZE], (int)words[SIZE]);
    ret->at = arena_array(arena, (size_t)words[SIZE], sizeof *ret->at);
    for (; ret->count < words[SIZE]; ret->count++)
        ret->at[ret->count] = (struct host_slot){"localhost", "localhost", ret->count};
    return OK;
}

/* The launcher may have distributed ranks in another order than the slots of the file. All ranks of
 * a host are refused together, so that no other waits for them. */
static err check_place(const char *hostfile, const struct host_slots *slots,
                       const int64_t words[WORDS])
{
    const int size = (int)words[SIZE];
    if (slots->count < size)
        return fail(ERR_INPUT, "%s: %d slots for %d ranks", hostfile, slots->count, size);
    const struct host_slot *own = &slots->at[words[RANK]];
    int here = 0;
    for (int i = 0; i < size; i++) here += strcmp(slots->at[i].host, own->host) == 0;
    if (own->place == words[LOCAL_RANK] && here == words[LOCAL_SIZE]) return OK;
    return fail(ERR_INPUT,
                "%s: rank %d is %d of the %d on its host, and by this file, one slot after the "
                "other, it would be %d of %d on %s",
                hostfile, (int)words[RANK], (int)words[LOCAL_RANK], (int)words[LOCAL_SIZE],
                own->place, here, own->host);
}

static err find_slots(const char *hostfile, const int64_t words[WORDS], struct arena *arena,
                      struct host_slots *ret)
{
    if (!hostfile) return all_here(words, arena, ret);
    TRY(host_file_read(hostfile, arena, ret));
    return check_place(hostfile, ret, words);
}

err ranks_read(const char *roles, const char *hostfile, int64_t base_port, ranks_variable *variable,
               struct arena *arena, struct cluster_spec *ret)
{
    const struct launcher *launcher = find(variable);
    struct host_slots slots = {0};
    int64_t words[WORDS];
    if (!launcher)
        return fail(ERR_INPUT, "--ranks: no rank is in the environment: start with mpirun, mpiexec "
                               "or torchrun");
    TRY(read_words(launcher, variable, words));
    TRY(find_slots(hostfile, words, arena, &slots));
    const char *job = launcher->job ? variable(launcher->job) : NULL;
    if (!base_port) base_port = ranks_base_port(job ? fingerprint(job, strlen(job)) : 0);
    const struct ranks ranks = ranks_of((int)words[SIZE], (int)words[RANK], arena);
    for (int i = 0; i < ranks.count; i++) {
        ranks.host[i] = slots.at[i].host;
        ranks.port[i] = base_port + slots.at[i].place;
    }
    return ranks_make("ranks", roles, &ranks, arena, ret);
}
