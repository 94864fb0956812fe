/* plan.c - `dtrain plan`: how many tasks a job needs, and what would limit its speed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/json_print.h"
#include "cmd/own_flags.h"
#include "cmd/plan/layouts.h"
#include "cmd/plan/record.h"
#include "core/base/replicas.h"
#include "core/base/standard_output.h"
#include "core/cluster/description/ports.h"

enum {
    PS_SHOWN = 7,       /* of the ladder: 1 to 100 */
    WORKERS_SHOWN = 10, /* 1 to 1,000 */
    TEXT_MAX = 32,
};
/* Of layouts that fit, it recommends the fewest ps with nearly_best of the highest speed, and as
 * many workers as still reach worth_it of the speed of a single one, each. */
static const double nearly_best = 0.95, worth_it = 0.8, uneven = 1.4;
/* A frame of 1500 bytes takes 1538 on the link, with header, checksum, preamble and gap, and
 * carries 1448 of TCP data. */
static const double PAYLOAD = 1448.0 / 1538;
static const double GIGA = 1e9, BITS = 8, MILLI = 1e-3;

struct plan_flags {
    int64_t ps, workers, hosts, measure;
    double link_gbit, round_trip_ms, memory_gb, computing_ms;
    const char *record;
    bool json;
};

static const struct field own_fields[] = {
    FIELD_OF(
        "workers", INT, struct plan_flags, workers, .fallback = "0", .max = WORKERS_MAX,
        .help =
            "number of workers; 0: as many as still run at 80 % of a single worker's speed each"),
    FIELD_OF("ps", INT, struct plan_flags, ps, .fallback = "0", .max = PS_MAX,
             .help =
                 "number of parameter servers; 0: the fewest that reach 95 % of the best speed"),
    FIELD_OF("hosts", INT, struct plan_flags, hosts, .fallback = "0", .max = WORKERS_MAX,
             .help =
                 "number of hosts that the tasks share: ps 0 and worker 0 are on the first, 1 on "
                 "the second, ..., and then from the first on again; 0: as --ps_hosts and "
                 "--worker_hosts say, where they are given, else each task has a host of its own"),
    FIELD_OF("link", FLOAT, struct plan_flags, link_gbit, .fallback = "10", .min = 0.001,
             .max = 10000,
             .help = "bandwidth of each host's link in Gbit/s, each way, of which headers of "
                     "Ethernet and TCP take 6 %"),
    FIELD_OF("round_trip", FLOAT, struct plan_flags, round_trip_ms, .fallback = "0.1", .max = 10000,
             .help = "round trip between two hosts in milliseconds (dtrain doctor measures it)"),
    FIELD_OF("memory", FLOAT, struct plan_flags, memory_gb, .fallback = "0", .max = 1e6,
             .help = "GB of memory available to each task; 0: no limit"),
    FIELD_OF("measure", INT, struct plan_flags, measure, .fallback = "0", .max = 1000000,
             .help = "measure the cost of a step on this host, in a short run of at least N steps; "
                     "0: do not measure"),
    FIELD_OF("record", STRING, struct plan_flags, record, .fallback = "null",
             .help = "take the cost of a step from the --result of a finished run instead"),
    FIELD_OF("computing", FLOAT, struct plan_flags, computing_ms, .fallback = "0", .max = 1e9,
             .help = "or state it: milliseconds that a worker computes per step"),
    FIELD_OF("json", BOOL, struct plan_flags, json, .fallback = "false",
             .help = "print one JSON object instead"),
    {0},
};

static const struct object own_object = {
    .name = "plan", .summary = "", .fields = own_fields, .size = sizeof(struct plan_flags)};

struct sizing {
    struct plan_flags flags;
    struct planned planned;
    struct run_record record;
    struct named_rows named;
    struct hosts hosts;
    struct sized chosen;
    struct sized table[PS_SHOWN][WORKERS_SHOWN]; /* ps 0: so few are not possible */
    struct arena arena;
};

