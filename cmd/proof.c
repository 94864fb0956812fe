/* proof.c - see proof.h. */
#include "cmd/proof.h"

static err open_certificate(const struct cluster_flags *flags, struct tls_keys **ret)
{
    const char *missing = !flags->tls_cert  ? "--tls_cert"
                          : !flags->tls_key ? "--tls_key"
                          : !flags->tls_ca  ? "--tls_ca"
                                            : NULL;
    if (missing)
        return fail(ERR_INPUT, "%s is missing: a certificate goes with its key and its authority",
                    missing);
    return tls_keys_of_certificate(flags->tls_cert, flags->tls_key, flags->tls_ca, ret);
}

err proof_open(const struct cluster_flags *flags, struct tls_keys **ret)
{
    const bool has_certificate = flags->tls_cert || flags->tls_key || flags->tls_ca;
    *ret = NULL;
    if (flags->key_file && has_certificate)
        return fail(ERR_INPUT,
                    "--key_file: there is a certificate, too: one of both proves who a task is");
    if (has_certificate) return open_certificate(flags, ret);
    if (!flags->key_file) return OK;
    const err e = tls_keys_of_file(flags->key_file, ret);
    return e ? fail_prefix(e, "--key_file") : OK;
}
