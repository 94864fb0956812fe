/* message.c - messages.def as a table, and the functions that read it. */
#include "net/message.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

struct message_row {
    const char *name;
    unsigned senders; /* enum message_sender */
    enum message_load load;
    struct message_field fields[MESSAGE_PLACES];
};

#define FIELD(type, name, range, meaning) {#name, RANGE_##range},
#define SKIP(type) {NULL, RANGE_ANY},
static const struct message_row rows[MESSAGE_TYPES] = {
#define MESSAGE(KIND, kind, senders, load, ...)                                                    \
    [MESSAGE_##KIND] = {#KIND, senders, load, {__VA_ARGS__}},
#include "net/messages.def"
};

/* A kind's fields overlay message_places. */
#define MESSAGE(KIND, kind, ...)                                                                   \
    static_assert(sizeof(struct message_##kind) <= sizeof(struct message_places));
#include "net/messages.def"

const struct message_ends message_ends_of_all = {{
#define RANGE(name, most) [RANGE_##name] = {0, most},
#include "net/messages.def"
}};

static const struct message_row *row_of(uint32_t type)
{
    static const struct message_row of_no_kind = {"a message of no kind"};
    return type < MESSAGE_TYPES ? &rows[type] : &of_no_kind;
}

const struct message_field *message_field(uint32_t type, int place)
{
    return &row_of(type)->fields[place];
}

uint64_t message_number(const struct message *m, int place)
{
    if (!message_field(m->type, place)->name) return 0;
    return place ? m->places.wide[place - 1] : m->places.narrow;
}

void message_set_number(struct message *m, int place, uint64_t number)
{
    if (!message_field(m->type, place)->name) return;
    if (place)
        m->places.wide[place - 1] = number;
    else
        m->places.narrow = (uint32_t)number;
}

static void say_breach(const char *name, uint64_t number, const struct message_end *end,
                       char text[MESSAGE_BREACH_MAX])
{
    if (end->least > 1)
        snprintf(text, MESSAGE_BREACH_MAX,
                 "%s %" PRIu64 ", where 0 or %" PRIu64 " to %" PRIu64 " is right", name, number,
                 end->least, end->most);
    else
        snprintf(text, MESSAGE_BREACH_MAX, "%s %" PRIu64 ", where 0 to %" PRIu64 " is right", name,
                 number, end->most);
}

bool message_is_within(const struct message *m, const struct message_ends *ends,
                       char ret_text[MESSAGE_BREACH_MAX])
{
    for (int place = 0; place < MESSAGE_PLACES; place++) {
        const struct message_field *field = message_field(m->type, place);
        const struct message_end *end = &ends->at[field->range];
        const uint64_t number = message_number(m, place);
        if (!field->name || !number || (number >= end->least && number <= end->most)) continue;
        say_breach(field->name, number, end, ret_text);
        return false;
    }
    return true;
}

const char *message_show(const struct message *m, char text[MESSAGE_TEXT_MAX])
{
    const char *between = " ";
    int used = snprintf(text, MESSAGE_TEXT_MAX, "%s", message_name(m->type));
    for (int place = 0; place < MESSAGE_PLACES && used < MESSAGE_TEXT_MAX; place++) {
        const char *name = message_field(m->type, place)->name;
        if (!name) continue;
        used += snprintf(text + used, (size_t)(MESSAGE_TEXT_MAX - used), "%s%s %" PRIu64, between,
                         name, message_number(m, place));
        between = ", ";
    }
    return text;
}

const char *message_name(uint32_t type)
{
    return row_of(type)->name;
}

bool message_has_stretch(uint32_t type)
{
    return row_of(type)->load == WITH_STRETCH;
}

bool message_has_rows(uint32_t type)
{
    return row_of(type)->load == WITH_ROWS;
}

bool message_has_lent(uint32_t type)
{
    return row_of(type)->load == WITH_LENT;
}

bool message_is_part(uint32_t type)
{
    return type == MESSAGE_PART || type == MESSAGE_AHEAD || message_has_rows(type) ||
           message_has_lent(type);
}

bool message_may_wait(uint32_t type)
{
    return type == MESSAGE_SAVED || type == MESSAGE_COVERED || type == MESSAGE_COUNTERS ||
           type == MESSAGE_TRACE || type == MESSAGE_REQUEST;
}

bool message_yields(const struct message *m)
{
    return (m->type == MESSAGE_PART || m->type == MESSAGE_AHEAD) && m->length;
}

uint64_t message_urgency(const struct message *m)
{
    if (m->type == MESSAGE_VALUES || message_has_rows(m->type)) return UINT64_MAX;
    return message_yields(m) ? 1 + m->offset : 0;
}

const char *message_fault(const struct message *m, unsigned sender)
{
    if (!(row_of(m->type)->senders & sender)) return "which is not for this sender";
    const enum message_load load = row_of(m->type)->load;
    if (load == ALONE && m->body_bytes) return "with a body";
    const bool has_none = load == ALONE || load == WITH_BODY;
    return has_none && m->length ? "with a stretch of its window" : NULL;
}