static void print_plan_help(FILE *out)
{
    fputs("Predicts the size and speed of a job before it is started: memory per task, bytes\n"
          "per step, time per step and what limits it, for the given layout or else the best\n"
          "one, with a table of alternatives. Every task is assumed to run on a host of its\n"
          "own, unless --hosts or lists of hosts say which ones share one.\n\n"
          "  dtrain plan --workers=100 --ps=20 --link=25 --memory=64 --measure=200 SPEC.json\n"
          "  dtrain plan --link=25 --record=RESULT.json SPEC.json\n\n"
          "Memory and bytes follow from the spec and from the first batches, whose distinct\n"
          "rows of tables are counted. The cost of computing and updating has to be measured,\n"
          "in a short run of one ps and one worker on this host, or taken from a finished run\n"
          "(--result); without it, times cover the links only. Where several tasks compute on a\n"
          "host, measure with the cores that one of them will have (--threads). Takes all flags\n"
          "of a run (dtrain help flags) and:\n\n",
          out);
    flags_help(out, &own_object);
}

/* ---- inputs ---- */

static err find_costs(struct sizing *p, int argc, char **argv)
{
    const struct plan_flags *f = &p->flags;
    if ((f->measure > 0) + (f->record != NULL) + (f->computing_ms > 0) > 1)
        return fail(ERR_INPUT, "plan: --measure, --record and --computing stand for each other");
    if (f->record) return record_read(f->record, &p->record);
    if (f->measure) return record_measure(argc, argv, f->measure, &p->record);
    p->record.costs = (struct plan_costs){f->computing_ms > 0, f->computing_ms * MILLI, 0};
    return OK;
}

/* The index of the address's host, which is added if it is new; on: an address per host */
static int host_numbered(struct sizing *p, const char **on, const char *address)
{
    int at = 0;
    while (at < p->hosts.count && !address_is_same_host(on[at], address)) at++;
    if (at == p->hosts.count) on[p->hosts.count++] = address;
    return at;
}

static void find_hosts(struct sizing *p)
{
    const struct cluster_spec *cluster = &p->planned.run.cluster;
    const struct strings *ps = &cluster->hosts[JOB_PS], *workers = &cluster->hosts[JOB_WORKER];
    p->hosts.count = (int)p->flags.hosts;
    if (p->hosts.count || !cluster->is_distributed || cluster->name || !ps->count ||
        !workers->count)
        return;
    const char **on = arena_array(&p->arena, (size_t)(ps->count + workers->count), sizeof *on);
    for (enum job job = 0; job < JOB_COUNT; job++) {
        const struct strings *of = &cluster->hosts[job];
        int *at = arena_array(&p->arena, (size_t)of->count + 1, sizeof *at);
        for (int i = 0; i < of->count; i++) at[i] = host_numbered(p, on, of->at[i]);
        p->hosts.at[job] = at;
        p->hosts.named[job] = of->count;
    }
    if (!p->flags.ps) p->flags.ps = ps->count;
    if (!p->flags.workers) p->flags.workers = workers->count;
}

static err open_plan(struct sizing *p, int argc, char **argv)
{
    const struct plan_flags *f = &p->flags;
    char **words = arena_array(&p->arena, (size_t)argc + 1, sizeof *words);
    memcpy(words, argv, (size_t)argc * sizeof *words);
    p->hosts = (struct hosts){.link_bytes_s = f->link_gbit * GIGA / BITS * PAYLOAD,
                              .round_trip_s = f->round_trip_ms * MILLI,
                              .memory = f->memory_gb * GIGA};
    p->planned.is_spread = true;
    p->planned.ps_count = (int)f->ps;
    p->planned.workers = (int)f->workers;
    TRY(planned_open(&p->planned, "plan", argc, argv));
    find_hosts(p);
    TRY(find_costs(p, argc, words));
    return named_rows_count(&p->planned, &p->arena, &p->named);
}

/* ---- layouts ---- */

