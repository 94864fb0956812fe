/* visitor.h - the outside of a cluster: links to its ps, over which variables can be asked for
 * (visit.h), and over which the end of the job is heard of.
 *
 * A visitor connects by tcp, and again where a link is lost, for as long as it is polled. It asks
 * each ps one thing at a time. What went wrong is kept until the next wait, which returns it.
 */
#ifndef CORE_CLUSTER_VISIT_VISITOR_H
#define CORE_CLUSTER_VISIT_VISITOR_H

#include <jansson.h>

#include "core/base/fields/fields.h"
#include "core/cluster/description/cluster_spec.h"
#include "net/loop.h"

struct visitor;

/* ps_hosts: all ps of the cluster by index (or, where only_first, ps/0 and how many more there
 * are); borrowed. */
struct visitor_options {
    struct loop *loop;
    const struct strings *ps_hosts;
    const struct cluster_spec *cluster; /* says where they are now; NULL: where they were said */
    bool only_first;                    /* links to ps/0 alone */
    bool any_count;                     /* there may be more ps, or fewer, than ps_hosts names */
};

err visitor_open(const struct visitor_options *, struct visitor **ret);
void visitor_close(struct visitor *); /* NULL is fine */

/* Connects what is not connected, and delivers what has come, waiting for at most timeout_ms
 * (-1: LOOP_WAIT_MAX_MS). */
void visitor_poll(struct visitor *, int timeout_ms);

int visitor_ps_count(const struct visitor *); /* that take part, as far as is known */
/* The latest that a ps has said; of no tasks: none has. It says so again after each resize. */
struct membership visitor_membership(const struct visitor *);
bool visitor_is_up(const struct visitor *, int ps);
const char *visitor_trouble(const struct visitor *, int ps); /* why it is not; never "" */
/* A ps that will never take this visitor: ERR_INPUT or ERR_PROTOCOL with its text; else OK. One
 * that has no place at present is tried again. */
err visitor_refusal(const struct visitor *);

/* How the job ended, once a ps has said so. */
struct visitor_verdict {
    bool has_come;
    int code;
    char text[ACTION_TEXT_MAX];
};
const struct visitor_verdict *visitor_verdict(const struct visitor *);

/* Until every ps is there. ERR_TIMEOUT names the first that is not, and the flag of the limit. */
err visitor_wait_up(struct visitor *, uint64_t limit_ms, const char *flag);

/* What was asked of the same ps before is taken back. ask: borrowed, with its "value" in it
 * (body.h). ERR_INPUT: that is none; ERR_PEER. */
err visitor_ask(struct visitor *, int ps, json_t *ask);
/* The answer to the last ask, borrowed until the next one; NULL: it has not come. */
json_t *visitor_answer(const struct visitor *, int ps);
/* Nobody waits for that answer any more, which may never come. */
void visitor_forget(struct visitor *, int ps);
/* Until all that were asked have answered; any: until one has that had not when this was called.
 * ERR_PEER: a ps that was asked is lost, or the job has ended; ERR_TIMEOUT. */
err visitor_wait_all(struct visitor *, uint64_t limit_ms);
err visitor_wait_any(struct visitor *, uint64_t limit_ms);

#endif
