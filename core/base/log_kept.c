/* log_kept.c - see log_kept.h. */
#include "core/base/log_kept.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/printable.h"

struct kept_line {
    struct timespec time;
    enum log_level level;
    char text[LOG_KEPT_BYTES];
};

static struct {
    pthread_mutex_t lock; /* guards what follows */
    uint64_t count;       /* lines so far */
    struct kept_line at[LOG_KEPT_LINES];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

void log_keep(enum log_level level, const char *text)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&all.lock);
    struct kept_line *line = &all.at[all.count++ % LOG_KEPT_LINES];
    line->time = now;
    line->level = level;
    printable_copy(line->text, sizeof line->text, text);
    pthread_mutex_unlock(&all.lock);
}

static json_t *line_json(uint64_t number)
{
    const struct kept_line *line = &all.at[(number - 1) % LOG_KEPT_LINES];
    char time[LOG_TIME_MAX];
    return json_pack("{sI sI ss ss ss ss}", "number", (json_int_t)number, "unix_ms",
                     (json_int_t)line->time.tv_sec * 1000 + line->time.tv_nsec / 1000000, "time",
                     log_time(&line->time, true, time), "level", log_level_name(line->level),
                     "task", log_task(), "text", line->text);
}

json_t *log_kept_json(uint64_t from, uint64_t last)
{
    json_t *lines = json_array();
    pthread_mutex_lock(&all.lock);
    const uint64_t end = all.count + 1;
    uint64_t first = all.count > LOG_KEPT_LINES ? end - LOG_KEPT_LINES : 1, at;
    if (from > first) first = from < end ? from : end;
    if (last && end - first > last) first = end - last;
    for (at = first; lines && at < end && at - first < LOG_KEPT_PAGE_MAX; at++)
        json_array_append_new(lines, line_json(at));
    pthread_mutex_unlock(&all.lock);
    return lines ? json_pack("{so sI}", "lines", lines, "next", (json_int_t)at) : NULL;
}
