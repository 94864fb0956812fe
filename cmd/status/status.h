/* status.h - a living job as `dtrain status` sees it. */
#ifndef CMD_STATUS_STATUS_H
#define CMD_STATUS_STATUS_H

#include <jansson.h>

#include "cmd/status/rules.h"
#include "core/base/error.h"

enum { STATUS_TASKS_MAX = 4096 };

struct job_status {
    struct task_status *tasks; /* [count]; malloc'ed; heard_ms by the clock of this process */
    int count;
    json_t *json;                  /* the answers, as one; new reference */
    struct unanswered *unanswered; /* [unanswered_count]; malloc'ed */
    int unanswered_count;
};

/* Adds the tasks of an answer to status (core/cluster/visit/visit.h), which may be a lie.
 * ERR_PROTOCOL: it is none. */
err job_status_add(struct job_status *, json_t *answer, uint64_t now_ms);
struct job_visit;
/* Asks all ps; OK if one answers, `unanswered` lists the others. The wait for all together is at
 * most that for one ps, plus a tenth of that for each. */
err job_status_look(struct job_visit *, struct job_status *ret);
/* What others say, for a terminal: one line, made safe (core/base/printable.h), cut where it is too
 * long. text: NULL: "". */
enum { SAFE_TEXT_MAX = 1024 };
const char *safe_text(const char *text, char ret[SAFE_TEXT_MAX]);
/* ps first, each by its index. */
void job_status_sort(struct job_status *);
void job_status_free(struct job_status *); /* a zeroed one is fine */

void status_print(const struct job_status *, const struct finding *, int count);

#endif
