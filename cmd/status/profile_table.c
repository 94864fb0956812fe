/* profile_table.c - see profile.h. */
#include "cmd/status/profile.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/status/status.h"

/* The parts of a step, by categories of the timeline */
enum step_part {
    STEP,
    COMPUTE,
    DATA,
    PUSH,
    WAIT,
    HOOKS,
    RECEIVE,
    APPLY,
    REFRESH,
    CHECKPOINT,
    PARTS
};
static const struct {
    const char *name, *category, *other; /* other: NULL, or a second category of the same part */
    enum { OF_WORKER, OF_PS } owner;
} parts[PARTS] = {
    [STEP] = {"step", "step", NULL, OF_WORKER},
    [COMPUTE] = {"compute", "forward", "backward", OF_WORKER},
    [DATA] = {"data", "data", NULL, OF_WORKER},
    [PUSH] = {"push", "push", NULL, OF_WORKER},
    [WAIT] = {"wait", "wait", NULL, OF_WORKER},
    [HOOKS] = {"hooks", "hooks", NULL, OF_WORKER},
    [RECEIVE] = {"receive", "receive", NULL, OF_PS},
    [APPLY] = {"apply", "apply", NULL, OF_PS},
    [REFRESH] = {"copy", "refresh", NULL, OF_PS},
    [CHECKPOINT] = {"checkpoint", "checkpoint", NULL, OF_PS},
};

enum { PROCESSES_MAX = 8192 };

struct part_stretch {
    int process;
    enum step_part part;
    double begin_us, end_us;
};

struct node_time {
    const char *name, *op;
    double forward_us, backward_us;
};

struct sums {
    const char *task[PROCESSES_MAX + 1]; /* by process; NULL: none */
    double us[PROCESSES_MAX + 1][PARTS];
    int steps[PROCESSES_MAX + 1];
    struct part_stretch *stretches; /* [count] */
    struct node_time *nodes;        /* [node_count] */
    size_t count, node_count;
    int worker_steps; /* of all workers */
};

/* ---- events ---- */

static int part_of(const char *category)
{
    for (int k = 0; k < PARTS; k++)
        if (strcmp(category, parts[k].category) == 0 ||
            (parts[k].other && strcmp(category, parts[k].other) == 0))
            return k;
    return -1;
}

static void add_node(struct sums *s, const char *name, const char *op, const char *category,
                     double us)
{
    const bool is_back = strcmp(category, "backward") == 0;
    s->nodes[s->node_count++] =
        (struct node_time){name, op ? op : name, is_back ? 0 : us, is_back ? us : 0};
}

static err add_span(struct sums *s, json_t *event, int process)
{
    const char *category, *name, *op = NULL;
    double begin_us, us;
    if (json_unpack(event, "{ss ss sF sF}", "cat", &category, "name", &name, "ts", &begin_us, "dur",
                    &us) ||
        !(us >= 0 && us < 1e15))
        return fail(ERR_PROTOCOL, "an invalid span");
    op = json_string_value(json_object_get(json_object_get(event, "args"), "op"));
    const int part = part_of(category);
    if (part == STEP) {
        s->steps[process]++;
        s->worker_steps++;
    }
    if (part == COMPUTE) add_node(s, name, op, category, us);
    if (part >= 0)
        s->stretches[s->count++] =
            (struct part_stretch){process, (enum step_part)part, begin_us, begin_us + us};
    return OK;
}

static err add_event(struct sums *s, json_t *event)
{
    const char *phase, *name = "";
    int process;
    if (json_unpack(event, "{ss si s?s}", "ph", &phase, "pid", &process, "name", &name) ||
        process < 0 || process > PROCESSES_MAX)
        return fail(ERR_PROTOCOL, "an invalid event");
    if (strcmp(phase, "X") == 0) return add_span(s, event, process);
    if (strcmp(name, "process_name") == 0)
        s->task[process] =
            json_string_value(json_object_get(json_object_get(event, "args"), "name"));
    return OK;
}

/* ---- sums ---- */

