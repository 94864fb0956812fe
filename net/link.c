/* link.c - the part of links and listeners that does not depend on the transport. */
#include "net/link.h"

#include "net/closing.h"
#include "net/loop_inside.h"
#include "net/loop/mover.h"
#include "net/wire.h"

#include "core/base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPTS_PER_LOOK_MAX = 16, NS_IN_US = 1000 };

err link_new(size_t bytes, const struct link_origin *origin, struct link **ret)
{
    assert(bytes >= sizeof(struct link));
    struct link *link = calloc(1, bytes);
    if (!link) return fail(ERR_MEMORY, "no memory for a connection");
    link->transport = origin->transport;
    link->ops = origin->ops;
    link->loop = origin->loop;
    link->events = *origin->events;
    link->context = origin->context;
    link->listener = origin->listener;
    if (link->listener) link->listener->coming++;
    link->is_active = link->is_announced = origin->is_active;
    link->is_guest = origin->is_guest;
    link->watch = link->wake_watch = -1;
    link->body_max = MESSAGE_BODY_MAX;
    link->right = RIGHT_TO_TAKE_PART;
    link->deadline_ms = clock_ms() + LINK_CONNECT_MAX_MS;
    loop_add_link(link->loop, link);
    *ret = link;
    return OK;
}

void link_free_windows(struct link_windows *windows)
{
    window_free(&windows->values);
    window_free(&windows->gradients);
    window_free(&windows->rows);
}

void link_free(struct link *link)
{
    if (link->state < LINK_ENDED) link->ops->hang_up(link);
    if (link->ops->drop) link->ops->drop(link);
    if (link->shared.is_ours) link_free_windows(&link->shared.windows);
    patches_free(&link->shared.patches);
    parcel_queue_free(&link->deferred);
    free(link);
}

void link_set_peer_name(struct link *link, const char *name)
{
    snprintf(link->peer_name, sizeof link->peer_name, "%s", name);
}

/* To be called when the link leaves CONNECTING. */
static void leave_listener(struct link *link)
{
    if (link->listener) link->listener->coming--;
    link->listener = NULL;
}

/* Listeners hand their own context to new links until the owner sets another. */
void link_open(struct link *link)
{
    link->state = LINK_OPEN;
    leave_listener(link);
    link->is_announced = true;
    link->deadline_ms = 0;
    void (*const call)(void *, struct link *) =
        link->is_active ? link->events.opened : link->events.accepted;
    if (call) call(link->context, link);
}

/* Copies the error text: the thread may fail elsewhere before closed() is called. */
void link_end(struct link *link, err why)
{
    if (link->state >= LINK_ENDED) return;
    link->end.why = why;
    snprintf(link->end.text, sizeof link->end.text, "%s", error_text());
    link->ops->hang_up(link);
    leave_listener(link);
    link->state = LINK_ENDED;
    loop_note_end(link->loop);
}

/* Ends it with the thread's error text, which it also tries to send to the peer (REFUSED). */
static void end_telling(struct link *link, uint32_t code, err why)
{
    char text[LINK_TEXT_MAX];
    snprintf(text, sizeof text, "%s", error_text());
    const struct message refused = {
        .type = MESSAGE_REFUSED,
        .refused.exit_code = code,
        .body = text,
        .body_bytes = (uint32_t)strlen(text),
    };
    (void)link_send(link, &refused); /* the link ends in any case */
    link_end(link, fail(why, "%s", text));
}

void link_end_of_other_version(struct link *link, err why)
{
    link->end.is_of_other_version = true;
    end_telling(link, LINK_CODE_OF_OTHER_VERSION, why);
}

static uint64_t bytes_of(const struct message *message)
{
    return MESSAGE_HEADER_BYTES + message->body_bytes + message->length;
}

void link_tell(struct link *link, const struct message *message)
{
    if (!link->ops->other_end)
        loop_count(link->loop, message->type, (struct loop_bytes){.received = bytes_of(message)});
    const uint64_t began_ns = loop_now_ns(link->loop);
    if (link->events.message) link->events.message(link->context, link, message);
    link->took_ns += loop_now_ns(link->loop) - began_ns;
}

static err defer(struct link *link, const struct message *message)
{
    struct parcel parcel = {.payload = message->body,
                            .payload_bytes = message->body_bytes,
                            .is_body = message->body_bytes > 0};
    wire_pack(message, parcel.header);
    return parcel_queue_add(&link->deferred, &parcel);
}

