/* visit.h - access to variables from outside the job: requests of visitors to a ps, and its
 * answers.
 *
 * A visitor is neither ps nor worker. It asks (ASK, JSON: ask.h) and each ask gets one ANSWER
 * (JSON, below) with the same number; another ask before it takes the first one back. Two
 * kinds of variables can be asked for: the trained ones, of which this ps holds parts, and shared
 * ones that visitors make. Where both have a name it is the trained one that is meant. Of ps/0 also
 * global_step, which nobody can set.
 *
 *     {"error": "...", "code": 2}
 *         code: an exit code
 *     {"kind": "none", "near": "w"}
 *         nothing here has that name; near, a similar one, may be absent
 *     {"kind": "trained", "shape": [5, 2], "axis": 0, "version": 8,
 *      "parts": [{"start": 0, "length": 3, "count": 6}]}
 *         and behind it the 6 numbers of the first part, those of the second, ...
 *     {... "version": 8, "unchanged": true}
 *         of a get with since, whose limit is over
 *     {... "summary": {"finite", "minimum", "maximum", "sum", "sum_squares", "first": [...]}}
 *         instead of parts, if there are more than VISIT_ELEMENTS_MAX elements
 *     {"kind": "table", ... "first_row": 3, "rows": 2}
 *         the rows that were asked for; parts are those of them that are here
 *     {"variables": [{"name", "kind", "shape"}], "next": 1000}
 *         of list; next: absent if that was all; a table that grows: shape [1, 16], "grows": true
 *     {"tasks": [{"task": "ps/0", "age_secs": 0.4, "state": "serving",
 *                 "counters": {"global_step": 7}}], "next": 200}
 *         of status; counters that are 0 are left out; next: as above
 *     {"asked": true}
 *         of stop, save and leave
 *     {"lines": [...], "next": 18}
 *         of log (core/base/log_kept.h)
 *     {"timeline": "{...", "missing": ["worker/2: ..."]}
 *         of profile: a text, which is a file in Chrome's trace format
 *     {"step": 1200} or {"settings": {...}}
 *         of setting: the step from which it holds; or all settings
 *     {"resizes": 1, "ps": 4, "workers": 3, "step": 1200}
 *         of scale: the job is resized, at that step
 *
 * The rows of a table that grows are named by ids; its shape, and its parts, are those of what was
 * asked for: "shape": [2, 16], "first_row": 0, "rows": 2, and a part for each id.
 *
 * A table has no summary: more of it than VISIT_ELEMENTS_MAX elements is an error, and so are set
 * and add. set and add are answered like a get after the change. Each is done at once and as a
 * whole. A trained value changes only when no worker computes from it: where workers look at the
 * store itself the change, and its answer, wait for visits_round(). A summary is made in pieces, by
 * visits_work(): it is of values that may change meanwhile.
 *
 * Nothing is done here but to memory: time is given, and answers go to a function.
 */
#ifndef CORE_CLUSTER_VISIT_VISIT_H
#define CORE_CLUSTER_VISIT_VISIT_H

#include "core/cluster/visit/ask.h"
#include "core/train/checkpoint/shard.h"
#include "net/message.h"

enum {
    VISITORS_MAX = 64,      /* of one ps; memory for them: at most 64 MiB */
    VISIT_SPARED_MS = 3000, /* a visitor silent for longer may be replaced by another */
    VISIT_PAGE_MAX = 1000,  /* variables in one answer to list */
    VISIT_TASKS_MAX = 200,  /* tasks in one answer to status */
};

struct visits_options {
    bool has_step;             /* ps/0: answers for global_step */
    uint64_t change_limit_ms;  /* how long a change may wait for its round, and an ask for a
                                  worker's reply (--step_timeout) */
    uint64_t setting_limit_ms; /* the same for SETTING, answered after a checkpoint (twice
                                  --save_timeout, if that is longer) */
    /* Receives every answer; may not call back. */
    void (*answer)(void *context, int visitor, const struct message *);
    /* Hears of every change that was made, which took the value: its shape, and the first of its
     * numbers. Optional. */
    void (*changed)(void *context, int visitor, const struct ask *, const struct shape *,
                    double first);
    /* Of ps/0: NULL: visits_scaled or visits_refuse_scale comes; or why nothing comes of it. */
    const char *(*scale)(void *context, const int count[JOB_COUNT]);
    /* Of all ps: an answer to status; NULL: no memory. New reference. */
    json_t *(*status)(void *context, uint64_t from);
    /* Of ps/0: the worker that SAVE, PROFILE and SETTING are asked of. */
    int (*chief)(void *context);
    /* STOP, SAVE, LEAVE, ABSENT, PROFILE, SETTING and LOG of a worker: NULL, or why it is not done.
     * To the last three the answer is what visits_replied() brings, by ask->request_id. */
    const char *(*request)(void *context, int visitor, const struct ask *);
    /* Of all ps: STOP is done as soon as something else is: for so long that is waited for, and
     * what it is, of this many bytes at most; 0: it is done. Optional. */
    uint64_t (*waits)(void *context, char *ret_text, size_t size);
    void *context;
};

/* The current trained variables, tables last; borrowed until the next visits_show. */
struct visit_view {
    const struct slice *slices;
    int slice_count;
    float *values;      /* the block */
    bool has_values;    /* the chief has filled it */
    bool is_in_use;     /* workers read this memory: changes wait for a round */
    bool is_held_twice; /* on two ps: visitors may not change it */
    const struct shard_table *tables;
    int table_count;
};

struct visits;
err visits_open(const struct visits_options *, struct visits **ret);
void visits_close(struct visits *); /* NULL is fine */

/* Adds a visitor that has greeted; returns its number, below VISITORS_MAX; -1: too many.
 * !may_change: only read-only requests are answered (ask_only_looks). */
int visits_enter(struct visits *, bool may_change, uint64_t now_ms);
/* The visitor that may be disconnected for another: silent for the longest time; -1: none. */
int visits_silent(const struct visits *, uint64_t now_ms);
void visits_leave(struct visits *, int visitor);
/* Handles a worker's reply, which may be any bytes; ignored if it was not asked, or no visitor
 * waits any more. */
void visits_replied(struct visits *, int worker, uint64_t request_id, const void *text,
                    size_t bytes);
void visits_ask(struct visits *, int visitor, const struct message *, uint64_t now_ms);

void visits_show(struct visits *, const struct visit_view *); /* copied; NULL: no variables now */
/* Whether a change waits for visits_round(); whether visits_work() has something to do. */
bool visits_wait_for_round(const struct visits *);
bool visits_wait_for_work(const struct visits *, uint64_t now_ms);
/* Called between the last gradient of a round and its update: makes one of the waiting changes.
 * false: none waits. */
bool visits_round(struct visits *);
/* The trained values have changed, and the global step is `step`. */
void visits_changed(struct visits *, uint64_t step);
/* Does one piece of pending work: answers to gets with since, summaries. false: there was none. */
bool visits_work(struct visits *, uint64_t now_ms);
void visits_tick(struct visits *, uint64_t now_ms);
/* Answers scale: the job is resized; or it is not. */
void visits_scaled(struct visits *, const struct membership *, uint64_t step);
void visits_refuse_scale(struct visits *, int code, const char *why);
void visits_end(struct visits *); /* the job ends: answers visitors that still wait */

#endif
