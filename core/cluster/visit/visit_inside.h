/* visit_inside.h - the inside of visit.h: visit.c: asks and their answers; find.c: what has a
 * name; list.c: all names. */
#ifndef CORE_CLUSTER_VISIT_VISIT_INSIDE_H
#define CORE_CLUSTER_VISIT_VISIT_INSIDE_H

#include "core/cluster/visit/visit.h"
#include "core/cluster/visit/shared.h"

/* Of one worker; what it replies to all of them fits well into the queue of its link. */
enum { DUE_OF_WORKER_MAX = 8, DUE_MAX = 256 };

struct due { /* a reply: it comes, too, where the visitor takes the ask back */
    uint64_t request_id, until_ms; /* request_id 0: none */
    int worker;
};

struct visit {
    bool is_here, is_waiting; /* waiting: `ask` is still to be answered */
    bool may_change;
    bool is_scanning; /* ... with the summary that `scan` is to become */
    struct ask ask;
    struct scan scan;
    uint64_t number, asked_ms, heard_ms;
};

struct visits {
    struct visits_options options;
    struct visit_view view; /* slices NULL: none */
    struct shared_variables shared;
    struct visit visitors[VISITORS_MAX];
    int waiting;                       /* of them */
    int next;                          /* whose turn it is */
    uint64_t version, trained_version; /* counts all changes; of the last one to the block */
    uint64_t asked;                    /* of workers, so far */
    struct due dues[DUE_MAX];
    uint64_t step;
    double step_value; /* what a target of the step points to */
};

/* Slices of the block, then those of tables */
int visits_slice_count(const struct visits *);
const struct slice *visits_slice(const struct visits *, int index);

/* Leaves a target of kind TARGET_NONE where nothing has the name. */
err visits_find(struct visits *, const char *name, struct target *ret);
bool visits_names_trained(const struct visits *, const char *name);

/* Takes the reference; NULL: there was no memory for it. The ask is done with. */
void visits_answer(struct visits *, int visitor, json_t *);
void visits_answer_list(struct visits *, int visitor);
void visits_answer_none(struct visits *, int visitor); /* nothing has the name, but one is near */

#endif
