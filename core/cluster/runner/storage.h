/* storage.h - how long a disk or a server is waited for that does not answer: it may be back. */
#ifndef CORE_CLUSTER_RUNNER_STORAGE_H
#define CORE_CLUSTER_RUNNER_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/cluster/role/limits.h"

/* How long what lies there is asked for again, where that fails. */
uint64_t storage_wait_ms(const char *path, const struct wait_limits *);

/* After a look that ended with e: true, behind a pause and sometimes a warning with error_text(),
 * where it is to be tried again: after ERR_IO, within storage_wait_ms() since since_ms. */
bool storage_is_asked_again(err e, const char *path, const struct wait_limits *, uint64_t since_ms);

#endif
