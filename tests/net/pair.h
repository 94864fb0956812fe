/* pair.h - two owners with a listener and a connection between them, for tests.
 *
 * Over sockets and rings each owner has a loop of its own, so that a test can leave one of them
 * asleep; inproc has one loop. What happened to an owner is counted in its struct end.
 */
#ifndef TESTS_NET_PAIR_H
#define TESTS_NET_PAIR_H

#include "core/base/error.h" /* before cmocka, which has a macro of the name fail */
#include "net/loop.h"
#include "net/tls.h"
#include "net/transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

enum { TEST_PATIENCE_MS = 60000 }; /* after this a test fails instead of hanging */

struct pair;

struct end {
    struct pair *pair;
    struct link *link; /* the last one that was accepted or connected */
    int accepted, turned_away, opened, shared, closed, messages;
    err why;                     /* of the last close */
    char text[ERROR_TEXT_MAX];   /* of the last close */
    struct message last;         /* without its body */
    struct link_windows windows; /* as shared() gave them */
    /* What the owner does beside counting; all optional. */
    void (*on_open)(struct end *, struct link *); /* accepted and opened */
    void (*on_message)(struct end *, struct link *, const struct message *);
    void (*on_closed)(struct end *, struct link *);
    void *(*on_place)(struct end *, struct link *, const struct message *);
    void *own; /* the test's */
};

struct pair {
    const struct transport *transport;
    struct loop *server_loop, *client_loop; /* the same one for inproc */
    struct listener *listener;
    char address[ADDRESS_MAX];
    struct end server, client;
    struct link_windows windows; /* the server's, after pair_share */
    bool is_calling; /* inside a call of the test: a callback now is against the contract */
    int descriptors_before;
};

extern const struct link_events end_events; /* context: struct end */

void pair_start(struct pair *, const struct transport *); /* loops and a listener */
void pair_connect(struct pair *);                         /* until both sides are open */
int connect_bare(const struct pair *);                    /* a socket of TCP to the server */
/* Until they are shared. rows_bytes 0: none. */
void pair_share_rows(struct pair *, size_t values_bytes, size_t gradients_bytes, size_t rows_bytes);
void pair_share(struct pair *, size_t values_bytes, size_t gradients_bytes); /* no rows */
void pair_open_windows(struct pair *, size_t values_bytes, size_t gradients_bytes,
                       size_t rows_bytes); /* and no more */
void expect_windows(struct link *, size_t values_bytes, size_t gradients_bytes, size_t rows_bytes);
void pair_stop(struct pair *); /* checks as well that no descriptor is left */

err pair_send(struct end *, struct link *,
              const struct message *); /* notes callbacks from within */
bool pair_poll(struct pair *);         /* looks at both loops once */

/* Polls until *count is at least wanted. */
void pair_until(struct pair *, const int *count, int wanted);

/* Runs the tests with a started pair as their state, over one transport or over all of them. */
int run_over(const struct transport *, struct CMUnitTest *, size_t count);
int run_over_all(struct CMUnitTest *, size_t count); /* over TCP with TLS, too */
int run_over_tls(struct CMUnitTest *, size_t count); /* over that alone */

extern struct tls_keys *pair_keys; /* of both sides; NULL: none */
/* Of a file of this text that nobody else may read, or of this mode; as there. */
err make_key(const char *text, struct tls_keys **ret);
err make_key_of_mode(const char *text, mode_t mode, struct tls_keys **ret);

int count_descriptors(void);
void make_address(const struct transport *, char *ret); /* one that nobody uses */

#endif
