/* storage.h - how long to retry when a disk or a server fails. */
#ifndef CORE_CLUSTER_RUNNER_STORAGE_H
#define CORE_CLUSTER_RUNNER_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/cluster/role/limits.h"

/* How long to retry reading `path`. */
uint64_t storage_wait_ms(const char *path, const struct wait_limits *);

/* Called after an attempt that ended with e. true: to be retried (ERR_IO, within storage_wait_ms()
 * since since_ms), after a pause, and sometimes a warning with error_text(). */
bool storage_is_asked_again(err e, const char *path, const struct wait_limits *, uint64_t since_ms);

#endif
