/* peer.c - see peer.h. */
#include "tests/fuzz/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/wire.h"

enum { BODY_MAX = 4096, NUMBERS_MAX = 64, NS_IN_MS = 1000000 };

/* ---- time ---- */

static uint64_t now_ns = UINT64_C(1) << 40;

uint64_t __wrap_clock_ns(void);
uint64_t __wrap_clock_ms(void);

uint64_t __wrap_clock_ns(void)
{
    return now_ns;
}

uint64_t __wrap_clock_ms(void)
{
    return now_ns / NS_IN_MS;
}

void peer_pass(uint64_t ms)
{
    now_ns += ms * NS_IN_MS;
}

/* ---- what is said ---- */

static uint64_t raw(struct view *input)
{
    uint64_t number = 0;
    const struct view bytes = fuzz_bytes(input, sizeof number);
    if (view_bytes(bytes)) memcpy(&number, bytes.at, view_bytes(bytes));
    return number;
}

static uint64_t near(struct view *input, uint64_t right)
{
    switch (fuzz_byte(input) % 24) {
    case 0:
        return right + 1;
    case 1:
        return right - 1;
    case 2:
        return 0;
    case 3:
        return 1 + fuzz_byte(input);
    case 4:
        return raw(input);
    case 5:
        return UINT64_C(1) << (fuzz_byte(input) % 64);
    case 6:
        return UINT64_MAX - fuzz_byte(input) % 4;
    case 7:
        return right + fuzz_byte(input);
    default:
        return right;
    }
}

static uint64_t right_of(const struct peer_heard *heard, const char *field)
{
    if (strcmp(field, "push") == 0) return heard->push + 1;
    if (strcmp(field, "step") == 0) return heard->step;
    if (strcmp(field, "updates") == 0) return heard->updates;
    if (strcmp(field, "gradients") == 0) return 1;
    if (strcmp(field, "join") == 0 || strcmp(field, "request_id") == 0) return heard->number;
    if (strcmp(field, "state") == 0) return 2;
    return strcmp(field, "last_step") == 0 ? 8 : 0;
}

static size_t greeting(const struct peer_place *place, unsigned life, char ret[BODY_MAX])
{
    return (size_t)snprintf(ret, BODY_MAX,
                            "{\"protocol\": %d, \"job\": \"%s\", \"task\": %d, \"incarnation\": "
                            "\"%x\", \"ps_hosts\": [%s], "
                            "\"worker_hosts\": [%s]}",
                            PROTOCOL_VERSION, place->job == JOB_PS ? "ps" : "worker", place->task,
                            1 + life, place->ps_hosts, place->worker_hosts);
}

/* Nothing that names a place of this machine: who has greeted as a chief says where files are. */
static size_t harmless(char *body, size_t bytes)
{
    return memchr(body, '/', bytes) || memchr(body, '\\', bytes) ? 0 : bytes;
}

static size_t body_of(const struct peer_link *peer, const struct peer_place *place,
                      struct view *input, char ret[BODY_MAX])
{
    const uint8_t kind = fuzz_byte(input);
    size_t bytes = 0;
    struct view from;
    switch (kind % 6) {
    case 1:
        return greeting(place, fuzz_byte(input) % 4, ret);
    case 2:
        return (size_t)snprintf(ret, BODY_MAX, "{\"protocol\": %d, \"job\": \"visitor\"}",
                                PROTOCOL_VERSION);
    case 3:
        from = fuzz_text(input);
        break;
    case 4:
        from = fuzz_bytes(input, fuzz_byte(input));
        break;
    case 5:
        for (int i = fuzz_byte(input) % NUMBERS_MAX; i > 0; i--) {
            const uint64_t number = near(input, peer->heard.push);
            memcpy(ret + bytes, &number, sizeof number);
            bytes += sizeof number;
        }
        return bytes;
    default:
        return 0;
    }
    bytes = view_bytes(from) < BODY_MAX ? view_bytes(from) : BODY_MAX;
    if (bytes) memcpy(ret, from.at, bytes);
    return harmless(ret, bytes);
}

