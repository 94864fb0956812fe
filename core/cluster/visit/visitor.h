/* visitor.h - a visitor's side: links to the ps of a cluster, for requests (visit.h) and the
 * verdict of the job.
 *
 * A visitor connects by tcp, and reconnects lost links, while it is polled. It has one request per
 * ps at a time. Errors are kept until the next wait, which returns them.
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
    const struct cluster_spec *cluster; /* finds their current addresses; NULL: those in ps_hosts */
    bool only_first;                    /* links to ps/0 alone */
    bool any_count;                     /* there may be more ps, or fewer, than ps_hosts names */
};

err visitor_open(const struct visitor_options *, struct visitor **ret);
void visitor_close(struct visitor *); /* NULL is fine */

/* Connects what is not connected, and delivers what has come, waiting for at most timeout_ms
 * (-1: LOOP_WAIT_MAX_MS). */
void visitor_poll(struct visitor *, int timeout_ms);

int visitor_ps_count(const struct visitor *); /* how many take part, as far as known */
/* The latest one from a ps; of no tasks: none yet. Updated after each resize. */
struct membership visitor_membership(const struct visitor *);
bool visitor_is_up(const struct visitor *, int ps);
const char *visitor_trouble(const struct visitor *, int ps); /* why not; never "" */
/* ERR_INPUT or ERR_PROTOCOL with text: a ps has refused this visitor for good; else OK. A ps that
 * has no place at present is retried. */
err visitor_refusal(const struct visitor *);

/* How the job ended, once a ps has said so. */
struct visitor_verdict {
    bool has_come;
    int code;
    char text[ACTION_TEXT_MAX];
};
const struct visitor_verdict *visitor_verdict(const struct visitor *);

/* Waits until every ps is connected. ERR_TIMEOUT names the first that is not, and the flag of the
 * limit. */
err visitor_wait_up(struct visitor *, uint64_t limit_ms, const char *flag);

/* Sends a request; takes back an earlier one to the same ps. ask: borrowed, including its "value"
 * (body.h). ERR_INPUT: the value is not valid; ERR_PEER. */
err visitor_ask(struct visitor *, int ps, json_t *ask);
/* The answer to the last ask, borrowed until the next one; NULL: not yet. */
json_t *visitor_answer(const struct visitor *, int ps);
/* No longer waits for that answer, which may never come. */
void visitor_forget(struct visitor *, int ps);
/* Wait until all requests are answered; any: until one more is than at the call. ERR_PEER: a ps
 * that was asked is lost, or the job has ended; ERR_TIMEOUT. */
err visitor_wait_all(struct visitor *, uint64_t limit_ms);
err visitor_wait_any(struct visitor *, uint64_t limit_ms);

#endif