static err answer(struct sizing *p, int ps, int workers, struct sized *ret)
{
    struct over_ps spread;
    TRY(over_ps_open(&p->planned, &p->named, ps, &spread));
    const err e = over_ps_size(&spread, workers, &p->hosts, &p->record.costs, ret);
    over_ps_close(&spread);
    return e;
}

/* Includes a follower for each ps but ps/0 if the spec wants them. */
static int ps_of_row(const struct sizing *p, int row)
{
    const int homes = ladder_at(row);
    return replicas_all(homes, p->planned.run.spec.placement.is_held_twice);
}

/* If so few ps are not possible, the row stays empty. */
static err fill_row(struct sizing *p, int ps, struct sized row[WORKERS_SHOWN])
{
    struct over_ps spread;
    err e = over_ps_open(&p->planned, &p->named, ps, &spread);
    if (e) return e == ERR_INPUT ? OK : e;
    for (int i = 0; i < WORKERS_SHOWN && !e; i++)
        e = over_ps_size(&spread, ladder_at(i), &p->hosts, &p->record.costs, &row[i]);
    over_ps_close(&spread);
    return e;
}

static double speed(const struct sized *a)
{
    return a->ps && a->fits ? a->time.examples_s : 0;
}

/* *ret 0: no number of ps fits. */
static err best_ps(struct sizing *p, int workers, int *ret)
{
    struct sized of[PS_SHOWN] = {0};
    double best = 0;
    *ret = 0;
    for (int i = 0; i < PS_SHOWN; i++) {
        if (!p->table[i][0].ps) continue;
        TRY(answer(p, ps_of_row(p, i), workers, &of[i]));
        if (speed(&of[i]) > best) best = speed(&of[i]);
    }
    for (int i = 0; i < PS_SHOWN && !*ret && best > 0; i++)
        if (speed(&of[i]) >= nearly_best * best) *ret = of[i].ps;
    return OK;
}

/* ps 0: any number. *ret 0: none fits. */
static err best_workers(struct sizing *p, int ps, int *ret)
{
    struct sized own[1][WORKERS_SHOWN] = {0};
    const struct sized(*rows)[WORKERS_SHOWN] = ps ? own : p->table;
    const int count = ps ? 1 : PS_SHOWN;
    double alone = 0; /* speed of the fastest single worker */
    *ret = 0;
    for (int i = 0; i < PS_SHOWN; i++)
        if (speed(&p->table[i][0]) > alone) alone = speed(&p->table[i][0]);
    if (ps) TRY(fill_row(p, ps, own[0]));
    for (int i = 0; i < count; i++)
        for (int k = 0; k < WORKERS_SHOWN; k++) {
            const struct sized *a = &rows[i][k];
            if (speed(a) > 0 && speed(a) >= worth_it * alone * a->workers && a->workers > *ret)
                *ret = a->workers;
        }
    return OK;
}

static err choose(struct sizing *p)
{
    int ps = (int)p->flags.ps, workers = (int)p->flags.workers;
    if (!workers) TRY(best_workers(p, ps, &workers));
    if (!workers) workers = 1;
    if (!ps) TRY(best_ps(p, workers, &ps));
    if (!ps)
        return fail(ERR_INPUT,
                    "plan: with none of 1 to %d ps every task has enough of %g GB (--memory)",
                    ps_of_row(p, PS_SHOWN - 1), p->flags.memory_gb);
    return answer(p, ps, workers, &p->chosen);
}

/* ---- printing ---- */

static const char *bytes_text(double bytes, char ret[TEXT_MAX])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 1000 && unit < 4; unit++) bytes /= 1000;
    snprintf(ret, TEXT_MAX, "%.3g %s", bytes, units[unit]);
    return ret;
}

static const char *time_text(double seconds, char ret[TEXT_MAX])
{
    const bool is_long = seconds >= 1;
    snprintf(ret, TEXT_MAX, "%.3g %s", is_long ? seconds : seconds / MILLI, is_long ? "s" : "ms");
    return ret;
}

