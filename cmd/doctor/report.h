/* report.h - the findings of `dtrain doctor`: one line per subject, with advice. */
#ifndef CMD_DOCTOR_REPORT_H
#define CMD_DOCTOR_REPORT_H

#include <stdbool.h>

#include <jansson.h>

#include "core/base/error.h"

/* NOTE: may be intended; WARNING: costs time or may fail later; BAD: a job cannot run. */
enum health { HEALTH_OK, HEALTH_NOTE, HEALTH_WARNING, HEALTH_BAD, HEALTH_COUNT };

struct report {
    json_t *findings; /* array */
    int counts[HEALTH_COUNT];
    bool is_quiet; /* --json: nothing is printed before report_finish */
};

err report_open(struct report *, bool is_quiet); /* ERR_MEMORY */
void report_close(struct report *);

/* advice: what to do, or NULL. Prints at once unless is_quiet. */
__attribute__((format(printf, 5, 6))) void report_say(struct report *, enum health,
                                                      const char *subject, const char *advice,
                                                      const char *format, ...);
/* Prints the last line, or all as JSON. */
err report_finish(const struct report *);

#endif
