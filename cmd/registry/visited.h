/* visited.h - finds the parameter servers of a running cluster for a command: by --ps_hosts, or
 * through a coordinator. */
#ifndef CMD_REGISTRY_VISITED_H
#define CMD_REGISTRY_VISITED_H

#include "cmd/proof.h"
#include "core/cluster/description/cluster_spec.h"
#include "core/cluster/visit/visitor.h"

/* Rows for the table of a struct with a member `cluster`, of struct cluster_flags */
#define VISITED_FLAGS(owner, hosts_help)                                                           \
    {.name = "ps_hosts",                                                                           \
     .type = FIELD_STRING,                                                                         \
     .offset = offsetof(owner, cluster.ps_hosts),                                                  \
     .fallback = "null",                                                                           \
     .environment = "PS_HOSTS",                                                                    \
     .help = hosts_help},                                                                          \
        {.name = "coordinator",                                                                    \
         .type = FIELD_STRING,                                                                     \
         .offset = offsetof(owner, cluster.coordinator),                                           \
         .fallback = "null",                                                                       \
         .help = "the coordinator that the tasks of the cluster were started with, instead of "    \
                 "lists of hosts"},                                                                \
        {.name = "cluster",                                                                        \
         .type = FIELD_STRING,                                                                     \
         .offset = offsetof(owner, cluster.cluster),                                               \
         .fallback = "null",                                                                       \
         .help = "with --coordinator: name of the cluster"},                                       \
        PROOF_FLAGS(owner, 0)

struct visited {
    struct strings hosts; /* of the ps */
    struct cluster_spec cluster;
    const char *coordinator;   /* NULL: --ps_hosts is given */
    struct registry *registry; /* at the coordinator */
    struct tls_keys *keys;     /* NULL: no authentication */
    struct loop *loop;
    struct visitor *visitor;
};

/* Reads the flags and the key; contacts nobody. who: "var ls", for messages. ERR_INPUT. */
err visited_read(struct visited *, const struct cluster_flags *, const char *who, struct arena *);

/* Finds the ps, then connects to them, each within limit_ms. options: all but the loop and the ps.
 * Errors are those of registry_join, visitor_open and visitor_wait_up; *ret is borrowed, and also
 * set if only the last of these fails. */
err visited_open(struct visited *, struct visitor_options, uint64_t limit_ms, struct arena *,
                 struct visitor **ret);
void visited_close(struct visited *); /* a zeroed one is fine */

#endif
