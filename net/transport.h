/* transport.h - connections between tasks: the contract that every transport keeps.
 *
 * Three transports (transports.def): tcp, shm (a Unix socket for bodies and liveness, a ring of
 * headers and windows in shared memory) and inproc (tests, simulation, single process). One
 * contract test runs over all of them.
 *
 * A link is one connection. Its life, as its owner sees it through struct link_events:
 *     connecting -> opened -> (messages, shared) -> closed
 * - Everything happens in the thread that runs the loop, but for bytes that move while it is lent
 * (loop_lend). No callback is made from within link_send, link_connect or transport_listen; they
 * come from loop_poll, and those of parts from loop_move, loop_await and loop_reclaim, too (inproc,
 * those of the other end of a link that is awaited from loop_await). A
 * callback may call anything here, link_close too.
 * - Messages of one link arrive in the order in which they were sent, each exactly once, or the
 * link closes; but parts of a block that wait to leave may be overtaken (message_urgency).
 * - link_send never blocks. Where it fails the link closes: nobody needs to remember what did not
 * leave, whoever makes the next link asks what came. Header and body are copied (queue limit:
 * LINK_QUEUE_MAX messages and MESSAGE_BODY_MAX body bytes; beyond it ERR_PEER). A stretch must be
 * in the window that is shared (ERR_INPUT) and is not copied: over tcp the sender must leave
 * [offset, length) of its window alone until link_is_idle(), over shm and inproc until the receiver
 * says so by a message of its own.
 * - closed comes exactly once for every link that was made, unless its owner calls link_close,
 * after which nothing comes. Peer gone at any moment: ERR_PEER; peer sent nonsense: ERR_PROTOCOL;
 * the text says what. The link is freed after it.
 * - Every length from the wire is checked against a limit before memory is asked for or touched.
 * The header fields that the receiver does not understand are the role's business, offset and
 * length are checked here against the window.
 *
 * Windows. The passive side (ps) makes windows with window_new and shares them with a link:
 * `values` goes to the peer, `gradients` comes from it, and lends itself to what the peer asks for
 * while it has none (message_has_lent); stretches of `rows` (message_has_rows) go
 * both ways, each side having a part of it that it alone writes, as their owners agree: where
 * memory is shared both see the same, over tcp each has a buffer of its own, and a stretch comes to
 * the place that it has left. The active side says beforehand what sizes it expects; anything else
 * is ERR_PROTOCOL. Shared memory is sealed against shrinking (F_SEAL_SHRINK, F_SEAL_GROW, checked
 * by the peer), so no peer can make a task fault by truncating it. shm rings are written by a peer:
 * every index and field read from them is checked.
 */
#ifndef NET_TRANSPORT_H
#define NET_TRANSPORT_H

#include <stdbool.h>

#include "core/base/error.h"
#include "net/message.h"

struct loop;
struct link;
struct listener;

enum { LINK_QUEUE_MAX = 1024, ADDRESS_MAX = 256 };

/* What whoever is at the other end may do in the job: as its certificate says (net/tls.h). By a
 * key, and where nothing is proved, everything. */
enum right { RIGHT_TO_NOTHING, RIGHT_TO_LOOK, RIGHT_TO_CHANGE, RIGHT_TO_TAKE_PART };

struct window {
    void *base; /* aligned to a page; zeroed when new */
    size_t bytes;
    int fd;    /* memfd behind it, or -1 */
    int lacks; /* why there is none: errno, or 0 */
};

err window_new(size_t bytes,
               struct window *ret); /* memfd where the system has it, else plain memory (fd -1) */
void window_free(struct window *);  /* a zeroed one is fine */

/* What one link shares. */
struct link_windows {
    struct window values, gradients, rows; /* rows.bytes 0: there are none, and no window of them */
};

struct link_events {
    void (*accepted)(void *context,
                     struct link *); /* listeners: a new link; set its context here if wanted */
    /* Listeners: no descriptor is left for a connection; error_text() says so. It is hung up on;
     * over tcp it hears the message first that this fills in (type 0: none; its body is read before
     * the next failure). */
    void (*turned_away)(void *context, struct message *ret_last_words);
    void (*opened)(void *context, struct link *); /* connecting side */
    void (*message)(void *context, struct link *, const struct message *);
    /* Passive side, where the window of gradients that it has shared has no memory: that of all of
     * it, for the stretch of this message, of which the header has come. NULL: not now, and nothing
     * more is read before link_go_on(): the peer waits. */
    void *(*place)(void *context, struct link *, const struct message *);
    /* active side: the windows that the peer shared, owned by the link */
    void (*shared)(void *context, struct link *, const struct link_windows *);
    void (*closed)(void *context, struct link *, err why); /* error_text() says more */
};

enum transport_reach { TRANSPORT_WITHIN_PROCESS, TRANSPORT_WITHIN_HOST, TRANSPORT_ANYWHERE };

