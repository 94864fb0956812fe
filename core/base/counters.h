/* counters.h - what a task counts, or a server (counters.def), and how others see it.
 *
 * Who counts adds to a number of its own; nothing here has a lock. Numbers below 2^53 are exact.
 */
#ifndef CORE_BASE_COUNTERS_H
#define CORE_BASE_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum counter {
#define COUNTER(ID, ...) COUNTER_##ID,
#define SERVED(ID, ...)
#include "core/base/counters.def"
#undef COUNTER
#undef SERVED
    COUNTERS
};

enum served_counter {
#define COUNTER(ID, ...)
#define SERVED(ID, ...) SERVED_##ID,
#include "core/base/counters.def"
#undef COUNTER
#undef SERVED
    SERVED_COUNTERS
};

struct counters {
    double at[COUNTERS];
};

enum counter_type { TYPE_TOTAL, TYPE_GAUGE, TYPE_BUCKET, TYPE_SUM, TYPE_COUNT };
enum counter_owner { BY_ALL, BY_WORKER, BY_CHIEF, BY_PS, BY_FIRST, BY_SERVER };

struct counter_row {
    const char *family; /* without dtrain_ and _total */
    enum counter_type type;
    const char *labels; /* "": none */
    enum counter_owner owner;
    const char *help; /* of the family; "": as before */
};
extern const struct counter_row counter_rows[COUNTERS], served_rows[SERVED_COUNTERS];

/* "dtrain_message_bytes_total", "dtrain_staleness_bucket" */
enum { COUNTER_NAME_MAX = 64 };
const char *counter_name(enum counter, char ret[COUNTER_NAME_MAX]);
/* The same without dtrain_, and with its labels: "message_bytes_total{direction="sent",...}" */
enum { COUNTER_KEY_MAX = 128 };
const char *counter_key(enum counter, char ret[COUNTER_KEY_MAX]);
const char *counter_type_name(enum counter_type);   /* as Prometheus has it */
const char *counter_owner_name(enum counter_owner); /* "worker", "ps/0" */
/* Whether a task that is such a one counts it. */
bool counter_is_of(enum counter, bool is_ps, bool is_first);

/* One more that a histogram of staleness has seen. */
void counters_note_staleness(struct counters *, uint64_t staleness);

/* As bytes of a message, and from there: false: they are none, or not finite. */
enum { COUNTERS_BYTES = 8 * COUNTERS };
void counters_pack(const struct counters *, unsigned char ret[COUNTERS_BYTES]);
bool counters_unpack(const unsigned char *, size_t bytes, struct counters *ret);

/* What is known of one task. */
enum { STATUS_STATE_MAX = 160, STATUS_NAME_MAX = 32 };
struct task_status {
    char task[STATUS_NAME_MAX];   /* "worker/3" */
    char state[STATUS_STATE_MAX]; /* what it does, or waits for */
    bool is_ps;
    int index;
    bool is_stepping;  /* of who tells itself: it has joined, and the job continues */
    uint64_t heard_ms; /* by the clock of who tells */
    struct counters counters;
    double recent_s;        /* over this many seconds up to heard_ms; 0: not known */
    struct counters recent; /* what was added then to those that only grow */
};

/* The state of a worker that has left as it was allowed to, and was not lost */
extern const char task_status_gone[];
bool task_status_is_gone(const struct task_status *);
/* Of what grows: lately, where that is known, else since the task began. A job that was well for
 * hours, and is not now, is not. */
double task_status_lately(const struct task_status *, enum counter);
/* The clock of its host by now, in seconds since 1970; 0: it has told none. */
double task_status_clock_s(const struct task_status *, uint64_t now_ms);
/* Of all that a worker's time went to (COUNTER_TIME_COMPUTE to COUNTER_TIME_HOOKS) */
double task_status_time_lately(const struct task_status *);

/* The text format of Prometheus, 0.0.4, with a label "task" in each line. */
void counters_write_text(FILE *, const struct task_status *, int count);
/* The same, of a server: of each of its models, with a label "model" (and "label"); or of its only
 * one, whose name is "", without. */
enum { SERVED_MODEL_MAX = 128 }; /* bytes of its name */
struct served_counters {
    const char *model, *label; /* of its version; NULL: none */
    double at[SERVED_COUNTERS];
};
void counters_write_served(FILE *, const struct served_counters *, int count);

/* For people: the table, of tasks and of servers. */
void counters_help(FILE *);

#endif
