/* version.h - a served checkpoint: the model with its values, its intake, and a thread that
 * computes waiting requests in batches.
 *
 * That thread opens the model, computes and closes it; a request is read by its client's thread,
 * waits, and gets its own results. If few rows wait, as for one row of most models, the client's
 * thread computes them itself: handing them over would take longer. Rows of tables are read from
 * the checkpoint's files when a request names them, so that memory does not grow with a table. Rows
 * from later deltas are in memory. All values that a request uses are of one step.
 */
#ifndef CMD_SERVE_VERSION_H
#define CMD_SERVE_VERSION_H

#include "cmd/restored_model.h"
#include "cmd/serve/intake.h"
#include "cmd/serve/tally.h"

struct version_options { /* borrowed */
    const struct restored_flags *flags;
    const char *spec;       /* path of its file */
    const char *label;      /* for clients; NULL: none */
    int64_t max_batch;      /* rows per batch */
    uint64_t batch_wait_ms; /* time to wait for more rows */
    bool follows;           /* applies deltas published beside the checkpoint */
    struct tally *tally;
};

enum version_state { VERSION_OPENS, VERSION_SERVES, VERSION_FAILED };

struct version;
/* Begins to open the checkpoint of that prefix, in a new thread. ERR_MEMORY */
err version_start(const struct version_options *, const char *prefix, struct version **ret);
/* *ret_failure: if it failed, the error, whose text error_text() then has */
enum version_state version_state(struct version *, err *ret_failure);
/* Waits only until opening is over: there must be no requests. NULL is fine. */
void version_close(struct version *);
const char *version_prefix(const struct version *);

/* The rest is for a version that serves. */
int64_t version_number(const struct version *); /* the global step */
const struct spec *version_spec(const struct version *);
struct intake *version_intake(const struct version *);
const struct graph *version_graph(const struct version *);
/* Serves the values of a delta from the next request on; requests that are being computed keep the
 * previous ones. To be called by one thread that does not compute, once per delta, in order. step:
 * the delta's, as published. On an error nothing has changed. */
err version_freshen(struct version *, const char *prefix, int64_t step);
void version_renew_lease(struct version *);

/* Per head: [rows, columns] for the rows of a request; free with version_answer_free. */
struct version_answer {
    int64_t columns[HEADS_MAX];
    float *at[HEADS_MAX];
};
err version_predict(struct version *, const struct taken_rows *, struct version_answer *ret);
void version_answer_free(struct version_answer *);

#endif
