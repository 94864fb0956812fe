/* counters.h - counters of tasks and servers (counters.def), and how they are sent and shown.
 *
 * Each thread that counts has counters of its own; there are no locks. Numbers below 2^53 are
 * exact.
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
    const char *family; /* without the prefix dtrain_ */
    enum counter_type type;
    const char *labels; /* "": none */
    enum counter_owner owner;
    const char *help; /* of the family; "": as in the row before */
};
extern const struct counter_row counter_rows[COUNTERS], served_rows[SERVED_COUNTERS];

/* "dtrain_message_bytes_total", "dtrain_staleness_bucket" */
enum { COUNTER_NAME_MAX = 64 };
const char *counter_name(enum counter, char ret[COUNTER_NAME_MAX]);
/* The same without dtrain_, and with its labels: "message_bytes_total{direction="sent",...}" */
enum { COUNTER_KEY_MAX = 128 };
const char *counter_key(enum counter, char ret[COUNTER_KEY_MAX]);
const char *counter_type_name(enum counter_type);   /* as Prometheus calls it */
const char *counter_owner_name(enum counter_owner); /* "worker", "ps/0" */
/* Whether such a task counts it. is_first: its index is 0. */
bool counter_is_of(enum counter, bool is_ps, bool is_first);

/* Adds one observation to the histogram of staleness. */
void counters_note_staleness(struct counters *, uint64_t staleness);

/* To and from bytes of a message. false: of another length, or a number is not finite. */
enum { COUNTERS_BYTES = 8 * COUNTERS };
void counters_pack(const struct counters *, unsigned char ret[COUNTERS_BYTES]);
bool counters_unpack(const unsigned char *, size_t bytes, struct counters *ret);

/* What this task knows of one task, which may be itself. */
enum { STATUS_STATE_MAX = 160, STATUS_NAME_MAX = 32 };
struct task_status {
    char task[STATUS_NAME_MAX];   /* "worker/3" */
    char state[STATUS_STATE_MAX]; /* what it does or waits for */
    bool is_ps;
    int index;
    bool is_stepping;  /* of the reporting task itself: it has joined, and the job continues */
    uint64_t heard_ms; /* when this was reported, by the reader's clock_ms() */
    struct counters counters;
    double recent_s; /* length of the window of `recent`, which ends at heard_ms; 0: not known */
    struct counters recent; /* by how much totals grew in that window */
};

/* The state of a worker that has left in an orderly way, and was not lost */
extern const char task_status_gone[];
bool task_status_is_gone(const struct task_status *);
/* The recent growth of a total if known, else its growth since the task began: hours without
 * trouble must not hide a problem of now. */
double task_status_lately(const struct task_status *, enum counter);
/* What its host's clock shows now, in seconds since 1970; 0: not reported. */
double task_status_clock_s(const struct task_status *, uint64_t now_ms);
/* The sum of the parts of a worker's time (COUNTER_TIME_COMPUTE to COUNTER_TIME_HOOKS), in s */
double task_status_time_lately(const struct task_status *);

/* The text format of Prometheus, 0.0.4, with a label "task" in each line. */
void counters_write_text(FILE *, const struct task_status *, int count);
/* The same for a server: for each model, with a label "model" (and "label"); for a single model
 * whose name is "", without. */
enum { SERVED_MODEL_MAX = 128 }; /* bytes of a model's name */
struct served_counters {
    const char *model, *label; /* label of its version; NULL: none */
    double at[SERVED_COUNTERS];
};
void counters_write_served(FILE *, const struct served_counters *, int count);

/* Prints the tables of all counters of tasks and servers, for `dtrain help counters`. */
void counters_help(FILE *);

#endif
