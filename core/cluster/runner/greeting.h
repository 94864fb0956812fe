/* greeting.h - the handshake on every connection: who each side is, and whether they belong
 * together.
 *
 * HELLO (worker to ps) and WELCOME (ps to worker) carry one JSON object: protocol version, job,
 * task, incarnation, the hosts of the cluster, the spec's fingerprint, the training data, the
 * host's boot id and the addresses where this task listens over transports of this host, each as a
 * member of that transport's name. Lists have all possible tasks, the membership says how many of
 * them take part. A mismatch is refused with a text that says what differs. Lists of hosts that
 * make it longer than TASK_GREETING_BYTES_MAX (two thousand names or so) are sent as lengths and
 * digests.
 *
 * A visitor (visit.h) belongs to no cluster: its HELLO has the protocol version and the job
 * "visitor"; nothing else is compared.
 */
#ifndef CORE_CLUSTER_RUNNER_GREETING_H
#define CORE_CLUSTER_RUNNER_GREETING_H

#include "core/base/log.h"
#include "core/cluster/runner/task.h"

enum { BOOT_ID_MAX = 40 };

/* Addresses where a task also listens, for tasks of its host. */
struct offers {
    char at[TRANSPORT_COUNT][ADDRESS_MAX]; /* by index of transports[]; "": none */
};

struct greeting {
    enum job job;
    int task;
    struct membership membership;
    uint64_t incarnation;
    char fingerprint[17]; /* "": not known */
    struct data_said data;
    char boot_id[BOOT_ID_MAX];
    struct offers offers;
};

/* The side that greets, and which peers it expects. */
struct greeter {
    const struct cluster_spec *cluster;
    const char *fingerprint; /* of the spec; NULL: not sent */
    enum job job, peer_job;
    int index, peer_count;
    uint64_t incarnation;
    struct data_said data;
};
struct greeter greeter_of(const struct task *); /* borrows from the task */

/* Sends HELLO or WELCOME. offers: NULL: none. */
err greeting_send(const struct greeter *, struct link *, enum message_type, const struct offers *);

/* Reads a greeting and compares it with this side; after another number of resizes only the lists
 * of hosts are compared. ERR_PROTOCOL: not a greeting; ERR_INPUT: a mismatch, the text says what
 * differs. */
err greeting_read(const struct greeter *, const struct message *, struct greeting *ret);

/* Checks that the peer of this link has at least this right. ERR_INPUT: not by its certificate. */
err greeting_check_right(const struct link *, enum right least);

/* "spec differs: worker/1 has 0123.., worker/0 has 4567.." */
err greeting_compare_specs(const char *name, const char *fingerprint, const char *other_name,
                           const char *other_fingerprint);

/* "data.train differs: worker/1 has 6 rows, worker/0 has 8" */
err greeting_compare_data(const char *name, const struct data_said *, const char *other_name,
                          const struct data_said *other);

/* REFUSED, with error_text(). */
struct message greeting_refusal(const struct greeter *, int exit_code);
/* Logs the refusal within the limit, and sends REFUSED; the caller closes the link. */
void greeting_refuse(const struct greeter *, struct link *, struct log_limit *, err why);

err greeting_send_visitor(struct link *);
/* Whether this HELLO is a visitor's; to be called before greeting_read(), which knows only tasks.
 * ERR_INPUT: another version of the protocol. false also if it is not a greeting. */
err greeting_read_visitor(const struct message *, bool *ret_is_visitor);

/* What a visitor learns from WELCOME: the index of the ps, and of how many. */
struct welcome {
    int ps;
    int room; /* how many ps are listed */
    struct membership membership;
};
err greeting_read_welcome(const struct message *, struct welcome *ret);

const char *greeting_boot_id(void); /* of this host; "": the system has none */
uint64_t greeting_draw_incarnation(void);

#endif
