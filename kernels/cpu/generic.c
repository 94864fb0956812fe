/* generic.c - processors other than x86-64: one instruction set, with gcc's generic vectors. */
#include <stddef.h>

#include "kernels/cpu/cpu.h"

extern const struct kernels kernels_table_generic;

static bool always(void)
{
    return true;
}

const struct instruction_set instruction_sets[] = {
    {"generic", "cpu generic", always, &kernels_table_generic},
    {NULL, NULL, NULL, NULL},
};

const char *openblas_core_wanted(const char *current)
{
    return NULL; /* OpenBLAS knows these processors */
}
