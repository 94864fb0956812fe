/* real.h - the C library's own functions, in whose place ours stand. */
#ifndef TESTS_WORLD_REAL_H
#define TESTS_WORLD_REAL_H

#include <dlfcn.h>

/* Called where no process of the machine runs. */
#define REAL(NAME) ((__typeof__(&NAME))dlsym(RTLD_NEXT, #NAME))

#endif
