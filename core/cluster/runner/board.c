/* board.c - see board.h. */
#include "core/cluster/runner/board.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RECENT_MS = 15000 }; /* "recent" covers this time at least, and twice that at most */

struct noted {
    uint64_t ms; /* 0: empty */
    struct counters counters;
};

struct entry_of_task {
    bool is_there, is_own;
    struct task_status status;
    struct noted before, last; /* RECENT_MS apart */
};

struct board {
    pthread_mutex_t lock; /* guards what follows up to turned_ms */
    struct entry_of_task *at[JOB_COUNT];
    int count[JOB_COUNT];
    char *placement; /* NULL: not known */
    atomic_uint_least64_t turned_ms;
};

err board_open(struct board **ret)
{
    struct board *b = calloc(1, sizeof *b);
    if (!b) return fail(ERR_MEMORY, "no memory for counters");
    pthread_mutex_init(&b->lock, NULL);
    *ret = b;
    return OK;
}

void board_close(struct board *b)
{
    if (!b) return;
    for (int job = 0; job < JOB_COUNT; job++) free(b->at[job]);
    free(b->placement);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* With the lock held. NULL: no memory. */
static struct entry_of_task *entry_at(struct board *b, enum job job, int task)
{
    if (task >= b->count[job]) {
        const size_t count = (size_t)task + 1;
        struct entry_of_task *larger = realloc(b->at[job], count * sizeof *larger);
        if (!larger) return NULL;
        memset(larger + b->count[job], 0, (count - (size_t)b->count[job]) * sizeof *larger);
        b->at[job] = larger;
        b->count[job] = (int)count;
    }
    return &b->at[job][task];
}

/* Whether the task was restarted: its counters have begun anew. */
static bool is_of_another_life(const struct noted *n, const struct task_status *status)
{
    return !n->ms || status->heard_ms < n->ms ||
           status->counters.at[COUNTER_UPTIME] < n->counters.at[COUNTER_UPTIME];
}

static void note_recent(struct entry_of_task *entry)
{
    struct task_status *status = &entry->status;
    const struct noted now = {status->heard_ms, status->counters};
    if (is_of_another_life(&entry->last, status)) entry->before = entry->last = now;
    status->recent_s = (double)(now.ms - entry->before.ms) / 1000;
    for (int c = 0; c < COUNTERS; c++)
        status->recent.at[c] = counter_rows[c].type == TYPE_GAUGE
                                   ? 0
                                   : now.counters.at[c] - entry->before.counters.at[c];
    if (now.ms - entry->last.ms < RECENT_MS) return;
    entry->before = entry->last;
    entry->last = now;
}

err board_put(struct board *b, enum job job, int task, const struct task_status *status)
{
    pthread_mutex_lock(&b->lock);
    struct entry_of_task *entry = entry_at(b, job, task);
    if (entry) {
        entry->is_there = true;
        entry->status = *status;
        note_recent(entry);
    }
    pthread_mutex_unlock(&b->lock);
    return entry ? OK : fail(ERR_MEMORY, "no memory for the counters of %d tasks", task + 1);
}

void board_note_own(struct board *b, enum job job, int task)
{
    pthread_mutex_lock(&b->lock);
    struct entry_of_task *entry = entry_at(b, job, task);
    if (entry) entry->is_own = true;
    pthread_mutex_unlock(&b->lock);
}

void board_set_placement(struct board *b, char *text)
{
    pthread_mutex_lock(&b->lock);
    free(b->placement);
    b->placement = text;
    pthread_mutex_unlock(&b->lock);
}

char *board_placement(struct board *b)
{
    pthread_mutex_lock(&b->lock);
    char *copy = b->placement ? strdup(b->placement) : NULL;
    pthread_mutex_unlock(&b->lock);
    return copy;
}

void board_limit(struct board *b, const struct membership *membership)
{
    pthread_mutex_lock(&b->lock);
    for (int job = 0; job < JOB_COUNT; job++)
        if (b->count[job] > membership->count[job]) b->count[job] = membership->count[job];
    pthread_mutex_unlock(&b->lock);
}

void board_turn(struct board *b, uint64_t now_ms)
{
    atomic_store_explicit(&b->turned_ms, now_ms, memory_order_relaxed);
}

uint64_t board_turned_ms(const struct board *b)
{
    return atomic_load_explicit(&b->turned_ms, memory_order_relaxed);
}

struct task_status *board_copy(struct board *b, bool only_own, int *ret_count)
{
    int count = 0;
    pthread_mutex_lock(&b->lock);
    struct task_status *copy =
        malloc(((size_t)b->count[JOB_PS] + (size_t)b->count[JOB_WORKER] + 1) * sizeof *copy);
    for (int job = 0; copy && job < JOB_COUNT; job++)
        for (int i = 0; i < b->count[job]; i++) {
            const struct entry_of_task *entry = &b->at[job][i];
            if (entry->is_there && (entry->is_own || !only_own)) copy[count++] = entry->status;
        }
    pthread_mutex_unlock(&b->lock);
    *ret_count = count;
    return copy;
}

/* ---- as JSON ---- */

/* JSON has no numbers that are not finite. */
static json_t *number_json(double number)
{
    const double exact = (double)(INT64_C(1) << 53);
    if (number == floor(number) && fabs(number) < exact) return json_integer((json_int_t)number);
    if (isfinite(number)) return json_real(number);
    return json_string(isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

static json_t *counters_json(const struct task_status *status, const struct counters *counters)
{
    json_t *all = json_object();
    char key[COUNTER_KEY_MAX];
    for (int c = 0; c < COUNTERS; c++) {
        const double number = counters->at[c];
        if (number != 0 && counter_is_of((enum counter)c, status->is_ps, status->index == 0))
            json_object_set_new(all, counter_key((enum counter)c, key), number_json(number));
    }
    return all;
}

static json_t *told_json(const struct task_status *status, uint64_t now_ms)
{
    const uint64_t age_ms = now_ms > status->heard_ms ? now_ms - status->heard_ms : 0;
    json_t *json =
        json_pack("{ss sf ss so}", "task", status->task, "age_secs", (double)age_ms / 1000, "state",
                  status->state, "counters", counters_json(status, &status->counters));
    if (json && status->recent_s > 0)
        json_object_set_new(json, "recent",
                            json_pack("{sf so}", "secs", status->recent_s, "counters",
                                      counters_json(status, &status->recent)));
    return json;
}

json_t *board_json(struct board *b, bool only_own, uint64_t from, int max, uint64_t now_ms)
{
    int count;
    struct task_status *all = board_copy(b, only_own, &count);
    json_t *tasks = all ? json_array() : NULL;
    json_t *answer = tasks ? json_pack("{so}", "tasks", tasks) : NULL;
    uint64_t i = from;
    for (; answer && i < (uint64_t)count && i - from < (uint64_t)max; i++)
        json_array_append_new(tasks, told_json(&all[i], now_ms));
    if (answer && i < (uint64_t)count)
        json_object_set_new(answer, "next", json_integer((json_int_t)i));
    free(all);
    return answer;
}
