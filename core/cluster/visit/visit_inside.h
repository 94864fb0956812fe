/* visit_inside.h - the inside of visit.h: visit.c: asks and their answers; find.c: variables by
 * name; list.c: all names. */
#ifndef CORE_CLUSTER_VISIT_VISIT_INSIDE_H
#define CORE_CLUSTER_VISIT_VISIT_INSIDE_H

#include "core/cluster/visit/visit.h"
#include "core/cluster/visit/shared.h"

/* Pending replies per worker: all of them fit into its link's queue; and in all. */
enum { DUE_OF_WORKER_MAX = 8, DUE_MAX = 256 };

struct due { /* a pending reply; it comes also if the visitor takes the ask back */
    uint64_t request_id, until_ms; /* request_id 0: none */
    int worker;
};

struct visit {
    bool is_here, is_waiting; /* waiting: `ask` is still to be answered */
    bool may_change;
    bool is_scanning; /* waiting for a summary, made from `scan` */
    struct ask ask;
    struct scan scan;
    uint64_t number, asked_ms, heard_ms;
};

struct visits {
    struct visits_options options;
    struct visit_view view; /* slices NULL: none */
    struct shared_variables shared;
    struct visit visitors[VISITORS_MAX];
    int waiting;                       /* visitors that wait */
    int next;                          /* whose turn it is */
    uint64_t version, trained_version; /* number of changes so far; of the last change to the block
                                        */
    uint64_t asked;                    /* requests to workers so far */
    struct due dues[DUE_MAX];
    uint64_t step;
    double step_value; /* what a target of the step points to */
};

/* Slices of the block, then those of tables */
int visits_slice_count(const struct visits *);
const struct slice *visits_slice(const struct visits *, int index);

/* If nothing has the name, the target's kind is TARGET_NONE. */
err visits_find(struct visits *, const char *name, struct target *ret);
bool visits_names_trained(const struct visits *, const char *name);

/* Sends the answer and ends the ask. Takes the reference; NULL: no memory for it. */
void visits_answer(struct visits *, int visitor, json_t *);
void visits_answer_list(struct visits *, int visitor);
void visits_answer_none(struct visits *, int visitor); /* nothing has the name, but one is near */

#endif
