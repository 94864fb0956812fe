/* proof.h - flags for the credentials of links between hosts (net/tls.h).
 */
#ifndef CMD_PROOF_H
#define CMD_PROOF_H

#include "core/cluster/description/cluster_spec.h"
#include "net/tls.h"

/* Rows for the table of a struct with a member `cluster`, of struct cluster_flags; takers: 0 where
 * one kind of task alone has them. */
#define PROOF_FLAG(owner, flag, variable, who, text)                                               \
    {                                                                                              \
        .name = #flag, .type = FIELD_STRING, .offset = offsetof(owner, cluster.flag),              \
        .fallback = "null", .environment = variable, .takers = who, .help = text                   \
    }
#define PROOF_FLAGS(owner, who)                                                                    \
    PROOF_FLAG(owner, key_file, "DTRAIN_KEY_FILE", who,                                            \
               "file with a key that all tasks of the job and their visitors have, mode 0600: "    \
               "links over TCP are encrypted (TLS 1.3), and whoever has another key or none is "   \
               "rejected"),                                                                        \
        PROOF_FLAG(owner, tls_cert, "DTRAIN_TLS_CERT", who,                                        \
                   "certificate of this task in PEM, instead of --key_file; with --tls_key and "   \
                   "--tls_ca"),                                                                    \
        PROOF_FLAG(owner, tls_key, "DTRAIN_TLS_KEY", who,                                          \
                   "private key of --tls_cert in PEM, mode 0600"),                                 \
        PROOF_FLAG(owner, tls_ca, "DTRAIN_TLS_CA", who,                                            \
                   "certificate of the authority in PEM that has signed those of all tasks and "   \
                   "visitors")

/* *ret NULL: no flag is given, no authentication. ERR_INPUT names the flag. */
err proof_open(const struct cluster_flags *, struct tls_keys **ret);

#endif
