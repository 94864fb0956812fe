/* status.h - the state of a running job, as `dtrain status` shows it. */
#ifndef CMD_STATUS_STATUS_H
#define CMD_STATUS_STATUS_H

#include <jansson.h>

#include "cmd/status/rules.h"
#include "core/base/error.h"

enum { STATUS_TASKS_MAX = 4096 };

struct job_status {
    struct task_status *tasks; /* [count]; malloc'ed; heard_ms by the clock of this process */
    int count;
    json_t *json;                  /* all answers in one; new reference */
    struct unanswered *unanswered; /* [unanswered_count]; malloc'ed */
    int unanswered_count;
};

/* Adds the tasks of an answer to a status request (core/cluster/visit/visit.h), which is not
 * trusted. ERR_PROTOCOL: it is invalid. */
err job_status_add(struct job_status *, json_t *answer, uint64_t now_ms);
struct job_visit;
/* Asks all ps; OK if one answers, `unanswered` lists the others. Waits at most the timeout of one
 * ps, plus a tenth of it per ps. */
err job_status_look(struct job_visit *, struct job_status *ret);
/* Text from other tasks, for a terminal: one line, without control characters
 * (core/base/printable.h), cut if too long. text NULL: "" */
enum { SAFE_TEXT_MAX = 1024 };
const char *safe_text(const char *text, char ret[SAFE_TEXT_MAX]);
/* Sorts tasks: ps first, each kind by index. */
void job_status_sort(struct job_status *);
void job_status_free(struct job_status *); /* a zeroed one is fine */

void status_print(const struct job_status *, const struct finding *, int count);

#endif
