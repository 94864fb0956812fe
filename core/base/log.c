/* log.c - see log.h.
 *
 * A line is put together in one buffer and leaves in one write. LOG_LINE_MAX is PIPE_BUF of Linux:
 * up to this size a write to a pipe is not mixed with those of other tasks.
 */
#include "core/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/files/url.h"
#include "core/base/log_kept.h"
#include "core/base/printable.h"

enum { LOG_LINE_MAX = 4096, LOG_TASK_MAX = 64, LOG_WRITE_TRIES = 16, LOG_COLUMNS = 80 };
/* A character in JSON may need a backslash; time, level and task precede the text. */
enum { LOG_JSON_HEAD_MAX = 256, LOG_JSON_TEXT_MAX = (LOG_LINE_MAX - LOG_JSON_HEAD_MAX) / 2 };
enum { LOG_LIMITED_TEXT_MAX = LOG_LINE_MAX / 2 }; /* leaves room for what is added to it */

static const char clear_line[] = "\r\033[K";

static struct {
    atomic_int level;
    char task[LOG_TASK_MAX]; /* "worker/1" or "" */
    atomic_bool status_shown;
    enum log_format format;
    bool ends_at_terminal; /* log_set_terminal: standard error is a pipe to a launcher at a terminal
                            */
    double pace_s;         /* -1: log_set_pace() was not called */
} state = {.level = LOG_INFO, .pace_s = -1};

struct line {
    char at[LOG_LINE_MAX];
    size_t length; /* at most LOG_LINE_MAX - 1: the last byte is kept for the end of line */
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
    size_t space = LOG_LINE_MAX - line->length;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(line->at + line->length, space, format, arguments);
    va_end(arguments);
    if (wanted > 0) line->length += (size_t)wanted < space ? (size_t)wanted : space - 1;
}

/* Text may quote a file or a peer: line ends and terminal escapes in it are made harmless. */
__attribute__((format(printf, 3, 0))) static void
print_safely(char *to, size_t size, const char *format, va_list arguments)
{
    char text[LOG_LINE_MAX];
    const int wanted = vsnprintf(text, sizeof text, format, arguments);
    to[0] = '\0';
    if (wanted < 0) return;
    char *url = urls_hide(text); /* a URL that is cut is dropped: its secrets cannot be found */
    if (wanted >= LOG_LINE_MAX && url) *url = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\n') *c = ' ';
    printable_copy(to, size, text);
}

__attribute__((format(printf, 2, 0))) static void
add_printable(struct line *line, const char *format, va_list arguments)
{
    print_safely(line->at + line->length, LOG_LINE_MAX - line->length, format, arguments);
    line->length += strlen(line->at + line->length);
}

const char *log_time(const struct timespec *time, bool is_dated, char ret[LOG_TIME_MAX])
{
    struct tm local;
    char day[LOG_TIME_MAX / 2] = "", zone[8] = "";
    localtime_r(&time->tv_sec, &local);
    if (is_dated) {
        strftime(day, sizeof day, "%Y-%m-%dT", &local);
        strftime(zone, sizeof zone, "%z", &local); /* +0100 */
    }
    snprintf(ret, LOG_TIME_MAX, "%s%02d:%02d:%02d.%03ld%.3s%s%s", day, local.tm_hour, local.tm_min,
             local.tm_sec, time->tv_nsec / 1000000, zone, *zone ? ":" : "", *zone ? zone + 3 : "");
    return ret;
}

static const char *time_text(char ret[LOG_TIME_MAX])
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return log_time(&now, state.format != LOG_TEXT, ret);
}

static void add_text(struct line *line, enum log_level level, const char *text)
{
    static const char *const marks[] = {[LOG_ERROR] = "ERROR: ", [LOG_WARNING] = "WARNING: "};
    char time[LOG_TIME_MAX];
    add(line, "%s %s%s%s%s", time_text(time), state.task, *state.task ? ": " : "",
        level <= LOG_WARNING ? marks[level] : "", text);
}

static void add_json(struct line *line, enum log_level level, const char *text)
{
    char time[LOG_TIME_MAX];
    add(line, "{\"time\": \"%s\", \"level\": \"%s\", \"task\": \"%s\", \"text\": \"",
        time_text(time), log_level_name(level), state.task);
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') line->at[line->length++] = '\\';
        line->at[line->length++] = (unsigned char)*c < ' ' ? ' ' : *c;
    }
    add(line, "\"}");
}

/* What cannot be written is lost: a log must not stop the program. */
static void write_out(const struct line *line)
{
    for (int tries = 0; tries < LOG_WRITE_TRIES; tries++) {
        ssize_t written = write(STDERR_FILENO, line->at, line->length);
        if (written >= 0 || errno != EINTR) return;
    }
}

