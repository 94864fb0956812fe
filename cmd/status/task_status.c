/* task_status.c - parses what ps report about the tasks of a job. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/status/status.h"
#include "core/base/printable.h"
#include "core/cluster/description/cluster_spec.h"

static bool read_name(const char *name, struct task_status *ret)
{
    char rest;
    int index;
    const bool is_ps = strncmp(name, "ps/", 3) == 0;
    if (!is_ps && strncmp(name, "worker/", 7) != 0) return false;
    if (sscanf(strchr(name, '/') + 1, "%d%c", &index, &rest) != 1 || index < 0) return false;
    ret->is_ps = is_ps;
    ret->index = index;
    task_name(is_ps ? JOB_PS : JOB_WORKER, index, ret->task);
    return strcmp(ret->task, name) == 0;
}

const char *safe_text(const char *text, char ret[SAFE_TEXT_MAX])
{
    printable_copy(ret, SAFE_TEXT_MAX, text ? text : "");
    for (char *c = ret; *c; c++)
        if (*c == '\n') *c = ' ';
    return ret;
}

/* A number, or inf and -inf, as board_json() writes it; other words are NaN. */
static double number_of(json_t *json)
{
    const char *text = json_string_value(json);
    if (!text) return json_number_value(json);
    if (strcmp(text, "inf") == 0) return (double)INFINITY;
    return strcmp(text, "-inf") == 0 ? -(double)INFINITY : (double)NAN;
}

static void read_counters(json_t *counters, struct counters *ret)
{
    char key[COUNTER_KEY_MAX];
    for (int c = 0; c < COUNTERS; c++)
        ret->at[c] = number_of(json_object_get(counters, counter_key((enum counter)c, key)));
}

/* Replaces unprintable characters, as the state is printed on terminals. */
static void read_state(const char *state, struct task_status *ret)
{
    snprintf(ret->state, sizeof ret->state, "%s", state);
    for (char *c = ret->state; *c; c++)
        if (!isprint((unsigned char)*c)) *c = '?';
}

static bool read_task(json_t *json, uint64_t now_ms, struct task_status *ret)
{
    const char *name, *state;
    double age_s;
    json_t *counters;
    *ret = (struct task_status){0};
    if (json_unpack(json, "{ss sF ss so}", "task", &name, "age_secs", &age_s, "state", &state,
                    "counters", &counters) ||
        !read_name(name, ret) || !(age_s >= 0 && age_s < 1e9))
        return false;
    const uint64_t age_ms = (uint64_t)(age_s * 1000);
    ret->heard_ms = now_ms > age_ms ? now_ms - age_ms : 0;
    read_state(state, ret);
    read_counters(counters, &ret->counters);
    const json_t *recent = json_object_get(json, "recent");
    const double recent_s = json_number_value(json_object_get(recent, "secs"));
    if (!(recent_s > 0 && recent_s < 1e9)) return true;
    ret->recent_s = recent_s;
    read_counters(json_object_get(recent, "counters"), &ret->recent);
    return true;
}

err job_status_add(struct job_status *s, json_t *answer, uint64_t now_ms)
{
    json_t *tasks = json_object_get(answer, "tasks"), *task;
    const size_t more = json_array_size(tasks);
    size_t i;
    if (!json_is_array(tasks) || more > STATUS_TASKS_MAX - (size_t)s->count)
        return fail(ERR_PROTOCOL, "an invalid status");
    struct task_status *larger = realloc(s->tasks, ((size_t)s->count + more + 1) * sizeof *larger);
    if (!larger) return fail(ERR_MEMORY, "no memory for %zu tasks", more);
    s->tasks = larger;
    if (!s->json) s->json = json_array();
    json_array_foreach(tasks, i, task)
    {
        if (!read_task(task, now_ms, &s->tasks[s->count]))
            return fail(ERR_PROTOCOL, "an invalid status");
        s->count++;
        json_array_append(s->json, task);
    }
    return OK;
}

static int compare(const void *a, const void *b)
{
    const struct task_status *x = a, *y = b;
    if (x->is_ps != y->is_ps) return y->is_ps - x->is_ps;
    return (x->index > y->index) - (x->index < y->index);
}

void job_status_sort(struct job_status *s)
{
    if (s->count) qsort(s->tasks, (size_t)s->count, sizeof *s->tasks, compare);
}

void job_status_free(struct job_status *s)
{
    free(s->tasks);
    free(s->unanswered);
    json_decref(s->json);
    *s = (struct job_status){0};
}