static void print_costs(const struct sizing *p)
{
    char computing[TEXT_MAX], updating[TEXT_MAX];
    const struct run_record *r = &p->record;
    if (!r->costs.has_any) {
        puts("costs: not known: times are those of the links alone (--measure=200, --record)");
        return;
    }
    printf("costs: %s to compute a step, %s to update all variables",
           time_text(r->costs.computing, computing), time_text(r->costs.updating, updating));
    if (r->steps > 0)
        printf("; of %.0f steps %s", r->steps, p->flags.record ? "of the record" : "on this host");
    puts("");
}

static void print_named(const struct sizing *p)
{
    const struct graph *g = p->planned.session.graph;
    for (int i = 0; i < g->param_count; i++)
        if (g->params[i]->held && g->params[i]->growth)
            printf("a batch names %.0f different rows of %s, which grows\n", p->named.at[i],
                   g->params[i]->name);
        else if (g->params[i]->held)
            printf("a batch names %.0f different rows of %s, of %lld\n", p->named.at[i],
                   g->params[i]->name, (long long)g->params[i]->shape.dim[0]);
}

static void print_memory(const struct sizing *p)
{
    char a[TEXT_MAX], b[TEXT_MAX], c[TEXT_MAX], d[TEXT_MAX], all[TEXT_MAX];
    const struct sized *x = &p->chosen;
    printf("  a ps needs      %s: values %s, slots %s, for workers %s, while it saves %s more\n",
           bytes_text(x->values + x->slots + x->windows + x->save, all), bytes_text(x->values, a),
           bytes_text(x->slots, b), bytes_text(x->windows, c), bytes_text(x->save, d));
    printf("  a worker needs  %s, and what it keeps of the data\n", bytes_text(x->worker, a));
    if (!x->fits) printf("  which does not fit into %g GB (--memory)\n", p->flags.memory_gb);
    const struct graph *g = p->planned.session.graph;
    for (int i = 0; i < g->param_count; i++)
        if (g->params[i]->growth)
            printf("  and each million rows of %s %s, over all ps\n", g->params[i]->name,
                   bytes_text(
                       1e6 * (double)check_row_bytes(g->params[i], &p->planned.run.spec.optimizers),
                       a));
}

static void print_step(const struct sizing *p)
{
    char a[TEXT_MAX], b[TEXT_MAX], c[TEXT_MAX], d[TEXT_MAX];
    const struct sized *x = &p->chosen;
    const struct plan_bytes *f = &x->fullest;
    printf("  a step sends    %s from a worker and %s to it; of them %s and %s to and from ps/%d\n",
           bytes_text(x->up, a), bytes_text(x->down, b), bytes_text(f->dense_up + f->rows_up, c),
           bytes_text(f->dense_down + f->rows_down, d), x->time.ps);
    printf("  a step takes    %s: %.4g examples/s\n", time_text(x->time.step_s, a),
           x->time.examples_s);
    for (int i = 0; i < BOUND_COUNT; i++)
        if (i != BOUND_SHARED_LINK || p->hosts.count)
            printf("    %-30s %9s%s\n", plan_bound_name((enum plan_bound)i),
                   time_text(x->time.parts_s[i], a), i == (int)x->time.bound ? "  bounds it" : "");
    const double share = (f->dense_up + f->rows_up) / x->up;
    if ((x->time.bound == BOUND_PS_LINK || x->time.bound == BOUND_UPDATING) &&
        share > uneven / x->ps)
        printf("  ps/%d has %.0f %% of the bytes: a placement.partitioner cuts large variables\n",
               x->time.ps, 100 * share);
}

static void print_table(const struct sizing *p)
{
    printf("\nexamples/s by ps (down) and workers (across); -: a task has not enough memory\n%8s",
           "");
    for (int i = 0; i < WORKERS_SHOWN; i++) printf(" %9d", ladder_at(i));
    puts("");
    for (int row = 0; row < PS_SHOWN; row++) {
        if (!p->table[row][0].ps) continue;
        printf("%8d", ps_of_row(p, row));
        for (int i = 0; i < WORKERS_SHOWN; i++)
            if (p->table[row][i].fits)
                printf(" %9.3g", p->table[row][i].time.examples_s);
            else
                printf(" %9s", "-");
        puts("");
    }
}

