/* version.h - one checkpoint that is served: the model at its values, what clients send of a row,
 * and a thread that computes what waits, together.
 *
 * That thread opens the model, computes and closes it; a request is read by its client's thread,
 * waits, and has its own numbers. Where no other thread would help with what waits, as with a row
 * of most models, its client's thread computes it: handing it over would take longer. Rows of
 * tables are read from the files of the checkpoint when a request names them, so that memory does
 * not grow with a table. Rows that deltas have brought since are in memory, and all of a request is
 * of one step.
 */
#ifndef CMD_SERVE_VERSION_H
#define CMD_SERVE_VERSION_H

#include "cmd/restored_model.h"
#include "cmd/serve/intake.h"
#include "cmd/serve/tally.h"

struct version_options { /* borrowed */
    const struct restored_flags *flags;
    const char *spec;       /* its file */
    const char *label;      /* by which clients name it; NULL: none */
    int64_t max_batch;      /* rows that are computed together */
    uint64_t batch_wait_ms; /* how long others are waited for */
    bool follows;           /* deltas that come beside the checkpoint */
    struct tally *tally;
};

enum version_state { VERSION_OPENS, VERSION_SERVES, VERSION_FAILED };

struct version;
/* Begins to open the checkpoint of that prefix. ERR_MEMORY: there is none, or no thread. */
err version_start(const struct version_options *, const char *prefix, struct version **ret);
/* Of one that failed: its kind, and error_text() says why */
enum version_state version_state(struct version *, err *ret_failure);
/* Waits until it has opened, and for nothing else: no request may be there. NULL is fine. */
void version_close(struct version *);
const char *version_prefix(const struct version *);

/* What follows is of one that serves. */
int64_t version_number(const struct version *); /* the global step */
const struct spec *version_spec(const struct version *);
struct intake *version_intake(const struct version *);
const struct graph *version_graph(const struct version *);
/* What a delta brings is served from the next request on: requests that are being computed are of
 * the values before. One thread, and not that which computes; each delta once, in order. step: its
 * own, as was said. On an error nothing has changed. */
err version_freshen(struct version *, const char *prefix, int64_t step);
void version_renew_lease(struct version *);

/* What heads say of a request's rows: [rows, columns] of each, to be freed. */
struct version_answer {
    int64_t columns[HEADS_MAX];
    float *at[HEADS_MAX];
};
err version_predict(struct version *, const struct taken_rows *, struct version_answer *ret);
void version_answer_free(struct version_answer *);

#endif
