/* zstd_none.c - if the program is built without zstd's library: see packing.h. */
#include "core/data/packing/packing.h"

const struct packing packing_zstd = {.name = "zstd"};

const char *packing_zstd_version(void)
{
    return NULL;
}
