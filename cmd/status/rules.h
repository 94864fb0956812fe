/* rules.h - finds problems of a job from the counters of its tasks. A pure function: a rule is a
 * row of the table in rules.c. */
#ifndef CMD_STATUS_RULES_H
#define CMD_STATUS_RULES_H

#include "cmd/findings.h"
#include "core/base/counters.h"

enum { FINDINGS_MAX = 64 };

/* A ps that has not answered */
struct unanswered {
    int ps;
    uint64_t waited_ms; /* 0: not connected, so not asked */
    char why[128];      /* why it is not connected; "": it is */
};

struct job_facts {
    const struct task_status *tasks; /* [count] ps first; heard_ms: same clock as now_ms */
    int count;
    uint64_t now_ms;
    double unix_s;                       /* for values that are dates */
    bool all_asked;                      /* all known ps were asked; else tasks may be missing */
    const struct unanswered *unanswered; /* [unanswered_count] */
    int unanswered_count;
};

/* The chief. If several tasks report to be, the one that became it last: reports of a previous
 * chief that is gone are kept. NULL: none */
const struct task_status *tasks_chief(const struct task_status *tasks, int count);

/* At most FINDINGS_MAX, warnings first. Returns how many. */
int rules_apply(const struct job_facts *, struct finding ret[FINDINGS_MAX]);

/* The names of all rules and what they find, for people. */
void rules_help(FILE *);

#endif
