/* log.h - lines for a person, on standard error; how often waits and progress are logged.
 *
 * Texts are made safe to print (printable.h), and line ends in them become blanks. One line is one
 * write(2), so that lines of several tasks never mix. The task prefix ("ps/0") is set once, at
 * start. Library code does not log; roles, runners and commands do.
 */
#ifndef CORE_BASE_LOG_H
#define CORE_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* TEXT: with the time of day; DATED: with date, time and zone; JSON: an object per line, with the
 * members time (as dated), level, task and text, and no status lines. Set once, at start. */
enum log_format { LOG_TEXT, LOG_DATED, LOG_JSON };

void log_set_format(enum log_format);
bool log_is_json(void);
void log_set_level(enum log_level);
void log_set_task(const char *task); /* copied; "" for none */
const char *log_task(void);
const char *log_level_name(enum log_level); /* "warning" */
/* "12:26:00.695", or is_dated "2026-11-23T12:26:00.695+01:00" */
enum { LOG_TIME_MAX = 64 };
const char *log_time(const struct timespec *, bool is_dated, char ret[LOG_TIME_MAX]);
/* Each place in the source may write LOG_PLACE_LINES lines per LOG_LIMITED_MS; then comes how many
 * more there were, and the text of one of them: no loop floods a disk. Debug lines have no limit.
 */
#define log_line(level, ...)                                                                       \
    log_line_of(&(const struct log_place){__FILE__, __LINE__}, level, __VA_ARGS__)
enum { LOG_PLACE_LINES = 500 };
struct log_place {
    const char *file;
    int line;
};
void log_line_of(const struct log_place *, enum log_level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Without that limit: for lines that the user has asked for. */
void log_asked(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes how many lines were left out, for each place whose LOG_LIMITED_MS are over. Also done with
 * every line, and at the end of the process. */
void log_tell_left_out(void);
void log_set_clock(uint64_t (*now_ms)(void)); /* for tests; NULL: clock_ms() */
/* For waits that have a limit: lines about one of LOG_WAIT_LONG_MS or more are warnings. */
enum { LOG_WAIT_LONG_MS = 30000, LOG_WAIT_NOTE_MS = 10000, LOG_WAIT_SELDOM_MS = 600000 };
static inline enum log_level log_wait_level(uint64_t waited_ms)
{
    return waited_ms < LOG_WAIT_LONG_MS ? LOG_INFO : LOG_WARNING;
}
/* Whether a line about a wait is due: after 10, 20, 30, 45, 67 s and so on. Each pause is half of
 * the wait so far, 10 s at least and 10 minutes at most: about 15 lines in an hour. said_ms: when
 * the last line was written; since_ms or earlier: there was none yet. All by one clock. */
static inline bool log_wait_is_due(uint64_t since_ms, uint64_t said_ms, uint64_t now_ms)
{
    if (said_ms < since_ms) said_ms = since_ms;
    uint64_t pause_ms = (said_ms - since_ms) / 2;
    if (pause_ms < LOG_WAIT_NOTE_MS) pause_ms = LOG_WAIT_NOTE_MS;
    if (pause_ms > LOG_WAIT_SELDOM_MS) pause_ms = LOG_WAIT_SELDOM_MS;
    return now_ms - said_ms >= pause_ms;
}
/* Progress lines of one place: the first LOG_PACED_FREE have no limit, then one is due every
 * LOG_PACE_S seconds; after log_set_pace() one every so many seconds from the first on, 0: all. */
enum { LOG_PACED_FREE = 100, LOG_PACE_S = 1 };
struct log_pace { /* zeroed: nothing has been said */
    uint64_t said, said_ns;
};
void log_set_pace(double seconds);
bool log_is_due(struct log_pace *, uint64_t now_ns); /* true: the caller writes it */

/* Whether to log the time-th occurrence (from 1) of something that repeats, as errors on a full
 * disk: the first five, then every power of two. */
static inline bool log_again(uint64_t time)
{
    return time <= 5 || (time & (time - 1)) == 0;
}

/* A line that is redrawn in place on a terminal. Ended by the next log_line. */
void log_status(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_clear_status(void); /* before other output there; no effect if there is none */
bool log_is_terminal(void);
/* Standard error is a pipe to a launcher that redraws status lines on a terminal. */
void log_set_terminal(void);

/* Lines that others can cause as often as they like. Each place that logs one has a limit of its
 * own, whatever the text is, as it may quote a stranger. Between two lines of one place
 * LOG_LIMITED_MS pass; those left out are counted, the next line says how many, and
 * --log_level=debug writes them. */
enum { LOG_LIMITED_MS = 10000 };

struct log_limit { /* of one place; zeroed: nothing has been said */
    bool has_said;
    uint64_t said_ms, left_out;
};

/* Lines of many kinds that others can cause: `most` are written per LOG_LIMITED_MS, then how many
 * were left out. */
struct log_budget { /* zeroed: nothing has been said */
    uint64_t since_ms;
    int said;
    uint64_t left_out;
};
void log_budgeted(struct log_budget *, int most, uint64_t now_ms, enum log_level, const char *text);

/* now_ms: of clock_ms(), or a test's. */
void log_limited(struct log_limit *, uint64_t now_ms, enum log_level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