void peer_send(struct peer_link *peer, const struct message *m)
{
    struct parcel parcel = {.payload = m->body,
                            .payload_bytes = m->body_bytes,
                            .is_body = m->body_bytes > 0,
                            .urgency = message_urgency(m),
                            .yields = message_yields(m)};
    wire_pack(m, parcel.header);
    if (peer->link->state == LINK_OPEN) (void)peer->link->ops->send(peer->link, &parcel);
}

/* What is common to both ends: nobody else makes it, or takes it away. */
static const struct window *common(const struct peer_link *peer, bool is_of_rows)
{
    const struct link *link = peer->link, *maker = link;
    if (link && link->is_active && link->ops->other_end)
        maker = link->state == LINK_OPEN ? link->ops->other_end(link) : NULL;
    if (!maker || maker->state != LINK_OPEN || !maker->shared.is_there) return NULL;
    const struct link_windows *all = &maker->shared.windows;
    if (is_of_rows) return &all->rows;
    return link->is_active ? &all->gradients : &all->values;
}

void peer_say(struct peer_link *peer, const struct peer_place *place, struct view *input)
{
    char body[BODY_MAX];
    struct message m = {.type = fuzz_byte(input) % (MESSAGE_TYPES + 2)};
    const uint8_t how = fuzz_byte(input);
    m.task = (uint32_t)(how & 1 ? near(input, (uint64_t)place->task) : (uint64_t)place->task);
    m.job = (uint32_t)(how & 2 ? near(input, place->job) : place->job);
    m.generation = how & 4 ? near(input, peer->heard.generation) : peer->heard.generation;
    for (int at = 0; at < MESSAGE_PLACES; at++) {
        const char *name = message_field(m.type, at)->name;
        if (name) message_set_number(&m, at, near(input, right_of(&peer->heard, name)));
    }
    if (message_has_stretch(m.type) || message_has_rows(m.type) || message_has_lent(m.type) ||
        how & 8) {
        const struct window *w = common(peer, message_has_rows(m.type));
        m.offset = near(input, 0);
        m.length = near(input, w ? w->bytes : 0);
    }
    m.body = body;
    m.body_bytes = (uint32_t)body_of(peer, place, input, body);
    peer->may_end |= m.type == MESSAGE_SETUP || m.type == MESSAGE_STOP ||
                     m.type == MESSAGE_VERDICT || m.type == MESSAGE_ASK || m.type == MESSAGE_LEAVE;
    for (int times = how & 16 ? fuzz_byte(input) : 1; times > 0; times--) peer_send(peer, &m);
}

void peer_greet(struct peer_link *peer, const struct peer_place *place, enum message_type type)
{
    char body[BODY_MAX];
    const struct message m = {.type = type,
                              .task = (uint32_t)place->task,
                              .job = place->job,
                              .body_bytes = (uint32_t)greeting(place, 0, body),
                              .body = body};
    peer_send(peer, &m);
}

void peer_scribble(struct peer_link *peer, struct view *input)
{
    const uint8_t which = fuzz_byte(input);
    const struct window *w = common(peer, which % 2);
    if (!w || !w->base || !w->bytes) return;
    for (int i = which / 2 % 16; i >= 0; i--) {
        const uint64_t number = near(input, i), at = fuzz_byte(input) * UINT64_C(8) % w->bytes;
        const size_t left = w->bytes - at;
        memcpy((char *)w->base + at, &number, left < sizeof number ? left : sizeof number);
    }
}

void peer_note(struct peer_link *peer, const struct message *m)
{
    struct peer_heard *heard = &peer->heard;
    for (int at = 0; at < MESSAGE_PLACES; at++) {
        const char *name = message_field(m->type, at)->name;
        if (!name) continue;
        const uint64_t number = message_number(m, at);
        if (strcmp(name, "push") == 0) heard->push = number;
        if (strcmp(name, "step") == 0) heard->step = number;
        if (strcmp(name, "updates") == 0) heard->updates = number;
        if (strcmp(name, "number") == 0 || strcmp(name, "request_id") == 0) heard->number = number;
    }
    if (m->generation) heard->generation = m->generation;
}