/* Callbacks may defer more messages and may close the link. */
static bool tell_deferred(struct link *link)
{
    struct parcel_queue now = link->deferred;
    if (!now.count) return false;
    link->deferred = (struct parcel_queue){0};
    for (; now.count > 0 && link->state != LINK_CLOSED; parcel_queue_pop(&now)) {
        struct message message;
        const err e = wire_unpack(parcel_queue_at(&now, 0)->header, &message);
        message.body = parcel_queue_at(&now, 0)->payload;
        if (e)
            link_end(link, e);
        else
            link_tell(link, &message);
    }
    parcel_queue_free(&now);
    return true;
}

void link_announce_end(struct link *link)
{
    tell_deferred(link);
    if (link->state == LINK_CLOSED) return;
    link->state = LINK_CLOSED;
    loop_note_dead(link->loop);
    if (!link->is_announced || !link->events.closed) return;
    const err why = fail(link->end.why, "%s", link->end.text);
    link->events.closed(link->context, link, why);
}

/* A guest's deadline is not extended, else one that sends a byte now and then would stay for ever.
 */
void link_set_deadline(struct link *link, bool is_new)
{
    uint64_t limit_ms = loop_stall_ms(link->loop);
    if (link->is_guest) {
        if (!is_new && link->deadline_ms) return;
        if (limit_ms > LINK_GUEST_MESSAGE_MAX_MS) limit_ms = LINK_GUEST_MESSAGE_MAX_MS;
    }
    link->deadline_ms = clock_ms() + limit_ms;
}

/* A message may cause much work (copying all values, looking rows up), so a look ends after
 * LINK_SLICE_US of callbacks. A guest that does not read its answers is not read from. */
bool link_may_deliver(struct link *link, int delivered)
{
    const struct mover *mover = loop_mover(link->loop);
    if (delivered == 0) link->took_ns = 0;
    if (link->state != LINK_OPEN) return false;
    if (mover_is_moving(mover)) return !mover_is_full(mover);
    if (delivered >= LINK_MESSAGES_PER_LOOK_MAX || link->took_ns >= LINK_SLICE_US * NS_IN_US)
        return false;
    return !link->is_guest || (link_is_idle(link) && !loop_guests_had_their_slice(link->loop));
}

void link_expire(struct link *link)
{
    link->deadline_ms = 0;
    if (link->state == LINK_CONNECTING)
        link_end(link, fail(ERR_PEER, "no answer for %d s", LINK_CONNECT_MAX_MS / 1000));
    else
        link_end(link, link->is_guest
                           ? fail(ERR_PROTOCOL, "sent a message too slowly")
                           : fail(ERR_PROTOCOL, "sent half a message, then nothing for %.1f s",
                                  (double)loop_stall_ms(link->loop) / 1000));
}

/* The window of which a message of this type sends a stretch. */
static const struct window *outgoing(const struct link *link, uint32_t type)
{
    if (message_has_rows(type)) return &link->shared.windows.rows;
    if (message_has_lent(type)) return &link->shared.windows.gradients;
    return link->is_active ? &link->shared.windows.gradients : &link->shared.windows.values;
}

const struct window *link_incoming(const struct link *link, uint32_t type)
{
    if (message_has_rows(type)) return &link->shared.windows.rows;
    if (message_has_lent(type)) return &link->shared.windows.gradients;
    return link->is_active ? &link->shared.windows.values : &link->shared.windows.gradients;
}

void *link_place(struct link *link, const struct message *message)
{
    const struct window *window = link_incoming(link, message->type);
    if (window->base || !link->events.place) return window->base;
    return link->events.place(link->context, link, message);
}

void link_go_on(struct link *link)
{
    if (link->state == LINK_OPEN && link->ops->go_on) link->ops->go_on(link);
}

uint64_t link_progress(const struct link *link)
{
    return link->progress;
}

/* Avoids sums that could overflow: both numbers may come from a peer. */
static bool is_inside(const struct window *window, uint64_t offset, uint64_t length)
{
    return offset <= window->bytes && length <= window->bytes - offset;
}

const struct patches *link_patches(const struct link *link, uint32_t type)
{
    return message_has_rows(type) ? &link->shared.patches : NULL;
}

/* Ends the link on an error, and keeps the error text. */
static err end_if(struct link *link, err e)
{
    if (!e || link->state >= LINK_ENDED) return e;
    link_end(link, e);
    return fail(e, "%s", link->end.text);
}

