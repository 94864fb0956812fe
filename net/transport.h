/* transport.h - connections between tasks: the contract that every transport keeps.
 *
 * Three transports (transports.def): tcp, shm (a Unix socket for bodies and liveness, a ring of
 * headers and windows in shared memory) and inproc (tests, simulation, single process). One
 * contract test runs over all of them.
 *
 * A link is one connection. Its life, as its owner sees it through struct link_events:
 *     connecting -> opened -> (messages, shared) -> closed
 * - Everything happens in the thread that runs the loop, except that while it is lent (loop_lend)
 * another thread moves bytes. No callback is made from within link_send, link_connect or
 * transport_listen; they come from loop_poll, and those of parts from loop_move, loop_await and
 * loop_reclaim, too (inproc, those of the other end of a link that is awaited from loop_await). A
 * callback may call anything here, link_close too.
 * - Messages of one link arrive in the order in which they were sent, each exactly once, or the
 * link closes; but parts of a block that wait to leave may be overtaken (message_urgency).
 * - link_send never blocks. If it fails the link closes: its owner need not remember what was not
 * sent, since whoever makes the next link asks what has arrived. Header and body are copied (queue
 * limit: LINK_QUEUE_MAX messages and MESSAGE_BODY_MAX body bytes; beyond it ERR_PEER). A stretch
 * must be in the window that is shared (ERR_INPUT) and is not copied: over tcp the sender must
 * leave [offset, length) of its window alone until link_is_idle(), over shm and inproc until the
 * receiver says so by a message of its own.
 * - closed comes exactly once for every link that was made, unless its owner calls link_close,
 * after which no callback comes. Peer gone: ERR_PEER; peer broke the protocol: ERR_PROTOCOL; the
 * text says what. The link is freed after it.
 * - Every length from the wire is checked against a limit before memory is asked for or touched.
 * The header fields that the receiver does not understand are the role's business, offset and
 * length are checked here against the window.
 *
 * Windows. The passive side (ps) makes windows with window_new and shares them with a link:
 * `values` goes to the peer, `gradients` comes from it, and is lent for answers to the peer while
 * the peer sends no gradients (message_has_lent); stretches of `rows` (message_has_rows) go both
 * ways, each side writing only its own part, as their owners agree: where memory is shared both see
 * the same, over tcp each has its own buffer, and a stretch arrives at the offset that it left
 * from. The active side says beforehand what sizes it expects; anything else
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

/* What a peer may do in the job, by its certificate (net/tls.h). With a shared key, and without
 * authentication, everything. */
enum right { RIGHT_TO_NOTHING, RIGHT_TO_LOOK, RIGHT_TO_CHANGE, RIGHT_TO_TAKE_PART };

struct window {
    void *base; /* page-aligned; zeroed when new */
    size_t bytes;
    int fd;    /* memfd behind it, or -1 */
    int lacks; /* errno of making the memfd, or 0 */
};

err window_new(size_t bytes,
               struct window *ret); /* memfd where the system has it, else plain memory (fd -1) */
void window_free(struct window *);  /* a zeroed one is fine */

/* The windows that one link shares. */
struct link_windows {
    struct window values, gradients, rows; /* rows.bytes 0: no window of rows */
};

struct link_events {
    void (*accepted)(void *context,
                     struct link *); /* listeners: a new link, whose context may be set here */
    /* Listeners: a connection is closed for lack of a descriptor; error_text() says so. Over tcp
     * the message that this fills in is sent first (type 0: none; its body is sent before
     * error_text() changes). */
    void (*turned_away)(void *context, struct message *ret_last_words);
    void (*opened)(void *context, struct link *); /* connecting side */
    void (*message)(void *context, struct link *, const struct message *);
    /* Passive side, if it has shared a window of gradients without memory: returns memory for the
     * whole window, to receive the stretch of this message, whose header has come. NULL: not now;
     * the link reads nothing more before link_go_on(), and the peer waits. */
    void *(*place)(void *context, struct link *, const struct message *);
    /* active side: the windows that the peer shared, owned by the link */
    void (*shared)(void *context, struct link *, const struct link_windows *);
    void (*closed)(void *context, struct link *, err why); /* error_text() says more */
};

enum transport_reach { TRANSPORT_WITHIN_PROCESS, TRANSPORT_WITHIN_HOST, TRANSPORT_ANYWHERE };

