/* zookeeper_none.c - what stands for ZooKeeper in a build without its library's headers. */
#include "net/coordinator/kind.h"

#include <stddef.h>

static err zookeeper_open(const char *servers, const char *root, bool by_tls,
                          struct coordinator **ret)
{
    return fail(ERR_INPUT, "zookeeper: this build lacks it (-Dzookeeper=enabled)");
}

const char *coordinator_zookeeper_version(void)
{
    return NULL;
}

const struct coordinator_kind coordinator_zookeeper = {
    .scheme = "zookeeper", .port = "2181", .open = zookeeper_open};
