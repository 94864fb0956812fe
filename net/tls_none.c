/* tls_none.c - tls.h without OpenSSL. */
#include "net/tls.h"

#include <errno.h>
#include <stddef.h>

const char *tls_version(void)
{
    return NULL;
}

err tls_keys_of_file(const char *path, struct tls_keys **ret)
{
    (void)ret;
    return fail(ERR_INPUT, "%s: this dtrain was built without TLS (libssl)", path);
}

err tls_keys_of_certificate(const char *certificate, const char *key, const char *authority,
                            struct tls_keys **ret)
{
    (void)key, (void)authority;
    return tls_keys_of_file(certificate, ret);
}

void tls_keys_close(struct tls_keys *keys)
{
    (void)keys;
}

err tls_open(struct tls_keys *keys, int fd, bool is_active, struct tls **ret)
{
    (void)keys, (void)fd, (void)is_active, (void)ret;
    return fail(ERR_INPUT, "this dtrain was built without TLS (libssl)");
}

void tls_close(struct tls *tls)
{
    (void)tls;
}

err tls_shake_hands(struct tls *tls, bool *ret_is_done)
{
    (void)tls, (void)ret_is_done;
    return ERR_PEER;
}

enum right tls_right(const struct tls *tls)
{
    (void)tls;
    return RIGHT_TO_NOTHING;
}

ssize_t tls_send(struct tls *tls, const struct iovec *pieces, int count)
{
    (void)tls, (void)pieces, (void)count;
    return errno = ENOTSUP, -1;
}

ssize_t tls_receive(struct tls *tls, const struct iovec *pieces, int count)
{
    return tls_send(tls, pieces, count);
}

bool tls_has_unsent(const struct tls *tls)
{
    (void)tls;
    return false;
}

bool tls_has_unread(const struct tls *tls)
{
    (void)tls;
    return false;
}