static bool is_behind_others(const struct patches *patches, uint64_t offset)
{
    const struct patch *last = patches->count ? &patches->at[patches->count - 1] : NULL;
    return !last || offset >= last->offset + last->bytes;
}

err link_patch(struct link *link, const struct patch *patch)
{
    const bool may_be = !link->ops->shares_memory && link->is_active && link->shared.is_there;
    if (!may_be || !is_inside(&link->shared.windows.rows, patch->offset, patch->bytes) ||
        !is_behind_others(&link->shared.patches, patch->offset))
        return fail(ERR_INPUT, "no patch may be at bytes %llu to +%llu of the window of rows",
                    (unsigned long long)patch->offset, (unsigned long long)patch->bytes);
    return end_if(link, patches_add(&link->shared.patches, patch));
}

void link_unpatch(struct link *link)
{
    link->shared.patches.count = 0;
}

err link_check(const struct link *link, const struct message *message)
{
    if (message->body_bytes > link->body_max)
        return fail(ERR_PROTOCOL, "announced a body of %u bytes, the limit is %u here",
                    message->body_bytes, link->body_max);
    if (message->length == 0) return OK;
    if (message->body_bytes > 0)
        return fail(ERR_PROTOCOL, "sent a message with both a body and a stretch");
    if (!link->shared.is_there)
        return fail(ERR_PROTOCOL, "sent a stretch of a window not shared yet");
    const struct window *incoming = link_incoming(link, message->type);
    if (!is_inside(incoming, message->offset, message->length))
        return fail(ERR_PROTOCOL, "sent bytes %llu to +%llu of a window of %zu bytes",
                    (unsigned long long)message->offset, (unsigned long long)message->length,
                    incoming->bytes);
    return OK;
}

void link_deliver(struct link *link, const struct message *message)
{
    struct mover *const mover = loop_mover(link->loop);
    link->progress++;
    if (loop_is_moving(link->loop) && !message_is_part(message->type)) {
        const err e = defer(link, message);
        if (e) link_end(link, e);
    } else if (mover_is_moving(mover)) {
        mover_keep(mover, link, message);
    } else {
        if (!loop_is_moving(link->loop)) tell_deferred(link);
        if (link->state != LINK_CLOSED) link_tell(link, message);
    }
}

err link_check_windows(const struct link *link, const struct message *message)
{
    if (!link->is_active || link->shared.is_there || !link->shared.is_expected)
        return fail(ERR_PROTOCOL, "windows of shared memory came that nobody expected");
    const struct link_windows *expected = &link->shared.windows;
    const struct message_windows *shared = &message->windows;
    if (shared->values != expected->values.bytes ||
        shared->gradients != expected->gradients.bytes || shared->rows != expected->rows.bytes)
        return fail(ERR_PROTOCOL,
                    "shared windows of %llu, %llu and %llu bytes, expected %zu of values, %zu of "
                    "gradients and %zu of rows",
                    (unsigned long long)shared->values, (unsigned long long)shared->gradients,
                    (unsigned long long)shared->rows, expected->values.bytes,
                    expected->gradients.bytes, expected->rows.bytes);
    return OK;
}

void link_pack_windows(const struct link *link, unsigned char *ret_header)
{
    wire_pack(&(struct message){.type = MESSAGE_WINDOWS,
                                .windows = {.values = link->shared.windows.values.bytes,
                                            .gradients = link->shared.windows.gradients.bytes,
                                            .rows = link->shared.windows.rows.bytes}},
              ret_header);
}

void link_adopt_windows(struct link *link, const struct link_windows *windows, bool is_owned)
{
    link->shared.windows = *windows;
    link->shared.is_there = true;
    link->shared.is_ours = is_owned;
    if (link->events.shared) link->events.shared(link->context, link, &link->shared.windows);
}

bool link_look(struct link *link)
{
    const bool was_told = !loop_is_moving(link->loop) && tell_deferred(link);
    return link->ops->look(link) || was_told;
}

bool link_may_come_amid(const struct link *link, const struct message *message)
{
    if (message_is_part(message->type)) return !message->body_bytes;
    return message_may_wait(message->type) && !message->length &&
           link->deferred.count < LINK_DEFERRED_MAX &&
           message->body_bytes <= LINK_DEFERRED_BYTES_MAX - link->deferred.body_bytes;
}

