/* link.h - the inside of net/: what the links and listeners of all transports have in common.
 *
 * A link belongs to its loop from link_new() until the loop frees it. When it ends, for whatever
 * reason, its descriptors are given back at once, but closed() is called later by the loop and its
 * memory stays until the end of that loop_poll, so that no callback can pull it from under the code
 * that called it.
 */
#ifndef NET_LINK_H
#define NET_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "net/parcel_queue.h"
#include "net/stream/patches.h"
#include "net/transport.h"

enum link_state {
    LINK_CONNECTING,
    LINK_OPEN,
    LINK_ENDED,  /* closed() has still to be called */
    LINK_CLOSED, /* its end was announced */
};

enum {
    LINK_TEXT_MAX = 256,
    LINK_CONNECT_MAX_MS = 10000, /* a connection attempt, both sides */
    LINK_COMING_MAX = 256,  /* incoming attempts at a time; beyond that the oldest are dropped */
    LINK_COMING_KEPT = 192, /* until this many are left */
    LINK_STALL_MAX_MS = 120000,        /* between two pieces of one message */
    LINK_GUEST_MESSAGE_MAX_MS = 30000, /* from its first piece to its last, of a guest */
    LINK_MESSAGES_PER_LOOK_MAX = 64,   /* delivered, then other links have their turn */
    LINK_DEFERRED_MAX = 256,           /* messages that parts may overtake, */
    LINK_DEFERRED_BYTES_MAX = 1 << 20, /* and the bytes of their bodies */
    LINK_SLICE_US = 100,            /* the turn is over, too, if callbacks have taken this long */
    LINK_CODE_OF_OTHER_VERSION = 2, /* of REFUSED: an exit code, as for a wrong command line */
    LINK_CODE_OF_NO_MEMORY = 128,   /* likewise, for a peer that may try again */
};

/* What a transport does with its links. A function that fails for good leaves the link ENDED
 * (link_end). */
struct link_ops {
    /* Delivers what has come and sends what is queued, without waiting; true when a callback was
     * made or the link has become idle. Called for links in every state. */
    bool (*look)(struct link *);
    /* Before the loop blocks: makes sure that the peer will wake it. true: something is there
     * already. Optional: without it epoll does it. */
    bool (*arm)(struct link *);
    void (*disarm)(struct link *);
    err (*send)(struct link *, const struct parcel *);
    err (*share)(struct link *);                                 /* tells the peer of the windows */
    const struct parcel_queue *(*outgoing)(const struct link *); /* NULL: the peer is gone */
    void (*go_on)(struct link *);      /* NULL: it never waits for a place to put a message */
    void (*hang_up)(struct link *);    /* sends what it can, gives descriptors back; once */
    void (*drop)(struct link *);       /* frees what the transport added to the link; may be NULL */
    void (*keep_short)(struct link *); /* may be NULL */
    /* The other end if it is in this very loop, NULL if it is gone. May be NULL: it never is. */
    struct link *(*other_end)(const struct link *);
    bool shares_memory; /* windows are common memory: nothing of them travels; looking costs no
                           system call */
};

/* Memory that both sides see. */
struct link_shared {
    bool is_expected;            /* active: link_expect was called */
    bool is_there;               /* all windows are shared */
    bool is_ours;                /* active: they are made or mapped here */
    struct link_windows windows; /* until is_there, their bytes are the sizes that are expected */
    struct patches patches;      /* of the window of rows */
};

struct link_end {
    err why;
    char text[LINK_TEXT_MAX];
    bool is_of_other_version; /* so its peer has said */
};

struct link {
    const struct transport *transport;
    const struct link_ops *ops;
    struct loop *loop;
    struct link_events events;
    void *context;
    struct listener *listener; /* CONNECTING: whose owner is to hear of it; NULL: this side
                                  connects, or it is open */
    enum link_state state;
    bool is_active;               /* this side connected */
    bool is_announced;            /* its owner knows of it, and so will hear of its end */
    bool is_guest;                /* see net/loop/guests.h */
    bool is_near;                 /* its peer is on this host */
    enum right right;             /* of its peer */
    bool needs_look;              /* the loop has to look even if no descriptor is ready */
    int watch;                    /* of its descriptor; -1: none */
    int wake_watch;               /* of what the peer wakes this side by; -1: none */
    uint32_t body_max;            /* the longest body that may come */
    uint64_t deadline_ms;         /* 0: none; see link_expire */
    uint64_t took_ns;             /* time that callbacks took in this look */
    uint64_t progress;            /* grows when bytes come, and when a message is delivered */
    struct parcel_queue deferred; /* what came while the owner computed: it is delivered next */
    struct link_shared shared;
    struct link_end end;
    char peer_name[ADDRESS_MAX];
    struct link *next, *previous; /* the loop's */
};