/* Cuts the line after this many characters, so that a status line never wraps. */
static void cut(struct line *line, size_t from, int columns)
{
    int used = 0;
    for (size_t i = from; i < line->length; i++) {
        bool starts_character = (line->at[i] & 0xc0) != 0x80;
        if (starts_character && ++used > columns) line->length = i;
    }
}

static int terminal_columns(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return (known ? size.ws_col : LOG_COLUMNS) - 1;
}

void log_set_level(enum log_level level)
{
    state.level = level;
}

void log_set_format(enum log_format format)
{
    state.format = format;
}

bool log_is_json(void)
{
    return state.format == LOG_JSON;
}

void log_set_task(const char *task)
{
    snprintf(state.task, sizeof state.task, "%.60s", task);
}

const char *log_level_name(enum log_level level)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    return names[level];
}

const char *log_task(void)
{
    return state.task;
}

static void write_text(enum log_level level, const char *text)
{
    struct line line;
    line.length = 0;
    if (atomic_exchange(&state.status_shown, false)) add(&line, "%s", clear_line);
    (state.format == LOG_JSON ? add_json : add_text)(&line, level, text);
    line.at[line.length++] = '\n';
    write_out(&line);
    log_keep(level, text);
}

__attribute__((format(printf, 2, 0))) static void print_line(char ret[LOG_LINE_MAX],
                                                             const char *format, va_list arguments)
{
    print_safely(ret, log_is_json() ? LOG_JSON_TEXT_MAX : LOG_LINE_MAX, format, arguments);
}

__attribute__((format(printf, 2, 0))) static void
write_unlimited(enum log_level level, const char *format, va_list arguments)
{
    char text[LOG_LINE_MAX];
    if ((int)level > state.level) return;
    print_line(text, format, arguments);
    write_text(level, text);
}

/* Without a place: the caller has a limit of its own. */
__attribute__((format(printf, 2, 3))) static void write_line(enum log_level level,
                                                             const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_unlimited(level, format, arguments);
    va_end(arguments);
}

void log_asked(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_unlimited(LOG_INFO, format, arguments);
    va_end(arguments);
}

/* ---- how much each place says ---- */

enum { PLACES_MAX = 512, EXAMPLE_MAX = 120 };

static struct places {
    pthread_mutex_t lock; /* guards all that follows */
    struct spoken {
        struct log_place place; /* file NULL: none yet */
        enum log_level level;
        uint64_t since_ms, said, left_out;
        char example[EXAMPLE_MAX]; /* the first line that was left out */
    } at[PLACES_MAX];
    int silenced;         /* places that left lines out */
    bool has_told_at_end; /* the function for atexit() is registered */
} places = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t (*now_ms_of_test)(void);

void log_set_clock(uint64_t (*now_ms)(void))
{
    now_ms_of_test = now_ms;
}

static uint64_t time_now_ms(void)
{
    return now_ms_of_test ? now_ms_of_test() : clock_ms();
}

/* If all PLACES_MAX are taken, which no program reaches, the rest share one. */
static struct spoken *spoken_of(const struct log_place *place)
{
    const size_t first = ((uintptr_t)place->file >> 3) * 31 + (size_t)place->line;
    for (size_t i = 0; i < PLACES_MAX; i++) {
        struct spoken *at = &places.at[(first + i) % PLACES_MAX];
        if (!at->place.file) at->place = *place;
        if (at->place.file == place->file && at->place.line == place->line) return at;
    }
    return &places.at[0];
}

/* With the lock held: returns what the place left out, and starts its count anew. */
static struct spoken take_left_out(struct spoken *at, uint64_t time_ms)
{
    const struct spoken before = *at;
    places.silenced -= at->left_out > 0;
    at->since_ms = time_ms;
    at->said = at->left_out = 0;
    return before;
}

static void tell_left_out(const struct spoken *before, uint64_t time_ms)
{
    if (before->left_out)
        write_line(before->level, "%llu more lines of this kind in the last %.0f s: \"%s\"",
                   (unsigned long long)before->left_out,
                   (double)(time_ms - before->since_ms) / 1000, before->example);
}

/* is_over: the process ends, so all places report. */
static void tell_all_left_out(bool is_over)
{
    const uint64_t time_ms = time_now_ms();
    for (int i = 0; i < PLACES_MAX; i++) {
        struct spoken before = {.left_out = 0};
        pthread_mutex_lock(&places.lock);
        struct spoken *at = &places.at[i];
        const bool has_any = places.silenced > 0;
        if (at->left_out && (is_over || time_ms - at->since_ms >= LOG_LIMITED_MS))
            before = take_left_out(at, time_ms);
        pthread_mutex_unlock(&places.lock);
        if (!has_any) return;
        tell_left_out(&before, time_ms);
    }
}

