/* zstd.c - zstd, by its library: see packing.h. */
#include <stdlib.h>
#include <zstd.h>

#include "core/data/packing/packing.h"

/* A block of 128 KiB of one repeated byte is packed into 4 bytes */
enum { ZSTD_RATIO_MAX = (128 << 10) / 4 };

struct zstd {
    struct unpacking unpacking; /* first */
    ZSTD_DCtx *context;
};

static struct unpacking *open_zstd(void)
{
    struct zstd *z = calloc(1, sizeof *z);
    if (z) z->context = ZSTD_createDCtx();
    if (z && z->context) return &z->unpacking;
    free(z);
    return NULL;
}

static enum unpacked turn(struct unpacking *u)
{
    ZSTD_inBuffer in = {u->in, u->in_bytes, 0};
    ZSTD_outBuffer out = {u->out, u->out_bytes, 0};
    const size_t status = ZSTD_decompressStream(((struct zstd *)u)->context, &out, &in);
    u->in += in.pos;
    u->in_bytes -= in.pos;
    u->out += out.pos;
    u->out_bytes -= out.pos;
    if (status == 0) return UNPACKED_MEMBER;
    if (!ZSTD_isError(status)) return UNPACKED_PART;
    u->why = ZSTD_getErrorName(status);
    return UNPACKED_CORRUPT;
}

static bool again(struct unpacking *u)
{
    return !ZSTD_isError(ZSTD_DCtx_reset(((struct zstd *)u)->context, ZSTD_reset_session_only));
}

static void close_zstd(struct unpacking *u)
{
    if (u) ZSTD_freeDCtx(((struct zstd *)u)->context);
    free(u);
}

const struct packing packing_zstd = {"zstd", ZSTD_RATIO_MAX, open_zstd, turn, again, close_zstd};

const char *packing_zstd_version(void)
{
    return ZSTD_versionString();
}