struct transport {
    const char *name; /* "tcp", "shm", "inproc" */
    const char *what; /* in messages: "shared memory" */
    /* Within a host: a task listens at a name that it draws, and says it in its greetings. */
    enum transport_reach reach;
    /* address: tcp "host:port" (port 0: any free one) or "fd:N", a listening socket that was
     * inherited as descriptor N (taken: made non-blocking and close-on-exec; see address_reserve);
     * shm: an abstract socket's name; inproc: any
     * text. ret_address (ADDRESS_MAX bytes or NULL) receives the address with its real port or
     * name, of shm also with what tells who belongs to the job: for tasks of it alone. ERR_PEER:
     * what may mend itself: a name that does not resolve, an address in use (with its owner where
     * /proc shows it) or not one of this host; ERR_IO: anything else.
     */
    err (*listen)(struct loop *, const char *address, const struct link_events *, void *context,
                  char *ret_address, struct listener **ret);
    /* One attempt. Refused, unreachable, no such host: closed(ERR_PEER) later; retrying is the
     * owner's business. */
    err (*connect)(struct loop *, const char *address, const struct link_events *, void *context,
                   struct link **ret);
};
void listener_close(struct listener *);

#define TRANSPORT(NAME) extern const struct transport transport_##NAME;
#define TRANSPORT_INSIDE(NAME) TRANSPORT(NAME)
#include "net/transports.def"
#undef TRANSPORT
#define TRANSPORT(NAME) TRANSPORT_AT_##NAME,
enum {
#include "net/transports.def"
    TRANSPORT_COUNT
};
#undef TRANSPORT
#undef TRANSPORT_INSIDE
extern const struct transport *const transports[TRANSPORT_COUNT]; /* in that order */

err link_send(struct link *, const struct message *);
/* The same; the stretch is of such a window at `base`. */
err link_send_from(struct link *, const struct message *, const void *base);
bool link_is_idle(const struct link *);        /* nothing queued and nothing half sent */
bool link_has_ended(const struct link *);      /* which its owner hears from the next loop_poll */
size_t link_queued_bytes(const struct link *); /* sent, but not out yet */
/* Is a quarter of the queue left after a message with such a body? For what can be said later, or
 * not at all: a peer that does not read costs no link by it. */
bool link_has_room(const struct link *, size_t body_bytes);
/* From now on the system holds no more of what is sent than keeps the connection busy, so that it
 * is idle later and what is said next comes sooner. */
void link_keep_short(struct link *);
void link_close(struct link *); /* what is queued is sent if it can be without waiting */
/* What has come waits for its place (link_events.place): it is asked for again. */
void link_go_on(struct link *);
uint64_t link_progress(const struct link *); /* grows when bytes come */
/* Guests are served in a small share of the loop's time (net/loop/guests.h), and are not heard
 * while answers to them are queued. What a former guest says from now on is not measured. */
void link_set_guest(struct link *, bool is_guest);
void link_set_body_max(struct link *, uint32_t bytes); /* MESSAGE_BODY_MAX where it is not set */
void listener_set_guests(
    struct listener *); /* accepting is guests' time, and its links are guests */
void link_set_context(struct link *, void *context);
void *link_context(const struct link *);
const char *link_peer_name(const struct link *); /* address text, for messages */
enum right link_right(const struct link *);
/* In closed(): the peer is a program that speaks another version of the protocol, and has been told
 * of it. To try again would be in vain. */
bool link_is_of_other_version(const struct link *);
const struct transport *link_transport(const struct link *);

/* Passive; borrowed. ERR_IO: windows of plain memory cannot be shared over this transport; the peer
 * hears REFUSED with why. Over tcp base may be NULL: of gradients, whose place is asked for; of
 * values, which link_send_from() sends. */
err link_share(struct link *, const struct link_windows *);
/* Active, before the peer shares; `bytes` alone are read. */
void link_expect(struct link *, const struct link_windows *);
/* Where memory is not shared, bytes of the window of rows may lie elsewhere: what is sent of them
 * is read at `at`, which is left alone as the window is, and what comes of them is put there.
 * Active, once windows are there; ascending, none over another. ERR_INPUT: it may not be there;
 * ERR_MEMORY: and the link closes. */
struct patch {
    uint64_t offset, bytes; /* of the window */
    void *at;               /* borrowed */
};
err link_patch(struct link *, const struct patch *);
void link_unpatch(struct link *); /* all of it is the window again */
bool link_shares_memory(
    const struct link *); /* true: the peer reads `values` in place (shm, inproc) */
/* The peer is on this host, as far as addresses tell: sending costs CPU time and no latency. */
bool link_is_near(const struct link *);

/* The address check that flags and TF_CONFIG use too: "host:port", port 0 to 65535, [v6]:port
 * allowed. ERR_INPUT says why. */
err address_check(const char *address);
/* An address for a task that is about to be started, as tcp's listen takes it: *ret_fd listens
 * there
 * ("127.0.0.1:40123" of 127.0.0.1:0) and is close-on-exec; whoever starts the task in another
 * process clears that flag in the child, says "fd:N" to it, and closes its own copy. No other
 * process can take the port in between. */
err address_reserve(const char *address, char ret_address[ADDRESS_MAX], int *ret_fd);
/* The host of this machine's address on the way to that one: "10.0.0.7", "[fd00::7]". ERR_PEER: it
 * does not resolve, or there is no way. */
err address_towards(const char *address, char ret_host[ADDRESS_MAX]);
/* Who listens on this port, as far as /proc shows it: "pid 4242 (python3)"; "" if unknown. */
void address_owner(const char *address, char *ret, size_t size);

#endif