static err check_outgoing(const struct link *link, const struct message *message, const void *base)
{
    assert(message->type != MESSAGE_WINDOWS);
    assert(message->body_bytes == 0 || message->length == 0);
    if (link->state != LINK_OPEN) return fail(ERR_PEER, "the connection is not open");
    if (message->body_bytes > MESSAGE_BODY_MAX)
        return fail(ERR_MEMORY, "a body of %u bytes is too long, the limit is %d",
                    message->body_bytes, MESSAGE_BODY_MAX);
    const struct window *window = outgoing(link, message->type);
    const bool has_memory = base || link->ops->shares_memory;
    if (message->length > 0 && (!link->shared.is_there || !has_memory ||
                                !is_inside(window, message->offset, message->length)))
        return fail(ERR_INPUT, "bytes %llu to +%llu are not in the window that is shared",
                    (unsigned long long)message->offset, (unsigned long long)message->length);
    return OK;
}

err link_send(struct link *link, const struct message *message)
{
    return link_send_from(link, message, outgoing(link, message->type)->base);
}

/* On failure the link ends, so that no message is missing from it. */
err link_send_from(struct link *link, const struct message *message, const void *base)
{
    TRY(end_if(link, check_outgoing(link, message, base)));
    if (!link->ops->other_end)
        loop_count(link->loop, message->type, (struct loop_bytes){.sent = bytes_of(message)});
    struct parcel parcel = {
        .is_body = message->body_bytes > 0,
        .urgency = message_urgency(message),
        .yields = message_yields(message),
    };
    wire_pack(message, parcel.header);
    if (parcel.is_body) {
        parcel.payload = message->body;
        parcel.payload_bytes = message->body_bytes;
    } else if (message->length > 0 && !link->ops->shares_memory) {
        parcel.payload = (const char *)base + message->offset;
        parcel.payload_bytes = message->length;
        parcel.offset = message->offset;
        parcel.patches = link_patches(link, message->type);
    }
    return end_if(link, link->ops->send(link, &parcel));
}

bool link_has_ended(const struct link *link)
{
    return link->state != LINK_OPEN;
}

bool link_is_idle(const struct link *link)
{
    if (link->state != LINK_OPEN) return true;
    const struct parcel_queue *queue = link->ops->outgoing(link);
    return !queue || queue->count == 0;
}

size_t link_queued_bytes(const struct link *link)
{
    const struct parcel_queue *queue = link->state == LINK_OPEN ? link->ops->outgoing(link) : NULL;
    return queue ? parcel_queue_bytes(queue, !link->ops->shares_memory) : 0;
}

bool link_has_room(const struct link *link, size_t body_bytes)
{
    const size_t messages_max = LINK_QUEUE_MAX / 4 * 3, bytes_max = MESSAGE_BODY_MAX / 4 * 3;
    const struct parcel_queue *queue = link->state == LINK_OPEN ? link->ops->outgoing(link) : NULL;
    if (!queue) return body_bytes <= bytes_max;
    return queue->count < messages_max && queue->body_bytes <= bytes_max &&
           body_bytes <= bytes_max - queue->body_bytes;
}

void link_keep_short(struct link *link)
{
    if (link->state == LINK_OPEN && link->ops->keep_short) link->ops->keep_short(link);
}

void link_close(struct link *link)
{
    if (link->state == LINK_CLOSED) return;
    if (link->state < LINK_ENDED) link->ops->hang_up(link);
    leave_listener(link);
    link->state = LINK_CLOSED;
    loop_note_dead(link->loop);
}

void link_set_guest(struct link *link, bool is_guest)
{
    loop_move_link(link->loop, link, is_guest);
}

void link_set_body_max(struct link *link, uint32_t bytes)
{
    link->body_max = bytes;
}

void link_set_context(struct link *link, void *context)
{
    link->context = context;
}

void *link_context(const struct link *link)
{
    return link->context;
}

const char *link_peer_name(const struct link *link)
{
    return link->peer_name;
}

enum right link_right(const struct link *link)
{
    return link->right;
}

bool link_is_of_other_version(const struct link *link)
{
    return link->end.is_of_other_version;
}

const struct transport *link_transport(const struct link *link)
{
    return link->transport;
}

bool link_is_near(const struct link *link)
{
    return link->ops->shares_memory || link->is_near;
}

bool link_shares_memory(const struct link *link)
{
    return link->ops->shares_memory;
}

