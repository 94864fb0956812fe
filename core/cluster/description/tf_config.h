/* tf_config.h - what TensorFlow's environment variable TF_CONFIG says. */
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

/* ERR_INPUT: "TF_CONFIG.cluster.ps[1] ...". Members that are TensorFlow's own business
 * ("environment", "model_dir", ...) are left alone. */
err tf_config_read(const char *text, struct arena *, struct tf_config *ret);

/* ERR_INPUT: where[index] "address": why it is none. */
err cluster_host_check(const char *where, int index, const char *address);

/* How many tasks a job may have. */
int cluster_tasks_max(enum job);

#endif
