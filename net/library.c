/* library.c - see library.h. */
#include "net/library.h"

#include <dlfcn.h>

err library_open(struct library *l, const struct library_function *functions, size_t count)
{
    if (l->handle) return OK;
    void *handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return fail(ERR_IO, "%s, which is not installed here (%s): %s", l->need, l->package,
                    dlerror());
    for (size_t i = 0; i < count; i++) {
        *functions[i].at = dlsym(handle, functions[i].name);
        if (*functions[i].at) continue;
        dlclose(handle);
        return fail(ERR_IO, "%s is too old: it has no %s", l->file, functions[i].name);
    }
    l->handle = handle;
    return OK;
}
