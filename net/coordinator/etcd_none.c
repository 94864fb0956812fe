/* etcd_none.c - replaces etcd.c in a build without support for URLs. */
#include "net/coordinator/kind.h"

static err etcd_open(const char *servers, const char *root, bool by_tls, struct coordinator **ret)
{
    return fail(ERR_INPUT, "etcd: this build reaches no URLs (-Durls=enabled)");
}

const struct coordinator_kind coordinator_etcd = {
    .scheme = "etcd", .tls_scheme = "etcds", .port = "2379", .open = etcd_open};
