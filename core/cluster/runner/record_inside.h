/* record_inside.h - the rows of a record (record.h). */
#ifndef CORE_CLUSTER_RUNNER_RECORD_INSIDE_H
#define CORE_CLUSTER_RUNNER_RECORD_INSIDE_H

#include "core/cluster/runner/record.h"

enum {
    RECORD_NUMBERS = 4,
    RECORD_VERSION = 2,
    RECORD_SECTION = 0xd7,
    RECORD_HEAD_ROWS = 3,
    RECORD_ASKED = 0x40
};
#define RECORD_NONE UINT32_MAX

/* ERR_INPUT: too long. */
err record_path(const char *path, int ps, char ret[RECORD_PATH_MAX]);

#endif