struct transport {
    const char *name; /* "tcp", "shm", "inproc" */
    const char *what; /* in messages: "shared memory" */
    /* TRANSPORT_WITHIN_HOST: a task listens at a random name, which it tells in its greetings. */
    enum transport_reach reach;
    /* address: tcp "host:port" (port 0: any free one) or "fd:N", a listening socket that was
     * inherited as descriptor N (taken: made non-blocking and close-on-exec; see address_reserve);
     * shm: an abstract socket's name; inproc: any
     * text. ret_address (ADDRESS_MAX bytes or NULL) receives the address with its real port or
     * name, for shm also with its secrets: to be told only to tasks of the job. ERR_PEER: may be
     * temporary: a name that does not resolve, an address in use (with its owner where /proc shows
     * it) or not one of this host; ERR_IO: anything else.
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
extern const struct transport *const transports[TRANSPORT_COUNT]; /* in order of the .def */

err link_send(struct link *, const struct message *);
/* The same, but the window that the stretch is of begins at `base`. */
err link_send_from(struct link *, const struct message *, const void *base);
bool link_is_idle(const struct link *);        /* nothing queued and nothing half sent */
bool link_has_ended(const struct link *);      /* closed() is called by the next loop_poll */
size_t link_queued_bytes(const struct link *); /* given to link_send, not sent yet */
/* Whether a quarter of the queue is left after a message with such a body. For messages that can be
 * delayed or dropped, so that they do not overflow the queue of a peer that does not read. */
bool link_has_room(const struct link *, size_t body_bytes);
/* From now on the system buffers only as many sent bytes as keep the connection busy, so that the
 * next message arrives sooner; link_is_idle() comes later. */
void link_keep_short(struct link *);
void link_close(struct link *); /* sends what is queued, as far as that does not block */
/* Calls link_events.place again, after it has returned NULL. */
void link_go_on(struct link *);
uint64_t link_progress(const struct link *); /* grows when bytes come */
/* Guests get a small share of the loop's time (net/loop/guests.h), and are not read from while
 * answers to them are queued. */
void link_set_guest(struct link *, bool is_guest);
void link_set_body_max(struct link *, uint32_t bytes); /* the default is MESSAGE_BODY_MAX */
void listener_set_guests(
    struct listener *); /* it accepts in guests' time, and its links are guests */
void link_set_context(struct link *, void *context);
void *link_context(const struct link *);
const char *link_peer_name(const struct link *); /* address text, for messages */
enum right link_right(const struct link *);
/* For closed(): the peer speaks another version of the protocol, and has been told so. Retrying is
 * pointless. */
bool link_is_of_other_version(const struct link *);
const struct transport *link_transport(const struct link *);

/* Passive side; borrows the windows' memory. ERR_IO: this transport cannot share plain memory; the
 * peer is sent REFUSED with the reason. Over tcp base may be NULL: of gradients if place() is set;
 * of values if link_send_from() sends them. */
err link_share(struct link *, const struct link_windows *);
/* Active side, before the peer shares; only `bytes` are read. */
void link_expect(struct link *, const struct link_windows *);
/* Replaces a range of the window of rows by memory at `at`, where windows are not shared memory:
 * sends read there (until link_is_idle(), as with the window), and what comes is put there. Active
 * side, once the windows are shared; ascending, not overlapping. ERR_INPUT: not possible there;
 * ERR_MEMORY: the link closes. */
struct patch {
    uint64_t offset, bytes; /* of the window */
    void *at;               /* borrowed */
};
err link_patch(struct link *, const struct patch *);
void link_unpatch(struct link *); /* removes all patches */
bool link_shares_memory(
    const struct link *); /* true: the peer reads `values` in place (shm, inproc) */
/* Whether the peer is on this host, by its address: sending costs CPU time but no latency. */
bool link_is_near(const struct link *);

/* The address check that flags and TF_CONFIG use too: "host:port", port 0 to 65535, [v6]:port
 * allowed. ERR_INPUT says why. */
err address_check(const char *address);
/* Reserves an address for a task that is about to be started: *ret_fd listens there ("127.0.0.1:0"
 * becomes "127.0.0.1:40123") and is close-on-exec; whoever starts the task clears that flag in the
 * child, passes it "fd:N", and closes its own copy. So no other process can take the port in
 * between. */
err address_reserve(const char *address, char ret_address[ADDRESS_MAX], int *ret_fd);
/* This machine's own address on the route to that one, without port: "10.0.0.7", "[fd00::7]".
 * ERR_PEER: the name does not resolve, or there is no route. */
err address_towards(const char *address, char ret_host[ADDRESS_MAX]);
/* Who listens on this port, as far as /proc shows it: "pid 4242 (python3)"; "" if unknown. */
void address_owner(const char *address, char *ret, size_t size);

#endif
