/* slurm.c - see slurm.h. Forms of the variables: the OUTPUT ENVIRONMENT VARIABLES of srun's manual.
 */
#include "core/cluster/description/slurm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUPS_MAX = 4, /* bracket groups in a name */
    DIGITS_MAX = 9,
};

/* ---- lists of nodes ---- */

struct host_names {
    struct arena *arena;
    const char *list; /* for messages */
    const char *at[RANKS_MAX];
    int count;
};

static err refuse(const char *list, const char *why)
{
    return fail(ERR_INPUT, "\"%.200s\": %s", list, why);
}

/* Reads decimal digits at *at, and moves it past them. */
static err read_number(const char *list, const char **at, int *ret_digits, int64_t *ret)
{
    const size_t digits = strspn(*at, "0123456789");
    if (digits == 0 || digits > DIGITS_MAX) return refuse(list, "expected a number");
    *ret = strtoll(*at, NULL, 10);
    *ret_digits = (int)digits;
    *at += digits;
    return OK;
}

/* "7", "001-003": numbers are padded to the digits of the first. */
struct number_range {
    int64_t first, last;
    int digits;
};

static err read_range(const char *list, const char **at, struct number_range *ret)
{
    int digits;
    TRY(read_number(list, at, &ret->digits, &ret->first));
    ret->last = ret->first;
    if (**at == '-') {
        ++*at;
        TRY(read_number(list, at, &digits, &ret->last));
    }
    return ret->last >= ret->first ? OK : refuse(list, "a range goes down");
}

static err expand(struct host_names *n, const char *before, const char *rest, size_t length,
                  int groups);

/* Expands the brackets at `open`: one name per number, followed by the expansion of the rest. */
static err expand_group(struct host_names *n, const char *before, const char *rest, size_t length,
                        const char *open, int groups)
{
    const char *end = rest + length, *close = memchr(open, ']', (size_t)(end - open));
    if (!close) return refuse(n->list, "a bracket is not closed");
    if (groups == GROUPS_MAX) return refuse(n->list, "too many brackets in a name");
    for (const char *at = open; at < close;) {
        struct number_range range = {0};
        at++; /* the bracket, or a comma */
        TRY(read_range(n->list, &at, &range));
        if (at != close && *at != ',') return refuse(n->list, "expected numbers in brackets");
        for (int64_t i = range.first; i <= range.last; i++) {
            const char *name = arena_format(n->arena, "%s%.*s%0*lld", before, (int)(open - rest),
                                            rest, range.digits, (long long)i);
            TRY(expand(n, name, close + 1, (size_t)(end - close - 1), groups + 1));
        }
    }
    return OK;
}

/* Expands one entry of the list; before: its expanded front. */
static err expand(struct host_names *n, const char *before, const char *rest, size_t length,
                  int groups)
{
    const char *open = memchr(rest, '[', length);
    if (open) return expand_group(n, before, rest, length, open, groups);
    if (n->count == RANKS_MAX) return refuse(n->list, "too many nodes");
    const char *name = arena_format(n->arena, "%s%.*s", before, (int)length, rest);
    if (!*name) return refuse(n->list, "a name is empty");
    n->at[n->count++] = name;
    return OK;
}

/* Up to a comma outside brackets */
static size_t entry_length(const char *from)
{
    size_t length = 0;
    for (bool is_inside = false; from[length] && (is_inside || from[length] != ','); length++)
        is_inside = from[length] == '[' || (is_inside && from[length] != ']');
    return length;
}

err slurm_expand(const char *list, struct arena *arena, struct strings *ret)
{
    struct host_names *n = arena_new(arena, sizeof *n);
    *n = (struct host_names){.arena = arena, .list = list};
    for (const char *from = list; from;) {
        const size_t length = entry_length(from);
        TRY(expand(n, "", from, length, 0));
        from = from[length] ? from + length + 1 : NULL;
    }
    *ret = (struct strings){n->at, n->count};
    return OK;
}

/* ---- where ranks are ---- */

struct slurm_step {
    ranks_variable *variable;
    struct arena *arena;
    struct strings nodes;
    int *tasks;      /* [nodes] */
    int ranks, rank; /* number of ranks, and this one */
    int *node_of;    /* [ranks] */
    int *place_of;   /* [ranks] index among those of its node */
};

static err fail_variable(const char *name, const char *value)
{
    if (value) return fail(ERR_INPUT, "%s=%.100s in the environment cannot be right", name, value);
    return fail(ERR_INPUT, "--slurm: %s is not in the environment: start with srun", name);
}

/* The variable of the step, or else that of the job. */
static const char *either(const struct slurm_step *s, const char *name, const char *other)
{
    const char *value = s->variable(name);
    return value ? value : s->variable(other);
}

static err read_count(const struct slurm_step *s, const char *name, int64_t least, int64_t most,
                      int64_t *ret)
{
    const char *value = s->variable(name);
    return value && ranks_number(value, least, most, ret) ? OK : fail_variable(name, value);
}

/* "2(x3),1": how many tasks each node has */
static err read_tasks(struct slurm_step *s)
{
    const char *name = "SLURM_STEP_TASKS_PER_NODE";
    const char *value = either(s, name, "SLURM_TASKS_PER_NODE"), *at = value;
    int64_t sum = 0, count = 0, times;
    int node = 0, digits;
    if (!value) return fail_variable(name, NULL);
    s->tasks = arena_array(s->arena, (size_t)s->nodes.count, sizeof *s->tasks);
    for (bool has_more = true; has_more; at += has_more) {
        times = 1;
        if (read_number(value, &at, &digits, &count)) return fail_variable(name, value);
        if (strncmp(at, "(x", 2) == 0) {
            at += 2;
            if (read_number(value, &at, &digits, &times) || *at++ != ')')
                return fail_variable(name, value);
        }
        for (; times > 0 && node < s->nodes.count; times--, sum += count)
            s->tasks[node++] = (int)count;
        if (times > 0) return fail_variable(name, value);
        has_more = *at == ',';
    }
    return *at || node != s->nodes.count || sum != s->ranks ? fail_variable(name, value) : OK;
}

