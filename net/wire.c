/* wire.c - see wire.h for the layout. */
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

/* A kind without a fifth field has the offset of its stretch in that place. */
static bool has_offset(uint32_t type)
{
    return !message_field(type, MESSAGE_PLACES - 1)->name;
}

void wire_pack(const struct message *message, unsigned char *ret_header)
{
    const uint64_t offset =
        has_offset(message->type) ? message->offset : message_number(message, MESSAGE_PLACES - 1);
    put32(ret_header, MESSAGE_MAGIC);
    put32(ret_header + 4, message->type);
    put32(ret_header + 8, (uint32_t)message_number(message, 0));
    put32(ret_header + 12, message->task);
    put32(ret_header + 16, message->job);
    put32(ret_header + 20, message->body_bytes);
    put64(ret_header + 24, message->generation);
    put64(ret_header + 32, message_number(message, 1));
    put64(ret_header + 40, message_number(message, 2));
    put64(ret_header + 48, message_number(message, 3));
    put64(ret_header + 56, offset);
    put64(ret_header + 64, message->length);
    put32(ret_header + 72, PROTOCOL_VERSION);
    put32(ret_header + 76, 0);
}

/* Quotes the bytes: they often tell which program sent them, as "HTTP/1.1 400 Bad Request". */
static err fail_other(const unsigned char *bytes, size_t count)
{
    enum { QUOTED_MAX = 40, TLS_ALERT = 0x15, TLS_HANDSHAKE = 0x16, TLS_MAJOR = 3 };
    if (count > 1 && (bytes[0] == TLS_ALERT || bytes[0] == TLS_HANDSHAKE) && bytes[1] == TLS_MAJOR)
        return fail(ERR_PROTOCOL, "speaks TLS, as a task of a job with --key_file or --tls_cert "
                                  "does: this one has neither");
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
        .task = get32(header + 12),
        .job = get32(header + 16),
        .body_bytes = get32(header + 20),
        .generation = get64(header + 24),
        .length = get64(header + 64),
    };
    message_set_number(ret, 0, get32(header + 8));
    for (int place = 1; place < MESSAGE_PLACES; place++)
        message_set_number(ret, place, get64(header + 24 + 8 * (size_t)place));
    if (has_offset(ret->type)) ret->offset = get64(header + 56);
    return OK;
}
