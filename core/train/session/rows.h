/* rows.h - the rows of tables that batches name: where they come from, and where their gradients
 * go.
 *
 * A batch is prepared: its ids are looked up (lookup.h), and the graph is fed their places among
 * the rows, which lie one behind the other in memory of the device. Rows come with the values that
 * answer a push, which has named those of the next batch already; where they did not, they are
 * asked for. Windows are those of row_area.h; where nobody else sees one, gradients leave from
 * where they were computed, and the rows of the next batch come to where they are computed from
 * (area_patch).
 */
#ifndef CORE_TRAIN_SESSION_ROWS_H
#define CORE_TRAIN_SESSION_ROWS_H

#include "core/graph/graph.h"
#include "core/train/session/lookup.h"
#include "core/train/variables/layout.h"
#include "core/train/variables/row_area.h"

/* How rows are fetched that did not come with the answer to a push */
struct row_source {
    /* The fronts of the windows name rows, of each ps in this many bytes (0: none). Returns when
     * the rows are in the backs. trains: for a step; else rows that were never made come as zeros.
     * ERR_PEER: they will not come, and the pass is void. */
    err (*ask)(void *context, const size_t bytes[], bool trains);
    void *context;
    /* Called before fronts are written: returns when nobody reads them any more for a request that
     * was cut short. Fails as ask. Optional. */
    err (*settle)(void *context);
};

/* A slice of a table on a ps, as the front of its window lists it */
struct rows_part {
    int param;  /* index among the graph's params */
    int column; /* index of the column of ids, that is, of its lookup */
    const struct slice *slice;
    bool is_frozen; /* its gradients are not pushed */
};

/* What a session has with one ps. */
struct rows_link {
    struct row_area area;
    struct rows_part *parts; /* [area.count] */
    struct area_counts counts;
    int64_t *done; /* [area.count] rows that have come, of those asked for piece by piece */
    void *window;  /* NULL: not bound */
    bool is_apart; /* the ps does not see the window */
    bool is_pinned;
    struct area_patch *patches; /* [5 * area.count] of what is pushed, and of the answer */
    int patch_count;            /* 0: all of it is in the window */
    uint64_t came;              /* 1 + number of the batch whose rows are in the back; 0: none */
    size_t front;               /* bytes of the front that is pushed, with all ids */
    size_t without_ids;         /* the same without the ids of its rows */
    bool has_frozen;            /* parts; so not all rows that were brought are pushed */
    bool was_brought;           /* the ps has brought these rows, and has their ids */
};

/* A batch with places instead of ids; its numbers are copies. */
struct prepared {
    bool is_there;
    struct batch batch;
    struct column *columns;
    char **copies;          /* [inputs of the graph] NULL: ids that are looked up */
    void **made;            /* [inputs of the graph] by nodes; NULL: a column of the data */
    struct lookup *lookups; /* [inputs of the graph] of ids, the first one that names a table */
    int64_t *first_cells;   /* [inputs of the graph] of ids: where in that lookup they stand */
};

struct rows {
    struct device *device;         /* borrowed; NULL: there are no tables */
    const struct graph *graph;     /* that trains */
    const struct row_source *from; /* borrowed */
    int ps_count;
    struct rows_link *links;    /* [ps_count] */
    struct lookup_order *order; /* [inputs of the graph] */
    size_t *bytes;              /* [ps_count] scratch */
    bool names_next;            /* the fronts name the rows of the next batch */
    bool is_revoked;            /* the rows that the fronts named are void, even if they come */
    struct prepared batches[2]; /* the one that is computed, and the next */
    int current;
};

/* ERR_INPUT: the tables take too much. Memory lives in the arena. */
err rows_open(const struct graph *, const struct layout *, struct device *,
              const struct row_source *, struct arena *, struct rows *ret);
bool rows_are_used(const struct rows *);

void rows_close(struct rows *); /* binds nothing any more; a zeroed one is fine */

/* Opens a batch for a graph that reads the same columns as the graph of the rows, with a batch size
 * of its own. */
void prepared_open(const struct rows *, const struct graph *, const struct column *columns,
                   int column_count, struct arena *, struct prepared *ret);
/* draw: see plan_load */
void prepared_make(struct prepared *, const struct graph *, const struct batch *, uint64_t draw);

/* Brings the rows of the prepared batch to where the graph's params are bound. */
err rows_fetch(struct rows *, const struct graph *, const struct prepared *);

/* Writes row gradients to the fronts, with the ids of the next batch where that is prepared, which
 * becomes the current one. Complete once the device is synchronized. */
void rows_put(struct rows *);

/* window NULL: it is gone. is_apart: the ps does not see it, and its owner sends and receives by
 * what the link's patches say. */
void rows_bind(struct rows *, int ps, void *window, bool is_apart);
size_t rows_push_bytes(const struct rows_link *); /* bytes of the front to send */
/* Copies the front that was pushed last, whole: [front] bytes */
void rows_copy_front(const struct rows *, int ps, void *ret);
/* The back of the window has the rows of batch number `batch`, or of no known batch. */
void rows_came(struct rows *, int ps, uint64_t batch);
/* Other batches follow than those expected: rows named by the last rows_put are not used, whether
 * they have arrived or not. */
void rows_revoke(struct rows *);
void rows_forget(struct rows *, int ps);
size_t rows_window_bytes(const struct rows *, int ps); /* 0: no tables there */

#endif