static void put(struct slurm_step *s, int rank, int node, int *used)
{
    s->node_of[rank] = node;
    s->place_of[rank] = used[node]++;
}

/* Block: nodes are filled one after the other; cyclic: each gets one in turn. */
static err deal_out(struct slurm_step *s)
{
    const char *name = "SLURM_DISTRIBUTION", *value = s->variable(name);
    const size_t length = value ? strcspn(value, ":,") : 0;
    const bool is_cyclic = length == strlen("cyclic") && strncmp(value, "cyclic", length) == 0;
    const bool is_block = !value || (length == strlen("block") && !strncmp(value, "block", length));
    int *used = arena_array(s->arena, (size_t)s->nodes.count, sizeof *used);
    s->node_of = arena_array(s->arena, (size_t)s->ranks, sizeof *s->node_of);
    s->place_of = arena_array(s->arena, (size_t)s->ranks, sizeof *s->place_of);
    if (!is_cyclic && !is_block)
        return fail(ERR_INPUT, "%s=%.100s: ranks are found by block or cyclic; else say the hosts",
                    name, value);
    for (int rank = 0, node = 0;
         rank < s->ranks;) { /* ends: the tasks of the nodes are the ranks */
        if (used[node] < s->tasks[node]) put(s, rank++, node, used);
        if (is_cyclic || used[node] == s->tasks[node]) node = (node + 1) % s->nodes.count;
    }
    return OK;
}

/* ---- ports ---- */

/* The place-th port of "12000-12003,12010"; 0: there are fewer. */
static err reserved_port(const char *list, int place, int64_t *ret)
{
    *ret = 0;
    for (const char *at = list; at;) {
        struct number_range range = {0};
        TRY(read_range(list, &at, &range));
        if (*at && *at != ',') return refuse(list, "expected ports");
        if (range.first + place <= range.last) {
            *ret = range.first + place;
            return *ret <= RANKS_PORT_MAX ? OK : refuse(list, "expected ports");
        }
        place -= (int)(range.last - range.first + 1);
        at = *at ? at + 1 : NULL;
    }
    return OK;
}

static err fail_few_ports(const struct slurm_step *s, const char *reserved)
{
    int most = 0;
    for (int i = 0; i < s->nodes.count; i++)
        if (s->tasks[i] > most) most = s->tasks[i];
    return fail(
        ERR_INPUT,
        "SLURM_STEP_RESV_PORTS=%.100s: a node has %d tasks, each of which needs a port: start "
        "with srun --resv-ports=%d",
        reserved, most, most);
}

static err port_of(const struct slurm_step *s, int place, int64_t base, int64_t *ret)
{
    const char *reserved = s->variable("SLURM_STEP_RESV_PORTS");
    int64_t job = 0, step = 0;
    if (base) {
        *ret = base + place;
    } else if (reserved) {
        TRY(reserved_port(reserved, place, ret));
        if (!*ret) return fail_few_ports(s, reserved);
    } else {
        TRY(read_count(s, "SLURM_JOB_ID", 0, INT64_MAX, &job));
        if (s->variable("SLURM_STEP_ID")) TRY(read_count(s, "SLURM_STEP_ID", 0, INT64_MAX, &step));
        *ret = ranks_base_port((uint64_t)(job + step)) + place;
    }
    return OK;
}

/* ---- the cluster ---- */

static err read_step(struct slurm_step *s)
{
    const char *name = "SLURM_STEP_NODELIST";
    const char *nodes = either(s, name, "SLURM_JOB_NODELIST");
    int64_t ranks, rank;
    TRY(read_count(s, "SLURM_PROCID", 0, RANKS_MAX, &rank));
    TRY(read_count(s, s->variable("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
                   rank + 1, RANKS_MAX, &ranks));
    s->rank = (int)rank;
    s->ranks = (int)ranks;
    if (!nodes) return fail_variable(name, NULL);
    const err e = slurm_expand(nodes, s->arena, &s->nodes);
    if (e) return fail_prefix(e, "%s", name);
    TRY(read_tasks(s));
    TRY(deal_out(s));
    const char *own = s->variable("SLURMD_NODENAME"), *counted = s->nodes.at[s->node_of[s->rank]];
    if (!own || strcmp(own, counted) == 0) return OK;
    return fail(ERR_INPUT, "--slurm: rank %d is on %s, and by SLURM_DISTRIBUTION it would be on %s",
                s->rank, own, counted);
}

err slurm_read(const char *roles, int64_t base_port, ranks_variable *variable, struct arena *arena,
               struct cluster_spec *ret)
{
    struct slurm_step s = {.variable = variable, .arena = arena};
    TRY(read_step(&s));
    const struct ranks ranks = ranks_of(s.ranks, s.rank, arena);
    for (int i = 0; i < ranks.count; i++) {
        ranks.host[i] = s.nodes.at[s.node_of[i]];
        TRY(port_of(&s, s.place_of[i], base_port, &ranks.port[i]));
    }
    return ranks_make("slurm", roles, &ranks, arena, ret);
}
