/* rules.h - finds problems of a job from the counters of its tasks. A pure function: a rule is a
 * row of the table in rules.c. */
#ifndef CMD_STATUS_RULES_H
#define CMD_STATUS_RULES_H

#include "cmd/findings.h"
#include "core/base/counters.h"

enum { FINDINGS_MAX = 64 };

/* A ps that has said nothing. */
struct unanswered {
    int ps;
    uint64_t waited_ms; /* 0: it is not connected, and was not asked */
    char why[128];      /* why there is no connection; "": there is one */
};

struct job_facts {
    const struct task_status *tasks; /* [count] ps first; heard_ms: by now_ms */
    int count;
    uint64_t now_ms;
    double unix_s;  /* for what is told by the date */
    bool all_asked; /* all ps that are known; else tasks may lack some that are there */
    const struct unanswered *unanswered; /* [unanswered_count] */
    int unanswered_count;
};

/* Of those that say they lead, the last one to have come to it: another may be gone, and what it
 * has told stays. NULL: nobody says so */
const struct task_status *tasks_chief(const struct task_status *tasks, int count);

/* At most FINDINGS_MAX, warnings first. Returns how many. */
int rules_apply(const struct job_facts *, struct finding ret[FINDINGS_MAX]);

/* The names of all rules and what they find, for people. */
void rules_help(FILE *);

#endif
