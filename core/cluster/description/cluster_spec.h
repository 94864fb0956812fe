/* cluster_spec.h - which tasks there are, where they listen, and which of them this one is.
 *
 * Said by flags, by the environment variables of the same names in capitals, or by TensorFlow's
 * TF_CONFIG; a flag beats the environment, JOB_NAME & co. beat TF_CONFIG.
 * With a "chief" job in TF_CONFIG the chief becomes worker 0 and its workers follow as 1, 2, ...;
 * "master" likewise (old spelling).
 */
#ifndef CORE_CLUSTER_DESCRIPTION_CLUSTER_SPEC_H
#define CORE_CLUSTER_DESCRIPTION_CLUSTER_SPEC_H

#include "core/base/arena.h"
#include "core/base/fields/fields.h"
#include "core/cluster/role/role.h"
#include "net/transport.h"

struct cluster_spec {
    struct strings hosts[JOB_COUNT]; /* "host:port" by task index; count: of those that take part */
    int room[JOB_COUNT];             /* as many may; 0: no more than do */
    uint64_t resizes;                /* that led to these counts (membership.h) */
    enum job job;                    /* of this task */
    int task;
    bool is_distributed; /* false: no job was named; a single process */
    bool is_evaluator;   /* not part of the cluster, which it only visits; computes like a worker */
    /* Of a cluster whose tasks find each other by its name, NULL: of another. They may come back
     * elsewhere: where one is now, from any thread; hosts say where it was. */
    const char *name;
    void (*find)(void *registry, enum job, int task, char ret[ADDRESS_MAX]);
    bool (*has_lost)(void *registry); /* another task has this one's place; from any thread */
    void *registry;
};

struct membership cluster_membership(const struct cluster_spec *);
int cluster_room(const struct cluster_spec *, enum job); /* how many tasks the lists name */
/* Other tasks take part. ERR_INPUT, and nothing has changed: the lists name fewer. */
err cluster_resize(struct cluster_spec *, const struct membership *);
bool cluster_has_place(const struct cluster_spec *); /* does this task take part? */

/* Where a task is now. */
void cluster_find(const struct cluster_spec *, enum job, int task, char ret[ADDRESS_MAX]);

enum cluster_word { WORD_JOB_NAME, WORD_TASK_INDEX, WORD_PS_HOSTS, WORD_WORKER_HOSTS, WORD_COUNT };
extern const char *const cluster_flag_names[WORD_COUNT]; /* "job_name", ... */

struct cluster_flags {    /* as given; NULL or -1 where absent. Filled by flags or their environment
                             variables */
    const char *job_name; /* "ps", "worker" or "evaluator" */
    int64_t task_index;
    const char *ps_hosts; /* comma separated */
    const char *worker_hosts;
    bool is_by_environment[WORD_COUNT]; /* for messages */
    const char *host_name; /* of this host: without an index, a task is the one that is listed once
                              on it, as the pods of a StatefulSet are; NULL: none is */
    const char *slurm;     /* "ps=2": all of this follows from what srun says (slurm.h) */
    const char *ranks; /* likewise, from what other launchers say, and a file of hosts (ranks.h) */
    const char *hostfile;
    int64_t base_port; /* of these; 0: it depends on the job */
    /* Likewise, from what tasks say to a coordinator; then the index may be left to it. */
    const char *coordinator;                            /* net/coordinator/coordinator.h */
    const char *cluster;                                /* its name there */
    const char *tasks;                                  /* "ps=2,worker=3" */
    const char *key_file, *tls_cert, *tls_key, *tls_ca; /* cmd/proof.h */
    bool insecure;                                      /* listens to other hosts without */
    int64_t ps, workers,
        resizes; /* this many of the lists take part, after this many resizes; 0: all */
};

bool cluster_flags_say(const struct cluster_flags *, enum cluster_word);

/* With a coordinator, nobody has been asked yet: hosts are "ps/0", "worker/0", ..., and task is -1
 * where the coordinator is to say it.
 * Where flags have slurm or ranks, the rest of them is absent, and TF_CONFIG is not looked at.
 * tf_config: text of the variable, or NULL. ERR_INPUT names what is missing or wrong:
 *     --job_name=worker needs --task_index
 *     task_index 7 but worker_hosts names 2 tasks
 *     ps_hosts[1]: address "localhost": expected host:port
 *     the same address twice: "localhost:2222" is ps/0 and worker/1
 *     ps/0 at h:0 chooses its port when it starts, and a worker must know it: ... (ports.h) */
err cluster_spec_make(const struct cluster_flags *, const char *tf_config, struct arena *,
                      struct cluster_spec *ret);
/* Of all that may take part, only those that ps and workers of the flags say. ERR_INPUT: there are
 * not this many. */
err cluster_reduce(const struct cluster_flags *, struct cluster_spec *);

/* "a:1,b:2" into the arena, each address checked. */
err cluster_split_hosts(enum job, const char *list, struct arena *, struct strings *ret);

/* How many workers of the cluster share this task's host, by the host part of the addresses (at
 * least 1). */
int cluster_workers_here(const struct cluster_spec *);

/* Whether the link of the busiest host carries more than 1.5 times as much where one ps holds
 * everything as where all hold as much; by the lists alone, so that all tasks say the same (of
 * tasks that find each other by a name: by their numbers). */
bool cluster_gains_by_balance(const struct cluster_spec *);

/* Which of them this worker is, from 0; the evaluator comes after those of its host; 0 for others.
 */
int cluster_local_index(const struct cluster_spec *);

#endif