static void print_text(const struct sizing *p)
{
    const struct spec *spec = &p->planned.run.spec;
    printf("%s: %s, batches of %lld\n", spec->source,
           spec->train.mode == MODE_SYNC ? "sync" : "async", (long long)spec->data.batch_size);
    print_costs(p);
    print_named(p);
    printf("\n%d ps, %d worker%s", p->chosen.ps, p->chosen.workers,
           p->chosen.workers == 1 ? "" : "s");
    if (p->hosts.count) printf(" on %d host%s", p->hosts.count, p->hosts.count == 1 ? "" : "s");
    printf(", links of %g Gbit/s:\n", p->flags.link_gbit);
    print_memory(p);
    print_step(p);
    print_table(p);
}

/* ---- JSON ---- */

static json_t *answer_json(const struct sized *a)
{
    json_t *parts = json_object();
    for (int i = 0; i < BOUND_COUNT; i++)
        json_object_set_new(parts, plan_bound_name((enum plan_bound)i),
                            json_real(a->time.parts_s[i]));
    return json_pack("{si si sb s{sf sf sf sf} sf sf sf sf sf ss si so}", "ps", a->ps, "workers",
                     a->workers, "fits", a->fits, "ps_memory", "values", a->values, "slots",
                     a->slots, "windows", a->windows, "save", a->save, "worker_memory", a->worker,
                     "bytes_up", a->up, "bytes_down", a->down, "step_seconds", a->time.step_s,
                     "examples_per_second", a->time.examples_s, "bound",
                     plan_bound_name(a->time.bound), "fullest_ps", a->time.ps, "parts", parts);
}

static err print_json(const struct sizing *p)
{
    const struct graph *g = p->planned.session.graph;
    json_t *table = json_array(), *named = json_object();
    for (int row = 0; row < PS_SHOWN; row++)
        for (int i = 0; i < WORKERS_SHOWN; i++)
            if (p->table[row][i].ps) json_array_append_new(table, answer_json(&p->table[row][i]));
    for (int i = 0; i < g->param_count; i++)
        if (g->params[i]->held)
            json_object_set_new(named, g->params[i]->name, json_real(p->named.at[i]));
    const struct plan_costs *c = &p->record.costs;
    return json_print(json_pack("{so si so sb sf sf so}", "layout", answer_json(&p->chosen),
                                "hosts", p->hosts.count, "rows", named, "costs_known", c->has_any,
                                "computing_seconds", c->computing, "updating_seconds", c->updating,
                                "table", table));
}

static err make_plan(struct sizing *p, int argc, char **argv)
{
    TRY(own_flags_take(&own_object, &argc, argv, &p->arena, &p->flags));
    TRY(open_plan(p, argc, argv));
    for (int row = 0; row < PS_SHOWN; row++) TRY(fill_row(p, ps_of_row(p, row), p->table[row]));
    TRY(choose(p));
    if (p->flags.json) return print_json(p);
    print_text(p);
    return OK;
}

static int cmd_plan(int argc, char **argv)
{
    struct sizing *p = calloc(1, sizeof *p);
    if (!p) return report_error(fail(ERR_MEMORY, "no memory for a plan"));
    cpu_environment_prepare(argv);
    const err e = make_plan(p, argc - 1, argv + 1);
    const int code = e ? report_error(e) : EXIT_DONE;
    planned_close(&p->planned);
    arena_free(&p->arena);
    free(p);
    return code;
}

const struct command command_plan = {
    .name = "plan",
    .arguments = "[FLAGS] SPEC.json",
    .summary = "say how large a job would be, and what would bound it",
    .run = cmd_plan,
    .topic = "say how large a job would be, and what would bound it",
    .print_help = print_plan_help,
    .takes_run_flags = true,
};
