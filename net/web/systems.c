/* systems.c - see systems.h. */
#include "net/web/systems.h"

#include "net/web/services.h"

void web_systems_register(void)
{
    static const struct web_service *const services[] = {&gs_service, &hdfs_service, &http_service,
                                                         &s3_service};
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        file_system_register(&services[i]->files);
}

const char *web_systems_version(void)
{
    return http_version();
}
