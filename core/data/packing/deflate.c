/* deflate.c - gzip and zlib: see packing.h. */
#include <stdlib.h>
#include <zlib.h>

#include "core/data/packing/packing.h"

enum {
    DEFLATE_RATIO_MAX = 1032, /* at most 258 bytes in 2 bits */
    /* added to zlib's window bits to select the form */
    GZIP_FORM = 16,
    ZLIB_FORM = 0,
    TURN_BYTES_MAX = 1 << 30,
};

struct deflated {
    struct unpacking unpacking; /* first */
    z_stream stream;
};

static struct unpacking *open_form(int form)
{
    struct deflated *d = calloc(1, sizeof *d);
    if (d && inflateInit2(&d->stream, 15 + form) == Z_OK) return &d->unpacking;
    free(d);
    return NULL;
}

static struct unpacking *open_gzip(void)
{
    return open_form(GZIP_FORM);
}

static struct unpacking *open_zlib(void)
{
    return open_form(ZLIB_FORM);
}

static uInt of_a_turn(size_t bytes)
{
    return bytes < TURN_BYTES_MAX ? (uInt)bytes : TURN_BYTES_MAX;
}

static enum unpacked turn(struct unpacking *u)
{
    z_stream *s = &((struct deflated *)u)->stream;
    const uInt in = of_a_turn(u->in_bytes), out = of_a_turn(u->out_bytes);
    s->next_in = (Bytef *)u->in;
    s->avail_in = in;
    s->next_out = u->out;
    s->avail_out = out;
    const int status = inflate(s, Z_NO_FLUSH);
    u->in = s->next_in;
    u->in_bytes -= in - s->avail_in;
    u->out = s->next_out;
    u->out_bytes -= out - s->avail_out;
    u->why = s->msg ? s->msg : "corrupt";
    if (status == Z_STREAM_END) return UNPACKED_MEMBER;
    if (status == Z_MEM_ERROR) return UNPACKED_NO_MEMORY;
    return status == Z_OK || status == Z_BUF_ERROR ? UNPACKED_PART : UNPACKED_CORRUPT;
}

static bool again(struct unpacking *u)
{
    return inflateReset(&((struct deflated *)u)->stream) == Z_OK;
}

static void close_deflated(struct unpacking *u)
{
    if (u) inflateEnd(&((struct deflated *)u)->stream);
    free(u);
}

const struct packing packing_gzip = {"gzip", DEFLATE_RATIO_MAX, open_gzip, turn,
                                     again,  close_deflated};
const struct packing packing_zlib = {"zlib", DEFLATE_RATIO_MAX, open_zlib, turn,
                                     again,  close_deflated};
