/* wire.h - a message header as bytes.
 *
 * MESSAGE_HEADER_BYTES little-endian bytes, the same over sockets and in rings:
 *
 *      0 magic  4 type  8 1st field  12 task  16 job  20 body_bytes  24 generation
 *     32 2nd field  40 3rd  48 4th  56 5th, or offset  64 length  72 PROTOCOL_VERSION  76 zero
 *
 * Fields are those of net/messages.def, by kind.
 */
#ifndef NET_WIRE_H
#define NET_WIRE_H

#include "core/base/error.h"
#include "net/message.h"

void wire_pack(const struct message *, unsigned char *ret_header);

/* Whether another version of the protocol wrote the header: then no other field of it is valid. */
bool wire_is_of_other_version(const unsigned char *header);

/* Whether these can be the first bytes of a message. ERR_PROTOCOL: another program sent them; the
 * text quotes the beginning. */
err wire_check_begin(const unsigned char *bytes, size_t count);

/* Checks magic, version and body_bytes. The body is left NULL. ERR_PROTOCOL says what is wrong. */
err wire_unpack(const unsigned char *header, struct message *ret);

#endif
