/* links.h - the links and listeners of a loop: members of the job and guests (guests.h) in lists of
 * their own, so that guests who are silent cost nothing. */
#ifndef NET_LOOP_LINKS_H
#define NET_LOOP_LINKS_H

#include "net/link.h"

enum link_kind { MEMBERS, GUESTS, LINK_KINDS };

struct links {
    struct link *first[LINK_KINDS];
    struct listener *listeners;
    int member_sockets; /* members whose look costs a system call */
    int guest_rings;    /* guests whose rings are to be looked at */
    int ends_due;       /* closed() not yet called */
    int dead_count;     /* to be freed */
};

void links_put(struct links *, struct link *);  /* to its list, by is_guest */
void links_take(struct links *, struct link *); /* from its list */

void links_close(struct links *);                                     /* without callbacks */
void links_close_coming(struct links *, struct listener *, int kept); /* the oldest of them */
void links_reap(struct links *);          /* frees closed links and stopped listeners */
bool links_announce_ends(struct links *); /* true: there were some */
void links_expire(struct links *, uint64_t now_ms);

/* Tells the peers that this side is about to block; true: something came meanwhile. */
bool links_arm(struct links *, enum link_kind);
void links_disarm(struct links *, enum link_kind);

/* The first deadline of a member before until_ms; until_ms where there is none. */
uint64_t links_deadline_ms(const struct links *, uint64_t until_ms);

#endif
