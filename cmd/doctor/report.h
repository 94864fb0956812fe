/* report.h - what `dtrain doctor` has found: lines of one subject each, with what to do. */
#ifndef CMD_DOCTOR_REPORT_H
#define CMD_DOCTOR_REPORT_H

#include <stdbool.h>

#include <jansson.h>

#include "core/base/error.h"

/* NOTE: may be as it is meant; WARNING: costs time or goes wrong later; BAD: a job cannot run. */
enum health { HEALTH_OK, HEALTH_NOTE, HEALTH_WARNING, HEALTH_BAD, HEALTH_COUNT };

struct report {
    json_t *findings; /* array */
    int counts[HEALTH_COUNT];
    bool is_quiet; /* nothing is printed as it comes: --json */
};

err report_open(struct report *, bool is_quiet); /* ERR_MEMORY */
void report_close(struct report *);

/* advice: what to do, or NULL. Printed as it comes. */
__attribute__((format(printf, 5, 6))) void report_say(struct report *, enum health,
                                                      const char *subject, const char *advice,
                                                      const char *format, ...);
/* The last line, or all as JSON. */
err report_finish(const struct report *);

#endif
