/* describe.h - what the chief of the simulation tells a ps with SETUP: the body of that message. */
#ifndef TESTS_SIMULATE_DESCRIBE_H
#define TESTS_SIMULATE_DESCRIBE_H

#include "core/cluster/role/ps.h"

struct description {
    struct ps_config config; /* the ps adds what it finds on its disk, or will be brought */
    int checkpoint;          /* NOTHING: initial values */
};

#endif
