/* loop_inside.h - the functions of a loop that only links and listeners use. */
#ifndef NET_LOOP_INSIDE_H
#define NET_LOOP_INSIDE_H

#include "core/base/error.h"
#include "net/link.h"
#include "net/loop.h"

/* ready() says whether it made a callback. events: EPOLLIN, EPOLLOUT; errors always come. */
typedef bool loop_ready(void *context, uint32_t events);

struct loop_watcher {
    int fd;
    uint32_t events;
    loop_ready *ready;
    void *context;
    bool is_guest;
};
err loop_attach(struct loop *, const struct loop_watcher *, int *ret_watch);
void loop_change(struct loop *, int watch, uint32_t events);
void loop_move_watch(struct loop *, int watch, bool is_guest); /* -1 is fine */
void loop_detach(struct loop *, int watch); /* -1 is fine; does not close the descriptor */

void loop_add_link(struct loop *, struct link *);
void loop_move_link(struct loop *, struct link *, bool is_guest); /* with its watch */
void loop_add_listener(struct loop *, struct listener *);
struct listener *loop_first_listener(struct loop *);
/* Closes links of the listener that are CONNECTING, unknown to its owner, until `kept` are left. */
void loop_close_coming(struct loop *, struct listener *, int kept); /* the oldest of them */
void loop_note_end(struct loop *);  /* a link has ended, its closed() is due */
void loop_note_dead(struct loop *); /* a link or listener waits to be freed */

/* Accepts one connection with the spare descriptor and closes it after say(): otherwise a listener
 * that cannot accept would stay ready for ever. */
void loop_turn_away(struct loop *, struct listener *, void (*say)(const struct listener *, int fd));

bool loop_is_moving(const struct loop *); /* only parts of windows may be delivered */
void loop_count(struct loop *, uint32_t type, struct loop_bytes more);
struct mover *loop_mover(const struct loop *); /* NULL: none */

/* The events that members' open sockets wait for; not for input if a message waits for the owner.
 */
struct loop_socket {
    struct link *link;
    int fd;
    uint32_t events;
};
int loop_list_sockets(const struct loop *, struct loop_socket *ret, int max);
void loop_look_amid(struct loop *, struct link *); /* loop_move of one link */

uint64_t loop_stall_ms(const struct loop *); /* LINK_STALL_MAX_MS, less in tests */
uint64_t loop_note_refusal(struct loop *);   /* how many peers did not prove who they are */
void loop_set_stall(struct loop *, int stall_ms);
uint64_t loop_now_ns(const struct loop *);                    /* the clock that measures turns */
void loop_set_clock(struct loop *, uint64_t (*now_ns)(void)); /* for tests */

#endif
