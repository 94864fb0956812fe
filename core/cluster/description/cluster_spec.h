/* cluster_spec.h - the tasks of a cluster, their addresses, and which of them this process is.
 *
 * From flags, environment variables of the same names in capitals, or TensorFlow's TF_CONFIG; flags
 * take precedence over variables, and JOB_NAME and the like over TF_CONFIG. With a "chief" job in
 * TF_CONFIG the chief becomes worker 0 and its workers follow as 1, 2, ...; "master" likewise (old
 * spelling).
 */
#ifndef CORE_CLUSTER_DESCRIPTION_CLUSTER_SPEC_H
#define CORE_CLUSTER_DESCRIPTION_CLUSTER_SPEC_H

#include "core/base/arena.h"
#include "core/base/fields/fields.h"
#include "core/cluster/role/role.h"
#include "net/transport.h"

struct cluster_spec {
    struct strings hosts[JOB_COUNT]; /* "host:port" by task index; count: of those that take part */
    int room[JOB_COUNT];             /* how many may take part; 0: `count` */
    uint64_t resizes;                /* number of resizes so far (membership.h) */
    enum job job;                    /* of this task */
    int task;
    bool is_distributed; /* false: no job was named; a single process */
    bool is_evaluator;   /* not part of the cluster: a visitor that computes like a worker */
    /* The name by which tasks find each other through a coordinator; NULL: by lists of hosts. Such
     * a task may restart at another address: find() gets the current one, from any thread; hosts
     * has the one known at start. */
    const char *name;
    void (*find)(void *registry, enum job, int task, char ret[ADDRESS_MAX]);
    bool (*has_lost)(void *registry); /* another process has this task's place; any thread */
    void *registry;
};

struct membership cluster_membership(const struct cluster_spec *);
int cluster_room(const struct cluster_spec *, enum job); /* how many tasks the lists name */
/* Changes which tasks take part. ERR_INPUT, and no change: the lists name fewer. */
err cluster_resize(struct cluster_spec *, const struct membership *);
bool cluster_has_place(const struct cluster_spec *); /* does this task take part? */

/* The current address of a task. */
void cluster_find(const struct cluster_spec *, enum job, int task, char ret[ADDRESS_MAX]);

enum cluster_word { WORD_JOB_NAME, WORD_TASK_INDEX, WORD_PS_HOSTS, WORD_WORKER_HOSTS, WORD_COUNT };
extern const char *const cluster_flag_names[WORD_COUNT]; /* "job_name", ... */

struct cluster_flags {    /* as given; NULL or -1: absent. From flags or environment variables */
    const char *job_name; /* "ps", "worker" or "evaluator" */
    int64_t task_index;
    const char *ps_hosts; /* comma separated */
    const char *worker_hosts;
    bool is_by_environment[WORD_COUNT]; /* for messages */
    const char *host_name; /* of this host: without an index, the task is the one listed with this
                              host (only once), as pods of a StatefulSet are; NULL: not used */
    const char *slurm;     /* "ps=2": all of this follows from srun's environment (slurm.h) */
    const char *ranks;     /* likewise, from other launchers' variables and hostfile (ranks.h) */
    const char *hostfile;
    int64_t base_port; /* for slurm and ranks; 0: it depends on the job */
    /* Likewise, from a coordinator, where tasks register; it may also assign the index. */
    const char *coordinator;                            /* net/coordinator/coordinator.h */
    const char *cluster;                                /* its name there */
    const char *tasks;                                  /* "ps=2,worker=3" */
    const char *key_file, *tls_cert, *tls_key, *tls_ca; /* cmd/proof.h */
    bool insecure;                                      /* listens to other hosts without these */
    int64_t ps, workers,
        resizes; /* how many of the lists take part, after how many resizes; 0: all */
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
/* Reduces the tasks that take part to the flags' ps and workers. ERR_INPUT: the lists name fewer.
 */
err cluster_reduce(const struct cluster_flags *, struct cluster_spec *);

/* "a:1,b:2" into the arena, each address checked. */
err cluster_split_hosts(enum job, const char *list, struct arena *, struct strings *ret);

/* How many workers of the cluster share this task's host, by the host part of the addresses (at
 * least 1). */
int cluster_workers_here(const struct cluster_spec *);

/* Whether the busiest host's network link carries more than 1.5 times as much if one ps holds all
 * variables as if they are balanced; from the lists alone, so that all tasks decide the same (with
 * a coordinator from the numbers of tasks). */
bool cluster_gains_by_balance(const struct cluster_spec *);

/* The index of this worker among those, from 0; the evaluator comes after the workers of its host;
 * 0 for a ps. */
int cluster_local_index(const struct cluster_spec *);

#endif
