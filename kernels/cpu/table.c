/* table.c - the kernels of one instruction set. */
#include "kernels/cpu/isa.h"

/* x86.c and generic.c declare it by its full name. */
extern const struct kernels ISA(table);

const struct kernels ISA(table) = {
#define KERNEL(returns, name, ...) .name = ISA(name),
#include "kernels/kernels.def"
};
