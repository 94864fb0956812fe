/* systems_none.c - where the program is built without libcurl: see systems.h. */
#include "net/web/systems.h"

#include <stddef.h>

void web_systems_register(void)
{
}

const char *web_library_version(enum web_library what)
{
    return NULL;
}