err link_share(struct link *link, const struct link_windows *windows)
{
    if (link->state != LINK_OPEN) return fail(ERR_PEER, "the connection is not open");
    if (link->is_active || link->shared.is_there)
        return fail(ERR_INPUT, "windows are shared once, by the side that listens");
    link->shared.windows = *windows;
    link->shared.is_there = true;
    const err e = link->ops->share(link);
    if (e == ERR_IO) end_telling(link, LINK_CODE_OF_NO_MEMORY, e);
    return end_if(link, e);
}

void link_expect(struct link *link, const struct link_windows *windows)
{
    if (link->shared.is_there) return;
    link->shared.windows.values.bytes = windows->values.bytes;
    link->shared.windows.gradients.bytes = windows->gradients.bytes;
    link->shared.windows.rows.bytes = windows->rows.bytes;
    link->shared.is_expected = true;
}

err listener_new(const struct listener *like, struct listener **ret)
{
    struct listener *listener = malloc(sizeof *listener);
    if (!listener) return fail(ERR_MEMORY, "no memory for a listener");
    *listener = *like;
    listener->fd = listener->watch = -1;
    loop_add_listener(listener->loop, listener);
    *ret = listener;
    return OK;
}

err link_fail_making(err kind, const char *what, int reason)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit); /* cannot fail for this limit */
    if (reason == EMFILE)
        return fail(kind,
                    "no descriptor is left for %s: all %llu that ulimit -n allows are open, raise "
                    "it",
                    what, (unsigned long long)limit.rlim_cur);
    if (reason == ENFILE)
        return fail(kind,
                    "no descriptor is left for %s: all that this host allows (fs.file-max) are "
                    "open, raise it",
                    what);
    return fail(kind, "cannot make %s: %s%s", what, strerror(reason),
                reason == ENOMEM ? " (ulimit -v)" : "");
}

void listener_turn_away(const struct listener *listener, int fd)
{
    struct message last_words = {0};
    if (!listener->events.turned_away) return;
    listener->events.turned_away(listener->context, &last_words);
    if (last_words.type && listener->say_last) listener->say_last(fd, &last_words);
}

/* Bounded, so that a flood of new connections does not starve the established ones. */
static bool may_accept(const struct listener *listener, int accepted)
{
    if (accepted == 0) return !listener->is_closed;
    if (accepted >= ACCEPTS_PER_LOOK_MAX || listener->is_closed || listener->watch < 0)
        return false;
    return !listener->is_for_guests || !loop_guests_had_their_slice(listener->loop);
}

static bool accept_ready(void *context, uint32_t events)
{
    struct listener *listener = context;
    for (int i = 0; may_accept(listener, i); i++) {
        const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            if (listener->coming >= LINK_COMING_MAX)
                loop_close_coming(listener->loop, listener, LINK_COMING_KEPT);
            listener->arrived(listener, fd);
            continue;
        }
        const int reason = errno;
        if (reason == EMFILE || reason == ENFILE) {
            (void)link_fail_making(ERR_IO, "a connection", reason);
            loop_turn_away(listener->loop, listener, listener_turn_away);
        }
        if (reason != ECONNABORTED && reason != EINTR) break;
    }
    return true;
}

err listener_open(const struct listener *like, int fd, struct listener **ret)
{
    struct listener *listener = NULL;
    const err e = listener_new(like, &listener);
    if (e) {
        close(fd);
        return e;
    }
    listener->fd = fd;
    const err watch_error =
        loop_attach(listener->loop,
                    &(struct loop_watcher){
                        .fd = fd, .events = EPOLLIN, .ready = accept_ready, .context = listener},
                    &listener->watch);
    if (watch_error) {
        listener_close(listener);
        return watch_error;
    }
    *ret = listener;
    return OK;
}

void listener_stop(struct listener *listener)
{
    (void)shutdown(listener->fd, SHUT_RD); /* further connections are refused at once */
    loop_detach(listener->loop, listener->watch);
    listener->watch = -1;
}

void listener_set_guests(struct listener *listener)
{
    listener->is_for_guests = true;
    loop_move_watch(listener->loop, listener->watch, true);
}

void listener_close(struct listener *listener)
{
    if (listener->is_closed) return;
    listener->is_closed = true;
    loop_close_coming(listener->loop, listener, 0);
    loop_detach(listener->loop, listener->watch);
    if (listener->fd >= 0) close_listening(listener->fd);
    loop_note_dead(listener->loop);
}
