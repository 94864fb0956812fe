/* ask.h - the requests of a visitor to a ps, in the body of ASK:
 *
 *     {"do": "list", "from": 0}
 *     {"do": "get", "name": "w", "index": [3, 4], "since": 17, "every_ms": 1000, "limit_ms": 9000}
 *     {"do": "get", "name": "t", "index": [3], "rows": 2}
 *     {"do": "set", "name": "w", "index": [3, 4], "shape": [], "make": true}
 *     {"do": "add", "name": "w", "shape": [2, 2]}
 *     {"do": "scale", "ps": 4, "workers": 3}
 *     {"do": "status", "from": 0}
 *     {"do": "stop"}
 *     {"do": "stop", "worker": 0}
 *     {"do": "save"}
 *     {"do": "leave", "worker": 3}
 *     {"do": "absent", "worker": 3, "why": "rows.csv: No such file or directory"}
 *     {"do": "log", "worker": 3, "from": 17, "last": 100}
 *     {"do": "profile", "steps": 10}
 *     {"do": "setting", "name": "train.last_step", "to": "5000"}
 *     {"do": "setting"}
 *
 * and behind it, of set and add, the numbers of a value of that shape (body.h).
 * index: of one element, of a table of one row; absent: all. rows: of a table, this many from there
 * on. since: the version that the visitor has seen; the answer then waits for another one, for
 * limit_ms at most, and does not come before every_ms. make: where no variable has the name a
 * shared one is made. scale: of ps/0; ps, workers: how many there are to be, absent: as many as
 * there are. status: what is counted, of this ps and of ps/0 also of the workers; from: as in list.
 * stop: the job is to end well; with a worker that was asked to leave, only where the job cannot
 * begin without it. save, leave: of ps/0; the chief is to make a checkpoint, a worker to leave.
 * absent: a worker that has ended says so, and why it would end again. log: lines of a worker's
 * log, of ps/0, or without worker of the ps' own (core/base/log_kept.h). profile: of ps/0; a
 * timeline of the next this many steps of all tasks. setting: of ps/0; what the chief may change
 * while the job runs (core/train/spec/settings.h), or what it has.
 */
#ifndef CORE_CLUSTER_VISIT_ASK_H
#define CORE_CLUSTER_VISIT_ASK_H

#include "core/cluster/role/membership.h"
#include "core/cluster/visit/target.h"

enum {
    VISIT_NAME_MAX = 256,
    VISIT_TEXT_MAX = 4096,
    VISIT_WHY_MAX = 256,
    VISIT_SETTING_MAX = 32,
    VISIT_ASK_BYTES_MAX = VISIT_TEXT_MAX + 1 + 8 * VISIT_ELEMENTS_MAX,
    VISIT_WAIT_MAX_MS = 60000, /* how long an answer waits for another version */
};

enum { NO_WORKER = -1 };

enum verb {
    VERB_LIST,
    VERB_GET,
    VERB_SET,
    VERB_ADD,
    VERB_SCALE,
    VERB_STATUS,
    VERB_STOP,
    VERB_SAVE,
    VERB_LEAVE,
    VERB_ABSENT,
    VERB_PROFILE,
    VERB_SETTING,
    VERB_LOG,
    VERB_COUNT
};

struct ask {
    enum verb verb;
    char name[VISIT_NAME_MAX]; /* of SETTING: "": all settings */
    struct change change;      /* its selection is that of a GET too; owns the value */
    bool makes;
    uint64_t since; /* 0: answer at once. Versions begin at 1 */
    uint64_t every_ms, limit_ms;
    uint64_t from;                 /* LIST, STATUS, LOG */
    uint64_t last;                 /* LOG; 0: all kept lines */
    int steps;                     /* PROFILE */
    char value[VISIT_SETTING_MAX]; /* SETTING */
    int worker; /* LEAVE, ABSENT, LOG, STOP; NO_WORKER: the ps itself. SAVE, PROFILE, SETTING:
                   chief */
    uint64_t request_id;     /* the number that a worker's reply has (visit.h) */
    char why[VISIT_WHY_MAX]; /* ABSENT: printable ASCII, cut to its room */
    int count[JOB_COUNT];    /* SCALE; 0: as it is */
};

/* ERR_INPUT: not a valid request. */
err ask_read(const void *bytes, size_t count, struct ask *ret);
void ask_free(struct ask *); /* a zeroed one is fine */
/* Whether it is read-only: changes no values, settings, or state of the job. */
bool ask_only_looks(const struct ask *);

#endif