static int compare_stretches(const void *a, const void *b)
{
    const struct part_stretch *x = a, *y = b;
    if (x->process != y->process) return x->process - y->process;
    if (x->part != y->part) return (int)x->part - (int)y->part;
    return (x->begin_us > y->begin_us) - (x->begin_us < y->begin_us);
}

/* Sums stretches; where those of one part overlap, they count once. */
static void sum_stretches(struct sums *s)
{
    double until_us = 0;
    if (s->count) qsort(s->stretches, s->count, sizeof *s->stretches, compare_stretches);
    for (size_t i = 0; i < s->count; i++) {
        const struct part_stretch *at = &s->stretches[i];
        const bool is_first = !i || at[-1].process != at->process || at[-1].part != at->part;
        const double begin_us = is_first || at->begin_us > until_us ? at->begin_us : until_us;
        if (at->end_us > begin_us) s->us[at->process][at->part] += at->end_us - begin_us;
        if (is_first || at->end_us > until_us) until_us = at->end_us;
    }
}

static int compare_names(const void *a, const void *b)
{
    const struct node_time *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int compare_times(const void *a, const void *b)
{
    const struct node_time *x = a, *y = b;
    const double first = x->forward_us + x->backward_us, second = y->forward_us + y->backward_us;
    return (first < second) - (first > second);
}

static void sum_nodes(struct sums *s)
{
    size_t count = 0;
    if (!s->node_count) return;
    qsort(s->nodes, s->node_count, sizeof *s->nodes, compare_names);
    for (size_t i = 0; i < s->node_count; i++) {
        if (count && strcmp(s->nodes[count - 1].name, s->nodes[i].name) == 0) {
            s->nodes[count - 1].forward_us += s->nodes[i].forward_us;
            s->nodes[count - 1].backward_us += s->nodes[i].backward_us;
        } else {
            s->nodes[count++] = s->nodes[i];
        }
    }
    s->node_count = count;
    qsort(s->nodes, count, sizeof *s->nodes, compare_times);
}

/* ---- the profile ---- */

/* steps: for a ps, which has none of its own, those of the timeline */
static json_t *task_json(const struct sums *s, int process, int steps)
{
    const bool is_ps = strncmp(s->task[process], "ps/", 3) == 0;
    const int count = is_ps ? steps : s->steps[process];
    json_t *ms = json_object();
    for (int k = STEP + 1; k < PARTS; k++)
        if ((parts[k].owner == OF_PS) == is_ps)
            json_object_set_new(ms, parts[k].name,
                                json_real(count ? s->us[process][k] / count / 1000 : 0));
    json_t *task = json_pack("{ss si so}", "task", s->task[process], "steps", count, "ms", ms);
    if (!is_ps)
        json_object_set_new(task, "ms_a_step",
                            json_real(count ? s->us[process][STEP] / count / 1000 : 0));
    return task;
}

static json_t *profile_json(const struct sums *s, json_t *other)
{
    json_t *tasks = json_array(), *nodes = json_array();
    const int steps = (int)json_integer_value(json_object_get(other, "steps"));
    const double each = s->worker_steps ? 1000.0 * s->worker_steps : 1;
    for (int process = 0; process <= PROCESSES_MAX; process++)
        if (s->task[process]) json_array_append_new(tasks, task_json(s, process, steps));
    for (size_t i = 0; i < s->node_count; i++)
        json_array_append_new(nodes,
                              json_pack("{ss ss sf sf}", "node", s->nodes[i].name, "op",
                                        s->nodes[i].op, "forward_ms", s->nodes[i].forward_us / each,
                                        "backward_ms", s->nodes[i].backward_us / each));
    return json_pack("{sO? si so so sO?}", "first_step", json_object_get(other, "first_step"),
                     "steps", steps, "tasks", tasks, "nodes", nodes, "missing",
                     json_object_get(other, "missing"));
}

static err sum(struct sums *s, json_t *timeline, json_t **ret)
{
    size_t i;
    json_t *event, *events = json_object_get(timeline, "traceEvents");
    if (!json_is_array(events)) return fail(ERR_PROTOCOL, "an invalid timeline");
    s->stretches = calloc(json_array_size(events) + 1, sizeof *s->stretches);
    s->nodes = calloc(json_array_size(events) + 1, sizeof *s->nodes);
    if (!s->stretches || !s->nodes) return fail(ERR_MEMORY, "no memory for a timeline");
    json_array_foreach(events, i, event) TRY(add_event(s, event));
    sum_stretches(s);
    sum_nodes(s);
    *ret = profile_json(s, json_object_get(timeline, "otherData"));
    return *ret ? OK : fail(ERR_MEMORY, "no memory for a profile");
}

err profile_sum(json_t *timeline, json_t **ret)
{
    struct sums *s = calloc(1, sizeof *s);
    if (!s) return fail(ERR_MEMORY, "no memory for a timeline");
    const err e = sum(s, timeline, ret);
    free(s->stretches);
    free(s->nodes);
    free(s);
    return e;
}

/* ---- printing ---- */

static void print_tasks(json_t *tasks, bool is_ps)
{
    char text[SAFE_TEXT_MAX];
    size_t i;
    json_t *task;
    printf("\n%-10s", is_ps ? "ps" : "worker");
    if (!is_ps) printf(" %8s", "step");
    for (int k = STEP + 1; k < PARTS; k++)
        if ((parts[k].owner == OF_PS) == is_ps) printf(" %10s", parts[k].name);
    puts("   (ms a step)");
    json_array_foreach(tasks, i, task)
    {
        const char *name = json_string_value(json_object_get(task, "task"));
        if ((strncmp(name, "ps/", 3) == 0) != is_ps) continue;
        printf("%-10s", safe_text(name, text));
        if (!is_ps) printf(" %8.3f", json_number_value(json_object_get(task, "ms_a_step")));
        for (int k = STEP + 1; k < PARTS; k++)
            if ((parts[k].owner == OF_PS) == is_ps)
                printf(" %10.3f", json_number_value(
                                      json_object_get(json_object_get(task, "ms"), parts[k].name)));
        puts("");
    }
}

static void print_nodes(json_t *nodes, int most)
{
    char name[SAFE_TEXT_MAX], op[SAFE_TEXT_MAX];
    size_t i;
    json_t *node;
    double all = 1e-12;
    json_array_foreach(nodes, i, node) all +=
        json_number_value(json_object_get(node, "forward_ms")) +
        json_number_value(json_object_get(node, "backward_ms"));
    printf("\n%-28s %-20s %9s %9s %6s\n", "node", "op", "forward", "backward", "%");
    json_array_foreach(nodes, i, node)
    {
        const double forward = json_number_value(json_object_get(node, "forward_ms")),
                     backward = json_number_value(json_object_get(node, "backward_ms"));
        if (i >= (size_t)most) break;
        printf("%-28s %-20s %9.3f %9.3f %6.1f\n",
               safe_text(json_string_value(json_object_get(node, "node")), name),
               safe_text(json_string_value(json_object_get(node, "op")), op), forward, backward,
               100 * (forward + backward) / all);
    }
    if (json_array_size(nodes) > (size_t)most)
        printf("and %zu more nodes (--nodes)\n", json_array_size(nodes) - (size_t)most);
}

void profile_print(json_t *profile, int nodes_max)
{
    char name[SAFE_TEXT_MAX], text[SAFE_TEXT_MAX];
    size_t i;
    json_t *missing, *tasks = json_object_get(profile, "tasks");
    printf("%lld steps from step %lld on\n",
           (long long)json_integer_value(json_object_get(profile, "steps")),
           (long long)json_integer_value(json_object_get(profile, "first_step")));
    print_tasks(tasks, false);
    print_tasks(tasks, true);
    print_nodes(json_object_get(profile, "nodes"), nodes_max);
    json_array_foreach(json_object_get(profile, "missing"), i, missing)
    {
        const char *task = json_string_value(json_object_get(missing, "task")),
                   *why = json_string_value(json_object_get(missing, "why"));
        if (task && why)
            printf("! %s is missing: %s\n", safe_text(task, name), safe_text(why, text));
    }
}
