/* systems_none.c - where the program is built without libcurl: see systems.h. */
#include "core/base/files/file_system.h"
#include "net/web/systems.h"

#include <stddef.h>

static err open_none(const struct file_system *system, const char *path, struct file **ret)
{
    char shown[PATH_BYTES_MAX];
    return fail(ERR_INPUT,
                "%s: this dtrain is built without URLs: build it with libcurl4-openssl-dev, "
                "libssl-dev and libexpat1-dev",
                path_shown(path, shown));
}

static const char *const schemes[] = {"gs", "hdfs",     "http",    "https",
                                      "s3", "swebhdfs", "webhdfs", NULL};
static const struct file_system none = {.schemes = schemes, .open = open_none};

void web_systems_register(void)
{
    file_system_register(&none);
}

const char *web_library_version(enum web_library what)
{
    return NULL;
}
