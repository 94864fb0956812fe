/* loops_other.c - for processors with a single copy of the loops. */
#include "core/data/loops.h"

extern const struct loops loops_plain;

const struct loops *loops_best(void)
{
    return &loops_plain;
}
