/* inproc.c - links between two owners in one loop: for tests, simulation and single-process runs.
 *
 * A message is put into the inbox of the other end and delivered when the loop looks at that.
 * Windows are the same memory on both sides.
 */
#include "net/loop_inside.h"
#include "net/wire.h"

#include <stdio.h>
#include <string.h>

struct inproc {
    struct link link;    /* first */
    struct inproc *peer; /* NULL: not connected, or the peer has closed */
    struct parcel_queue inbox;
};

static struct inproc *inproc_of(struct link *link)
{
    return (struct inproc *)link;
}

/* Addresses are looked up among the loop's listeners: they are valid only within it. */
static struct listener *find_listener(struct loop *loop, const char *address)
{
    for (struct listener *at = loop_first_listener(loop); at; at = at->next)
        if (at->transport == &transport_inproc && !at->is_closed && !strcmp(at->address, address))
            return at;
    return NULL;
}

static const struct link_ops ops;

/* Makes the other end and tells both owners. */
static void connect_now(struct inproc *active)
{
    struct listener *listener = find_listener(active->link.loop, active->link.peer_name);
    if (!listener) {
        link_end(&active->link, fail(ERR_PEER, "refused"));
        return;
    }
    const struct link_origin origin = {.transport = &transport_inproc,
                                       .ops = &ops,
                                       .loop = listener->loop,
                                       .events = &listener->events,
                                       .context = listener->context,
                                       .listener = listener};
    struct link *link;
    const err e = link_new(sizeof(struct inproc), &origin, &link);
    if (e) {
        link_end(&active->link, e);
        return;
    }
    struct inproc *passive = inproc_of(link);
    link_set_peer_name(link, active->link.peer_name);
    passive->peer = active;
    active->peer = passive;
    active->link.state = LINK_OPEN; /* so that accepted() can already send to it */
    link_open(link);
    if (active->link.state == LINK_OPEN) link_open(&active->link);
}

/* The windows are the peer's own memory: they outlive this link, or the peer's end closes first. */
static err adopt_windows(struct inproc *inproc, const struct message *message)
{
    TRY(link_check_windows(&inproc->link, message));
    const struct inproc *peer = inproc->peer;
    if (!peer) return fail(ERR_PEER, "closed the connection");
    link_adopt_windows(&inproc->link, &peer->link.shared.windows, false);
    return OK;
}

static err deliver(struct inproc *inproc, const struct parcel *parcel)
{
    struct message message;
    TRY(wire_unpack(parcel->header, &message));
    if (message.type == MESSAGE_WINDOWS) return adopt_windows(inproc, &message);
    TRY(link_check(&inproc->link, &message));
    message.body = parcel->payload;
    link_deliver(&inproc->link, &message);
    return OK;
}

/* The parcel leaves the inbox first: its callback may make the inbox grow. */
static void deliver_oldest(struct inproc *inproc)
{
    struct parcel parcel = parcel_queue_take(&inproc->inbox);
    const err e = deliver(inproc, &parcel);
    if (e) link_end(&inproc->link, e);
    parcel_free(&parcel);
}

static bool may_next_come_amid(struct inproc *inproc)
{
    struct message message;
    return !wire_unpack(parcel_queue_at(&inproc->inbox, 0)->header, &message) &&
           link_may_come_amid(&inproc->link, &message);
}

static bool inproc_look(struct link *link)
{
    struct inproc *inproc = inproc_of(link);
    if (link->state == LINK_CONNECTING) {
        if (loop_is_moving(link->loop)) return false;
        connect_now(inproc);
        return true;
    }
    int count = 0;
    while (inproc->inbox.count > 0 && link_may_deliver(link, count)) {
        link->needs_look = loop_is_moving(link->loop) && !may_next_come_amid(inproc);
        if (link->needs_look) break;
        deliver_oldest(inproc);
        count++;
    }
    if (link->state == LINK_OPEN && !inproc->peer && inproc->inbox.count == 0)
        link_end(link, fail(ERR_PEER, "closed the connection"));
    return count > 0;
}

/* Nothing wakes the loop for its own links: it must not block while the inbox has messages. */
static bool inproc_arm(struct link *link)
{
    const struct inproc *inproc = inproc_of(link);
    return link->state == LINK_CONNECTING || !inproc->peer || inproc->inbox.count > 0;
}

static err inproc_send(struct link *link, const struct parcel *parcel)
{
    struct inproc *peer = inproc_of(link)->peer;
    return peer ? parcel_queue_add(&peer->inbox, parcel) : OK; /* gone: closed() is on its way */
}

static err inproc_share(struct link *link)
{
    struct parcel parcel = {0};
    link_pack_windows(link, parcel.header);
    return inproc_send(link, &parcel);
}

static const struct parcel_queue *inproc_outgoing(const struct link *link)
{
    const struct inproc *peer = ((const struct inproc *)link)->peer;
    return peer ? &peer->inbox : NULL;
}

static struct link *inproc_other_end(const struct link *link)
{
    struct inproc *peer = ((const struct inproc *)link)->peer;
    return peer ? &peer->link : NULL;
}

static void inproc_hang_up(struct link *link)
{
    struct inproc *inproc = inproc_of(link);
    if (inproc->peer) inproc->peer->peer = NULL;
    inproc->peer = NULL;
}

static void inproc_drop(struct link *link)
{
    parcel_queue_free(&inproc_of(link)->inbox);
}

static const struct link_ops ops = {
    .look = inproc_look,
    .arm = inproc_arm,
    .send = inproc_send,
    .share = inproc_share,
    .outgoing = inproc_outgoing,
    .other_end = inproc_other_end,
    .hang_up = inproc_hang_up,
    .drop = inproc_drop,
    .shares_memory = true,
};

static err inproc_listen(struct loop *loop, const char *address, const struct link_events *events,
                         void *context, char *ret_address, struct listener **ret)
{
    if (strlen(address) >= ADDRESS_MAX)
        return fail(ERR_INPUT, "address \"%.32s...\" is longer than %d characters", address,
                    ADDRESS_MAX - 1);
    if (find_listener(loop, address))
        return fail(ERR_PEER, "cannot listen on %s: address already in use", address);
    struct listener like = {
        .transport = &transport_inproc, .loop = loop, .events = *events, .context = context};
    snprintf(like.address, sizeof like.address, "%s", address);
    TRY(listener_new(&like, ret));
    if (ret_address) memcpy(ret_address, like.address, ADDRESS_MAX);
    return OK;
}

static err inproc_connect(struct loop *loop, const char *address, const struct link_events *events,
                          void *context, struct link **ret)
{
    const struct link_origin origin = {.transport = &transport_inproc,
                                       .ops = &ops,
                                       .loop = loop,
                                       .events = events,
                                       .context = context,
                                       .is_active = true};
    struct link *link;
    TRY(link_new(sizeof(struct inproc), &origin, &link));
    link_set_peer_name(link, address);
    *ret = link;
    return OK;
}

const struct transport transport_inproc = {
    .name = "inproc",
    .what = "memory of one process",
    .reach = TRANSPORT_WITHIN_PROCESS,
    .listen = inproc_listen,
    .connect = inproc_connect,
};