struct listener {
    const struct transport *transport;
    struct loop *loop;
    struct link_events events;
    void *context;
    int fd, watch;                                    /* -1: none (inproc) */
    void (*arrived)(struct listener *, int fd);       /* takes the descriptor of a new connection */
    void (*say_last)(int fd, const struct message *); /* before it is closed; may be NULL */
    unsigned char secrets[32];                        /* shm: what a connection has to say first */
    int coming; /* links that are CONNECTING: nobody else counts them */
    bool is_closed;
    bool is_for_guests; /* its links begin as guests */
    char address[ADDRESS_MAX];
    struct listener *next, *previous; /* the loop's */
};

struct link_origin {
    const struct transport *transport;
    const struct link_ops *ops;
    struct loop *loop;
    const struct link_events *events;
    void *context;
    struct listener *listener; /* that it came to; NULL: this side connects */
    bool is_active;
    bool is_guest;
};

/* A link of `bytes` (a transport's struct that begins with a struct link), zeroed, CONNECTING.
 * ERR_MEMORY. */
err link_new(size_t bytes, const struct link_origin *, struct link **ret);
void link_free(struct link *); /* for the loop: hangs up if it must, no callback */

/* For transports. */
void link_set_peer_name(struct link *, const char *name);
void link_open(struct link *);         /* becomes OPEN; calls accepted() or opened() */
void link_end(struct link *, err why); /* becomes ENDED with the thread's error text */
/* The same, after a header of another version. The peer cannot read what REFUSED says, but sees our
 * version in its header. */
void link_end_of_other_version(struct link *, err why);
/* Delivers, or keeps it until its owner listens (net/loop/mover.h). */
void link_deliver(struct link *, const struct message *);
/* First what was kept, then what the transport has; as link_ops.look. */
bool link_look(struct link *);
void link_tell(struct link *, const struct message *);               /* its owner */
err link_check(const struct link *, const struct message *);         /* of a header that came */
err link_check_windows(const struct link *, const struct message *); /* a MESSAGE_WINDOWS */
/* The message that tells of the windows that this link shares. */
void link_pack_windows(const struct link *, unsigned char *ret_header);
/* Calls shared(). is_owned: they are freed with the link. */
void link_adopt_windows(struct link *, const struct link_windows *, bool is_owned);
void link_free_windows(struct link_windows *);
/* Whether this may be delivered while the owner computes (loop_is_moving) */
bool link_may_come_amid(const struct link *, const struct message *);
/* A message is incomplete: the rest must come in time. is_new: it has only begun. */
void link_set_deadline(struct link *, bool is_new);
/* Whether the next message of this look may be delivered */
bool link_may_deliver(struct link *, int delivered);
/* The window in which the stretch of an incoming message of this type appears. */
const struct window *link_incoming(const struct link *, uint32_t type);
/* Where that is to be put; NULL: it has to wait. */
void *link_place(struct link *, const struct message *);
/* Patches of the window that a message of this type has a stretch of; NULL: none */
const struct patches *link_patches(const struct link *, uint32_t type);

/* `kind` of this errno: "no descriptor is left for WHAT: all 64 that ulimit -n allows are open,
 * raise it", or "cannot make WHAT: ..." */
err link_fail_making(err kind, const char *what, int reason);

/* For the loop. */
void link_announce_end(struct link *); /* an ENDED link's closed() */
void link_expire(struct link *);       /* its deadline has passed */

err listener_new(const struct listener *like, struct listener **ret); /* copies, joins the loop */
/* For lack of a descriptor, as error_text() says. */
void listener_turn_away(const struct listener *, int fd);
void listener_stop(struct listener *); /* takes no more connections */
/* As listener_new, of a listening socket, which it takes in any case; arrived() for each
 * connection. */
err listener_open(const struct listener *like, int fd, struct listener **ret);

#endif
