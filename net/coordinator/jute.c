/* jute.c - see jute.h. */
#include "net/coordinator/jute.h"

#include <string.h>

enum { NONE = -1 };

/* NULL: out of room. */
static unsigned char *take_room(struct jute_out *out, size_t bytes)
{
    out->is_full |= bytes > out->room - out->bytes;
    if (out->is_full) return NULL;
    out->bytes += bytes;
    return out->to + out->bytes - bytes;
}

static void write_number(unsigned char *to, uint64_t number, int bytes)
{
    for (int i = 0; to && i < bytes; i++) to[i] = (unsigned char)(number >> 8 * (bytes - 1 - i));
}

void jute_put_int(struct jute_out *out, int32_t number)
{
    write_number(take_room(out, JUTE_INT_BYTES), (uint32_t)number, JUTE_INT_BYTES);
}

void jute_put_long(struct jute_out *out, int64_t number)
{
    write_number(take_room(out, JUTE_LONG_BYTES), (uint64_t)number, JUTE_LONG_BYTES);
}

void jute_put_bool(struct jute_out *out, bool is_so)
{
    write_number(take_room(out, 1), is_so, 1);
}

void jute_put_bytes(struct jute_out *out, const void *from, size_t bytes)
{
    if (bytes > INT32_MAX) out->is_full = true;
    jute_put_int(out, (int32_t)bytes);
    unsigned char *to = take_room(out, bytes);
    if (to) memcpy(to, from, bytes);
}

void jute_put_text(struct jute_out *out, const char *text)
{
    jute_put_bytes(out, text, strlen(text));
}

void jute_set_int(struct jute_out *out, size_t at, int32_t number)
{
    write_number(out->to + at, (uint32_t)number, JUTE_INT_BYTES);
}

static const unsigned char *take(struct jute_in *in, size_t bytes)
{
    in->is_torn |= bytes > (size_t)(in->end - in->at);
    if (in->is_torn) return NULL;
    in->at += bytes;
    return in->at - bytes;
}

static uint64_t read_number(struct jute_in *in, int bytes)
{
    const unsigned char *from = take(in, (size_t)bytes);
    uint64_t number = 0;
    for (int i = 0; from && i < bytes; i++) number = number << 8 | from[i];
    return number;
}

int32_t jute_int(struct jute_in *in)
{
    return (int32_t)(uint32_t)read_number(in, JUTE_INT_BYTES);
}

int64_t jute_long(struct jute_in *in)
{
    return (int64_t)read_number(in, JUTE_LONG_BYTES);
}

void jute_skip(struct jute_in *in, size_t bytes)
{
    (void)take(in, bytes);
}

const char *jute_bytes(struct jute_in *in, size_t *ret_bytes)
{
    const int32_t bytes = jute_int(in);
    *ret_bytes = 0;
    if (bytes < NONE) in->is_torn = true;
    if (bytes < 0) return NULL;
    const unsigned char *at = take(in, (size_t)bytes);
    if (at) *ret_bytes = (size_t)bytes;
    return (const char *)at;
}

int jute_count(struct jute_in *in, size_t item_bytes)
{
    const int32_t count = jute_int(in);
    const size_t left = (size_t)(in->end - in->at);
    if (count < NONE || (count > 0 && (size_t)count > left / item_bytes)) in->is_torn = true;
    return count < 0 || in->is_torn ? 0 : count;
}
