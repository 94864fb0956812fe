/* tls.h - TLS 1.3 (RFC 8446) on the sockets of links: no message of a peer is read before it has
 * proved that it belongs to the job.
 *
 * It does so in one of two ways: by a pre-shared key of all tasks (with a Diffie-Hellman exchange,
 * for forward secrecy), or, on both sides, by a certificate of an authority that all tasks trust.
 *
 * A URI among a certificate's subject alternative names may limit its use: "dtrain:task",
 * "dtrain:writer" (a visitor), "dtrain:reader" (a visitor that changes nothing). Of several the
 * one with most rights counts; without a "dtrain:" URI it is valid for all uses, with only unknown
 * ones for none. A connecting side accepts only the certificate of a task.
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/base/error.h"
#include "net/transport.h"

enum { TLS_KEY_BYTES_MIN = 16, TLS_KEY_BYTES_MAX = 4096 };

struct tls_keys; /* credentials of this process, and those it requires of peers */
struct tls;      /* of one socket; used by one thread at a time, as its link is */

const char *tls_version(void); /* OpenSSL's; NULL: this program was built without */

/* The key is all bytes of a file, TLS_KEY_BYTES_MIN to TLS_KEY_BYTES_MAX of any kind. Only its
 * owner may read or write it (a group may read root's). "fd:N": an inherited descriptor. ERR_INPUT:
 * the file is unsuitable, or this program was built without TLS. */
err tls_keys_of_file(const char *path, struct tls_keys **ret);
/* PEM files: a certificate (with intermediate ones), its private key, which only its owner may
 * read, and the authority's certificate. Changed files are read again for the next connection, at
 * most once a second; while they do not match each other the old ones are used. ERR_INPUT as above.
 */
err tls_keys_of_certificate(const char *certificate, const char *key, const char *authority,
                            struct tls_keys **ret);
void tls_keys_close(struct tls_keys *); /* NULL is fine; close all connections first */

/* The keys and the socket are borrowed. is_active: this side has connected. */
err tls_open(struct tls_keys *, int fd, bool is_active, struct tls **ret);
void tls_close(struct tls *); /* NULL is fine; tells the peer if it need not block for that */

/* Continues the handshake without blocking. ERR_PEER: authentication failed, or the peer is gone.
 */
err tls_shake_hands(struct tls *, bool *ret_is_done);
enum right tls_right(const struct tls *); /* of the peer, once the handshake is done */
/* Like sendmsg and readv on a non-blocking socket: bytes moved, 0: the peer has closed (reading),
 * or -1 with errno. Bytes counted as sent have been copied: the caller may reuse their memory. */
ssize_t tls_send(struct tls *, const struct iovec *, int count);
ssize_t tls_receive(struct tls *, const struct iovec *, int count);
/* Bytes wait for room in the socket; bytes were read from it that tls_receive() has not returned.
 */
bool tls_has_unsent(const struct tls *);
bool tls_has_unread(const struct tls *);

#endif