void log_tell_left_out(void)
{
    tell_all_left_out(false);
}

static void tell_at_end(void)
{
    tell_all_left_out(true);
}

static void leave_out(struct spoken *at, enum log_level level, const char *text)
{
    if (!at->left_out++) {
        at->level = level;
        snprintf(at->example, sizeof at->example, "%s", text);
        places.silenced++;
    }
    if (!places.has_told_at_end) places.has_told_at_end = atexit(tell_at_end) == 0;
}

/* Whether the place may write this line now. */
static bool admit(const struct log_place *place, enum log_level level, const char *text)
{
    const uint64_t time_ms = time_now_ms();
    struct spoken before = {.left_out = 0};
    if (level == LOG_DEBUG) return true;
    pthread_mutex_lock(&places.lock);
    struct spoken *at = spoken_of(place);
    if (!at->said || time_ms - at->since_ms >= LOG_LIMITED_MS) before = take_left_out(at, time_ms);
    const bool is_admitted = at->said < LOG_PLACE_LINES;
    if (is_admitted)
        at->said++;
    else
        leave_out(at, level, text);
    pthread_mutex_unlock(&places.lock);
    tell_left_out(&before, time_ms);
    return is_admitted;
}

void log_line_of(const struct log_place *place, enum log_level level, const char *format, ...)
{
    char text[LOG_LINE_MAX];
    va_list arguments;
    if ((int)level > state.level) return;
    va_start(arguments, format);
    print_line(text, format, arguments);
    va_end(arguments);
    if (!admit(place, level, text)) return;
    write_text(level, text);
    log_tell_left_out();
}

void log_status(const char *format, ...)
{
    if (!log_is_terminal() || state.level < LOG_INFO) return;
    struct line line;
    line.length = 0;
    add(&line, "%s", clear_line);
    size_t from = line.length;
    va_list arguments;
    va_start(arguments, format);
    add_printable(&line, format, arguments);
    va_end(arguments);
    cut(&line, from, terminal_columns());
    state.status_shown = true;
    write_out(&line);
}

void log_clear_status(void)
{
    struct line line = {.length = 0};
    if (!atomic_exchange(&state.status_shown, false)) return;
    add(&line, "%s", clear_line);
    write_out(&line);
}

bool log_is_terminal(void)
{
    if (log_is_json()) return false;
    if (state.ends_at_terminal) return true;
    const char *kind = getenv("TERM");
    return kind && *kind && strcmp(kind, "dumb") != 0 && isatty(STDERR_FILENO) == 1;
}

void log_set_terminal(void)
{
    state.ends_at_terminal = true;
}

void log_set_pace(double seconds)
{
    state.pace_s = seconds;
}

bool log_is_due(struct log_pace *pace, uint64_t now_ns)
{
    const double seconds = state.pace_s >= 0 ? state.pace_s : LOG_PACE_S;
    const uint64_t free_lines = state.pace_s >= 0 ? 1 : LOG_PACED_FREE;
    const bool is_soon = (double)(now_ns - pace->said_ns) < seconds * 1e9;
    if (pace->said >= free_lines && is_soon) return false;
    pace->said++;
    pace->said_ns = now_ns;
    return true;
}

void log_limited(struct log_limit *limit, uint64_t now_ms, enum log_level level, const char *format,
                 ...)
{
    char text[LOG_LIMITED_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (limit->has_said && now_ms - limit->said_ms < LOG_LIMITED_MS) {
        limit->left_out++;
        write_line(LOG_DEBUG, "%s", text);
        return;
    }
    if (limit->left_out)
        write_line(level, "%s (and %llu more like this since the last such line)", text,
                   (unsigned long long)limit->left_out);
    else
        write_line(level, "%s", text);
    *limit = (struct log_limit){.has_said = true, .said_ms = now_ms};
}

void log_budgeted(struct log_budget *budget, int most, uint64_t now_ms, enum log_level level,
                  const char *text)
{
    if (now_ms - budget->since_ms >= LOG_LIMITED_MS) {
        if (budget->left_out)
            write_line(level, "%llu more lines were left out",
                       (unsigned long long)budget->left_out);
        *budget = (struct log_budget){.since_ms = now_ms};
    }
    if (budget->said >= most) {
        budget->left_out++;
        write_line(LOG_DEBUG, "%s", text);
        return;
    }
    budget->said++;
    write_line(level, "%s", text);
}
