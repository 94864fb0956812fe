/* greeting.h - the first words on every connection: who am I, and do we belong together?
 *
 * HELLO (worker to ps) and WELCOME (ps to worker) carry one JSON object: protocol version, job,
 * task, incarnation, the hosts of the cluster, the spec's fingerprint, what it trains on, the
 * host's boot id and the names where this task listens over transports of this host, each as a
 * member of that transport's name. Lists name all tasks that there may be, the membership says how
 * many of them take part. What does not fit together is refused with a text that says what differs.
 * Lists of hosts that make it longer than TASK_GREETING_BYTES_MAX go as their lengths and digests:
 * two thousand names or so.
 *
 * A visitor (visit.h) belongs to no cluster: its HELLO says the protocol version and the job
 * "visitor", and is compared with nothing else.
 */
#ifndef CORE_CLUSTER_RUNNER_GREETING_H
#define CORE_CLUSTER_RUNNER_GREETING_H

#include "core/base/log.h"
#include "core/cluster/runner/task.h"

enum { BOOT_ID_MAX = 40 };

/* Where a task listens beside its address, for tasks of its host. */
struct offers {
    char at[TRANSPORT_COUNT][ADDRESS_MAX]; /* by transports[]; "" none */
};

struct greeting {
    enum job job;
    int task;
    struct membership membership;
    uint64_t incarnation;
    char fingerprint[17]; /* "" unknown */
    struct data_said data;
    char boot_id[BOOT_ID_MAX];
    struct offers offers;
};

/* Who greets, and whom. */
struct greeter {
    const struct cluster_spec *cluster;
    const char *fingerprint; /* of the spec; NULL: it is not said */
    enum job job, peer_job;
    int index, peer_count;
    uint64_t incarnation;
    struct data_said data;
};
struct greeter greeter_of(const struct task *); /* borrows from it */

/* Sends HELLO or WELCOME with who this is. No offers: NULL. */
err greeting_send(const struct greeter *, struct link *, enum message_type, const struct offers *);

/* Reads a greeting and holds it against this one; of a greeting from another membership (another
 * number of resizes) only the lists of hosts are compared. ERR_PROTOCOL: not a greeting; ERR_INPUT:
 * it does not belong here, the text says what differs. */
err greeting_read(const struct greeter *, const struct message *, struct greeting *ret);

/* Who comes by this link may do so much at least. ERR_INPUT: its certificate does not say so. */
err greeting_check_right(const struct link *, enum right least);

/* "spec differs: worker/1 has 0123.., worker/0 has 4567.." */
err greeting_compare_specs(const char *name, const char *fingerprint, const char *other_name,
                           const char *other_fingerprint);

/* "data.train differs: worker/1 has 6 rows, worker/0 has 8" */
err greeting_compare_data(const char *name, const struct data_said *, const char *other_name,
                          const struct data_said *other);

/* REFUSED, with error_text(). */
struct message greeting_refusal(const struct greeter *, int exit_code);
/* Says it, to the other end too, as often as the limit has it; who hangs up is the caller. */
void greeting_refuse(const struct greeter *, struct link *, struct log_limit *, err why);

err greeting_send_visitor(struct link *);
/* Is this HELLO a visitor's? Before greeting_read(), which knows tasks only. ERR_INPUT: it speaks
 * another version of the protocol. What is no greeting at all is no visitor's. */
err greeting_read_visitor(const struct message *, bool *ret_is_visitor);

/* What a visitor learns from WELCOME: which ps that is, of how many. */
struct welcome {
    int ps;
    int room; /* ps that are listed */
    struct membership membership;
};
err greeting_read_welcome(const struct message *, struct welcome *ret);

const char *greeting_boot_id(void); /* of this host; "" where the system has none */
uint64_t greeting_draw_incarnation(void);

#endif
