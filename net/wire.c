/* wire.c - see wire.h for the layout; and the list of messages as a table. */
#include "net/wire.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "core/base/printable.h"

static void put32(unsigned char *to, uint32_t value)
{
    value = htole32(value);
    memcpy(to, &value, sizeof value);
}

static void put64(unsigned char *to, uint64_t value)
{
    value = htole64(value);
    memcpy(to, &value, sizeof value);
}

static uint32_t get32(const unsigned char *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return le32toh(value);
}

static uint64_t get64(const unsigned char *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return le64toh(value);
}

void wire_pack(const struct message *message, unsigned char *ret_header)
{
    put32(ret_header, MESSAGE_MAGIC);
    put32(ret_header + 4, message->type);
    put32(ret_header + 8, message->code);
    put32(ret_header + 12, message->task);
    put32(ret_header + 16, message->job);
    put32(ret_header + 20, message->body_bytes);
    put64(ret_header + 24, message->generation);
    put64(ret_header + 32, message->sequence);
    put64(ret_header + 40, message->step);
    put64(ret_header + 48, message->version);
    put64(ret_header + 56, message->offset);
    put64(ret_header + 64, message->length);
    put32(ret_header + 72, PROTOCOL_VERSION);
    put32(ret_header + 76, 0);
}

/* What another program says often tells which one it is: "HTTP/1.1 400 Bad Request". */
static err fail_other(const unsigned char *bytes, size_t count)
{
    enum { QUOTED_MAX = 40 };
    char line[QUOTED_MAX + 1], shown[PRINTABLE_BYTES_MAX * QUOTED_MAX + 1];
    snprintf(line, sizeof line, "%.*s", (int)count, (const char *)bytes);
    line[strcspn(line, "\r\n")] = '\0';
    printable_copy(shown, sizeof shown, line);
    return fail(ERR_PROTOCOL, "sent something else than a message: \"%s\"", shown);
}

err wire_check_begin(const unsigned char *bytes, size_t count)
{
    unsigned char magic[sizeof(uint32_t)];
    put32(magic, MESSAGE_MAGIC);
    const size_t compared = count < sizeof magic ? count : sizeof magic;
    return memcmp(bytes, magic, compared) ? fail_other(bytes, count) : OK;
}

static err check(const unsigned char *header)
{
    const uint32_t version = get32(header + 72);
    TRY(wire_check_begin(header, MESSAGE_HEADER_BYTES));
    if (version != PROTOCOL_VERSION)
        return fail(ERR_PROTOCOL,
                    "speaks protocol version %u, this program speaks %d: all want the same release",
                    version, PROTOCOL_VERSION);
    if (get32(header + 76) != 0) return fail(ERR_PROTOCOL, "sent a damaged message header");
    const uint32_t body_bytes = get32(header + 20);
    if (body_bytes > MESSAGE_BODY_MAX)
        return fail(ERR_PROTOCOL, "announced a body of %u bytes, the limit is %d", body_bytes,
                    MESSAGE_BODY_MAX);
    return OK;
}

bool wire_is_of_other_version(const unsigned char *header)
{
    return get32(header) == MESSAGE_MAGIC && get32(header + 72) != PROTOCOL_VERSION;
}

err wire_unpack(const unsigned char *header, struct message *ret)
{
    TRY(check(header));
    *ret = (struct message){
        .type = get32(header + 4),
        .code = get32(header + 8),
        .task = get32(header + 12),
        .job = get32(header + 16),
        .body_bytes = get32(header + 20),
        .generation = get64(header + 24),
        .sequence = get64(header + 32),
        .step = get64(header + 40),
        .version = get64(header + 48),
        .offset = get64(header + 56),
        .length = get64(header + 64),
    };
    return OK;
}

/* ---- the list ---- */

struct message_row {
    const char *name;
    unsigned senders; /* enum message_sender */
    enum message_load load;
    enum message_range ranges[MESSAGE_FIELDS];
};

static const struct message_row rows[MESSAGE_TYPES] = {
#define MESSAGE(kind, senders, load, code, sequence, step, version)                                \
    [MESSAGE_##kind] = {                                                                           \
        #kind, senders, load, {RANGE_##code, RANGE_##sequence, RANGE_##step, RANGE_##version}},
#include "net/messages.def"
#undef MESSAGE
};

const struct message_ends message_ends_of_all = {{
#define RANGE(name, most, what) [RANGE_##name] = {0, most},
#include "net/ranges.def"
#undef RANGE
}};

static const char *const range_texts[MESSAGE_RANGES] = {
#define RANGE(name, most, what) [RANGE_##name] = what,
#include "net/ranges.def"
#undef RANGE
};

enum message_range message_range_of(uint32_t type, enum message_field field)
{
    return type < MESSAGE_TYPES ? rows[type].ranges[field] : RANGE_ANY;
}

uint64_t message_number(const struct message *m, enum message_field field)
{
    const uint64_t numbers[] = {m->code, m->sequence, m->step, m->version};
    return numbers[field];
}

static void say_breach(const struct message *m, enum message_field field,
                       const struct message_end *end, char text[MESSAGE_BREACH_MAX])
{
    static const char *const names[] = {"code", "sequence", "step", "version"};
    const char *what = range_texts[message_range_of(m->type, field)];
    const unsigned long long number = message_number(m, field), least = end->least,
                             most = end->most;
    if (least > 1)
        snprintf(text, MESSAGE_BREACH_MAX, "%s %llu (its %s), where 0 or %llu to %llu is right",
                 what, number, names[field], least, most);
    else
        snprintf(text, MESSAGE_BREACH_MAX, "%s %llu (its %s), where 0 to %llu is right", what,
                 number, names[field], most);
}

bool message_is_within(const struct message *m, const struct message_ends *ends,
                       char ret_text[MESSAGE_BREACH_MAX])
{
    for (int field = 0; field < MESSAGE_FIELDS; field++) {
        const uint64_t number = message_number(m, (enum message_field)field);
        const struct message_end *end =
            &ends->at[message_range_of(m->type, (enum message_field)field)];
        if (!number || (number >= end->least && number <= end->most)) continue;
        say_breach(m, (enum message_field)field, end, ret_text);
        return false;
    }
    return true;
}

const char *message_name(uint32_t type)
{
    return type < MESSAGE_TYPES && rows[type].name ? rows[type].name : "a message of no kind";
}

bool message_has_stretch(uint32_t type)
{
    return type < MESSAGE_TYPES && rows[type].load == WITH_STRETCH;
}

bool message_has_rows(uint32_t type)
{
    return type < MESSAGE_TYPES && rows[type].load == WITH_ROWS;
}

bool message_is_part(uint32_t type)
{
    return type == MESSAGE_PART || type == MESSAGE_AHEAD || message_has_rows(type);
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
    if (m->type >= MESSAGE_TYPES || !(rows[m->type].senders & sender))
        return "which is not for it to say";
    const enum message_load load = rows[m->type].load;
    if (load == ALONE && m->body_bytes) return "with a body";
    const bool has_stretch = load == WITH_STRETCH || load == WITH_ROWS;
    return !has_stretch && m->length ? "with a stretch of its window" : NULL;
}
