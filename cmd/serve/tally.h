/* tally.h - a server's counters (core/base/counters.def), for /metrics. Any thread may count. */
#ifndef CMD_SERVE_TALLY_H
#define CMD_SERVE_TALLY_H

#include <stdint.h>
#include <stdio.h>

#include "core/base/counters.h"
#include "core/base/error.h"

struct tally;
err tally_open(struct tally **ret);
void tally_close(struct tally *); /* NULL is fine */

/* A request to a model, the status of its answer, and the rows computed for it */
void tally_note_request(struct tally *, int status, int64_t rows, uint64_t ns);
void tally_note_wait(struct tally *, uint64_t ns);
void tally_note_batch(struct tally *, int64_t rows, uint64_t ns);
/* A checkpoint is served now, or (failure) could not be opened. */
void tally_note_version(struct tally *, int64_t number, err failure);

/* The values served now, of a checkpoint or a delta, are of that step and that unix time */
void tally_note_fresh(struct tally *, int64_t step, double time_s);
void tally_note_lost(struct tally *); /* a delta */

/* As they are now */
void tally_read(struct tally *, double ret[SERVED_COUNTERS]);

#endif
