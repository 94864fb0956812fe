/* links.c - see links.h. */
#include "net/loop/links.h"

#include <stdlib.h>

static void count(struct links *links, const struct link *link, int change)
{
    if (link->is_guest && link->ops->shares_memory) links->guest_rings += change;
    if (!link->is_guest && !link->ops->shares_memory) links->member_sockets += change;
}

void links_put(struct links *links, struct link *link)
{
    struct link **first = &links->first[link->is_guest ? GUESTS : MEMBERS];
    link->previous = NULL;
    link->next = *first;
    if (*first) (*first)->previous = link;
    *first = link;
    count(links, link, 1);
}

void links_take(struct links *links, struct link *link)
{
    if (link->previous)
        link->previous->next = link->next;
    else
        links->first[link->is_guest ? GUESTS : MEMBERS] = link->next;
    if (link->next) link->next->previous = link->previous;
    count(links, link, -1);
}

void links_close(struct links *links)
{
    for (int kind = 0; kind < LINK_KINDS; kind++)
        for (struct link *link = links->first[kind]; link; link = link->next) link_close(link);
    for (struct listener *at = links->listeners; at; at = at->next) listener_close(at);
}

/* New ones are at the front. */
void links_close_coming(struct links *links, struct listener *listener, int kept)
{
    int count = 0;
    for (int kind = 0; kind < LINK_KINDS; kind++)
        for (struct link *link = links->first[kind]; link; link = link->next)
            if (link->listener == listener && ++count > kept) link_close(link);
}

static void reap_links(struct links *links, struct link *first)
{
    for (struct link *link = first, *next; link; link = next) {
        next = link->next;
        if (link->state != LINK_CLOSED) continue;
        links_take(links, link);
        link_free(link);
    }
}

void links_reap(struct links *links)
{
    if (links->dead_count == 0) return;
    links->dead_count = 0;
    for (int kind = 0; kind < LINK_KINDS; kind++) reap_links(links, links->first[kind]);
    for (struct listener *at = links->listeners, *next; at; at = next) {
        next = at->next;
        if (!at->is_closed) continue;
        if (at->previous)
            at->previous->next = next;
        else
            links->listeners = next;
        if (next) next->previous = at->previous;
        free(at);
    }
}

bool links_announce_ends(struct links *links)
{
    if (links->ends_due == 0) return false;
    links->ends_due = 0; /* links that end in a callback may be missed here: counted again */
    for (int kind = 0; kind < LINK_KINDS; kind++)
        for (struct link *link = links->first[kind]; link; link = link->next)
            if (link->state == LINK_ENDED) link_announce_end(link);
    return true;
}

void links_expire(struct links *links, uint64_t now_ms)
{
    for (int kind = 0; kind < LINK_KINDS; kind++)
        for (struct link *link = links->first[kind]; link; link = link->next)
            if (link->deadline_ms && link->state < LINK_ENDED && now_ms >= link->deadline_ms)
                link_expire(link);
}

bool links_arm(struct links *links, enum link_kind kind)
{
    bool is_ready = false;
    for (struct link *link = links->first[kind]; link; link = link->next)
        if (link->state < LINK_ENDED)
            is_ready |= link->needs_look || link->deferred.count ||
                        (link->ops->arm && link->ops->arm(link));
    return is_ready;
}

void links_disarm(struct links *links, enum link_kind kind)
{
    for (struct link *link = links->first[kind]; link; link = link->next)
        if (link->ops->disarm && link->state < LINK_ENDED) link->ops->disarm(link);
}

uint64_t links_deadline_ms(const struct links *links, uint64_t until_ms)
{
    for (const struct link *link = links->first[MEMBERS]; link; link = link->next)
        if (link->deadline_ms && link->state < LINK_ENDED && link->deadline_ms < until_ms)
            until_ms = link->deadline_ms;
    return until_ms;
}
