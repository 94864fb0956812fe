/* tls.h - TLS 1.3 (RFC 8446) on the sockets of links: nothing of what a peer says is looked at
 * before it has proved that it belongs to the job.
 *
 * What proves it is one of two: a key that all tasks share (a pre-shared key, with a Diffie-Hellman
 * exchange, so that a key that is lost later opens nothing that was recorded), or a certificate of
 * an authority that all tasks trust, on both sides.
 *
 * A certificate may say by a URI among its subject alternative names what it is for: "dtrain:task",
 * "dtrain:writer" (a visitor), "dtrain:reader" (a visitor that changes nothing). Of several the
 * first of these counts; without one it is for all, by one of "dtrain:" that is none of these for
 * nothing. Whoever connects takes the certificate of a task alone.
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/base/error.h"
#include "net/transport.h"

enum { TLS_KEY_BYTES_MIN = 16, TLS_KEY_BYTES_MAX = 4096 };

struct tls_keys; /* how this process proves who it is, and what it asks of others */
struct tls;      /* of one socket; used by one thread at a time, as its link is */

const char *tls_version(void); /* OpenSSL's; NULL: this program was built without */

/* A file that its owner alone may read or write (of root's: a group may read it), of
 * TLS_KEY_BYTES_MIN to TLS_KEY_BYTES_MAX bytes, of any form: all of them are the key. "fd:N" is
 * one that was opened by whoever started this process. ERR_INPUT says what is wrong with it, also
 * where this program was built without TLS. */
err tls_keys_of_file(const char *path, struct tls_keys **ret);
/* Files in PEM: a certificate (and what leads to the authority's), its private key, which its owner
 * alone may read, and the authority's. Where they have changed they are read again for the next
 * connection, once in a second at most; while they do not fit together those of before are used.
 * ERR_INPUT as above. */
err tls_keys_of_certificate(const char *certificate, const char *key, const char *authority,
                            struct tls_keys **ret);
void tls_keys_close(struct tls_keys *); /* NULL is fine; after all that was opened with it */

/* The keys and the socket are borrowed. is_active: this side has connected. */
err tls_open(struct tls_keys *, int fd, bool is_active, struct tls **ret);
void tls_close(struct tls *); /* NULL is fine; tells the peer, as far as that goes at once */

/* As far as it goes at once. ERR_PEER: the peer does not prove who it is, or is gone. */
err tls_shake_hands(struct tls *, bool *ret_is_done);
enum right tls_right(const struct tls *); /* of the peer, when that is done */
/* Like sendmsg and readv of a socket that does not wait: bytes of the pieces, 0: the peer has
 * ended (reading), or -1 with errno. What was taken is on its way: nothing of the pieces is needed
 * any more. */
ssize_t tls_send(struct tls *, const struct iovec *, int count);
ssize_t tls_receive(struct tls *, const struct iovec *, int count);
/* Something waits for room in the socket; something was read of it that nobody has asked for. */
bool tls_has_unsent(const struct tls *);
bool tls_has_unread(const struct tls *);

#endif
