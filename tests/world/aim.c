/* aim.c - see aim.h. */
#include "tests/world/aim.h"

#include "net/message.h"
#include "tests/world/machine.h"
#include "tests/world/network.h"
#include "tests/world/sockets.h"

#include <endian.h>
#include <string.h>

static const char *const message_names[MESSAGE_TYPES] = {
#define MESSAGE(KIND, ...) [MESSAGE_##KIND] = #KIND,
#include "net/messages.def"
};
static const char *const blow_names[BLOW_KINDS] = {"kill",  "stand", "ask",
                                                   "reset", "half",  "delay"};

int blow_message(const char *name)
{
    int ret = MESSAGE_TYPES - 1;
    while (ret > 0 && strcmp(message_names[ret], name) != 0) ret--;
    return ret;
}

/* Of most kinds there are few; of those of a step many. */
void blows_draw(struct blow *ret, int *ret_count, int only)
{
    *ret_count = 1 + (int)draw_below(BLOWS_MOST);
    for (int i = 0; i < *ret_count; i++) {
        const int kind = 1 + (int)draw_below(MESSAGE_TYPES - 1);
        ret[i] = (struct blow){
            .kind = (enum blow_kind)draw_below(BLOW_KINDS),
            .message = only ? only : kind,
            .nth = 1 + (int)draw_below(UINT64_C(1) << draw_below(7)),
            .is_at_sender = draw_below(2) == 0,
            .is_after = draw_below(2) == 0,
            .later_ns = draw_below(UINT64_C(1) << draw_below(22)),
            .lasts_ns = draw_below((draw_below(3) == 0 ? 12000 : 400) * MS_NS),
        };
    }
}

void blow_print(const struct blow *b, FILE *to)
{
    fprintf(to, "  %s of the %s of %s %d, ", blow_names[b->kind],
            b->is_at_sender ? "sender" : "receiver", message_names[b->message], b->nth);
    if (b->is_after)
        fprintf(to, "%.6f s after it was read, for %.3f s\n", (double)b->later_ns / 1e9,
                (double)b->lasts_ns / 1e9);
    else
        fprintf(to, "before it comes, for %.3f s\n", (double)b->lasts_ns / 1e9);
}

/* ---- now ---- */

static struct blow *blows;
static int blow_count;
static void (*strike_one)(struct blow *, struct process *);
static uint64_t passed[MESSAGE_TYPES];

void aim(struct blow *at, int count, void (*strike)(struct blow *, struct process *))
{
    blows = at;
    blow_count = count;
    strike_one = strike;
}

uint64_t aim_passed(int message)
{
    return passed[message];
}

static struct process *process_of(const struct socket *socket)
{
    return socket->description ? socket->description->process : NULL;
}

/* true: nothing can come by it any more. */
static bool fall(struct blow *b, struct socket *from, uint64_t *ret_later_ns)
{
    struct process *struck = process_of(b->is_at_sender ? from : from->peer);
    machine_say("blow: %s at %s %d", blow_names[b->kind], message_names[b->message], b->nth);
    strike_one(b, struck);
    switch (b->kind) {
    case BLOW_RESET:
        network_reset(from, true);
        return true;
    case BLOW_HALF:
        network_reset(from, false);
        return true;
    case BLOW_DELAY:
        *ret_later_ns = b->lasts_ns;
        return false;
    default:
        return false;
    }
}

static void fall_later(void *subject, uint64_t from)
{
    uint64_t unused;
    struct socket *socket = (struct socket *)from;
    if (!socket->is_closed && !socket->peer->is_closed) fall(subject, socket, &unused);
}

/* A message is whole, with the bytes that are about to arrive. */
static bool take_message(struct socket *from, int message, uint64_t *ret_later_ns)
{
    bool is_gone = false;
    passed[message]++;
    for (int i = 0; i < blow_count; i++) {
        struct blow *b = &blows[i];
        if (b->message != message || b->has_fallen || ++b->seen < b->nth) continue;
        b->has_fallen = true;
        if (b->is_after)
            from->passing.blow = b;
        else
            is_gone |= fall(b, from, ret_later_ns);
    }
    return is_gone;
}

/* Another protocol than ours is let pass. */
static void read_header(struct passing *p)
{
    uint32_t words[MESSAGE_HEADER_BYTES / sizeof(uint32_t)];
    uint64_t length;
    memcpy(words, p->header, sizeof words);
    memcpy(&length, p->header + 64, sizeof length);
    p->is_foreign = le32toh(words[0]) != MESSAGE_MAGIC || le32toh(words[1]) >= MESSAGE_TYPES;
    p->message = (int)le32toh(words[1]);
    p->left = le32toh(words[5]) + le64toh(length);
}

bool aim_at_bytes(struct socket *from, const char *bytes, size_t count, uint64_t *ret_later_ns)
{
    struct passing *p = &from->passing;
    bool is_gone = false;
    p->came += count;
    for (size_t at = 0; at < count && !p->is_foreign && !is_gone;) {
        const size_t wanted = p->have < sizeof p->header ? sizeof p->header - p->have : p->left;
        const size_t n = count - at < wanted ? count - at : wanted;
        if (p->have < sizeof p->header) {
            memcpy(p->header + p->have, bytes + at, n);
            p->have += n;
            if (p->have == sizeof p->header) read_header(p);
        } else {
            p->left -= n;
        }
        at += n;
        if (p->have < sizeof p->header || p->left || p->is_foreign) continue;
        p->have = 0;
        p->end = p->came - (count - at);
        is_gone = take_message(from, p->message, ret_later_ns);
    }
    return is_gone;
}

void aim_was_read(struct socket *reader)
{
    struct passing *p = &reader->peer->passing;
    if (!p->blow || reader->was_read < p->end) return;
    event_at(machine.now_ns + p->blow->later_ns, fall_later, p->blow, (uint64_t)reader->peer);
    p->blow = NULL;
}
