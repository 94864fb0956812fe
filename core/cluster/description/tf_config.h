/* tf_config.h - parses TensorFlow's environment variable TF_CONFIG. */
#ifndef CORE_CLUSTER_DESCRIPTION_TF_CONFIG_H
#define CORE_CLUSTER_DESCRIPTION_TF_CONFIG_H

#include "core/base/arena.h"
#include "core/cluster/description/cluster_spec.h"

struct tf_config {
    bool has_cluster, has_task;
    struct strings hosts[JOB_COUNT]; /* chief or master first among the workers */
    enum job job;
    int task;
    bool is_evaluator; /* then job is JOB_WORKER */
};

/* ERR_INPUT: "TF_CONFIG.cluster.ps[1] ...". Other members ("environment", "model_dir", ...) are
 * ignored. */
err tf_config_read(const char *text, struct arena *, struct tf_config *ret);

/* ERR_INPUT: 'where[index]: address "ADDRESS": ...', why it is not valid. */
err cluster_host_check(const char *where, int index, const char *address);

/* The maximum number of tasks of a job. */
int cluster_tasks_max(enum job);

#endif
