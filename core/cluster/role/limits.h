/* limits.h - the limits on waiting for other tasks: a flag each. patience_is_over() in role.h ends
 * a role's waits and logs them. */
#ifndef CORE_CLUSTER_ROLE_LIMITS_H
#define CORE_CLUSTER_ROLE_LIMITS_H

#include <stdint.h>

/* Name, default in seconds, minimum, help. Each is a flag, --NAME_timeout, and a member of struct
 * wait_limits. */
#define WAIT_LIMITS(LIMIT)                                                                         \
    LIMIT(start, 600, 0.001,                                                                       \
          "seconds to wait for every ps and for the chief to be there, and for a worker before "   \
          "the others go on without it"),                                                          \
        LIMIT(step, 600, 0.001, "seconds to wait for the gradients of a step"),                    \
        LIMIT(end, 3600, 0.001,                                                                    \
              "seconds to wait for the others at the end of the run, evaluation included"),        \
        LIMIT(restart, 600, 0.001,                                                                 \
              "seconds to wait for a ps or the chief that was lost to be there again, and for "    \
              "storage that does not answer (a disk: 60 at most while a checkpoint is read)"),     \
        LIMIT(chief, 60, 0,                                                                        \
              "seconds that the chief may be gone or silent before another worker leads; 0: "      \
              "nobody takes its place"),                                                           \
        LIMIT(ps, 10, 0.001,                                                                       \
              "seconds that a ps may be gone before its follower takes its place "                 \
              "(train.ps_replicas)"),                                                              \
        LIMIT(stop, 30, 0.001,                                                                     \
              "seconds to end the job well, with a last checkpoint, after SIGTERM, SIGINT or "     \
              "SIGHUP, or for a worker to leave it"),                                              \
        LIMIT(save, 600, 0.001,                                                                    \
              "seconds that a checkpoint may take before it is given up, and for which the last "  \
              "one of a run is tried again"),                                                      \
        LIMIT(                                                                                     \
            publish, 600, 0.001,                                                                   \
            "seconds for which the copy of a checkpoint to train.publish.to is tried again, and "  \
            "for which the end of the run waits for the last one")

#define WAIT_LIMIT_MEMBER(NAME, ...) NAME##_ms
struct wait_limits { /* milliseconds */
    uint64_t WAIT_LIMITS(WAIT_LIMIT_MEMBER);
};

#endif
