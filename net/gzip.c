/* gzip.c - see gzip.h. */
#include "net/gzip.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

enum { WINDOW_OF_GZIP = 31 /* windowBits of zlib: 15, the largest, + 16: gzip header only */ };

struct gzip {
    z_stream z;
};

struct gzip *gzip_open(const void *packed, size_t bytes)
{
    struct gzip *g = bytes <= UINT_MAX ? calloc(1, sizeof *g) : NULL;
    if (!g) return NULL;
    g->z.next_in = (z_const Bytef *)packed;
    g->z.avail_in = (uInt)bytes;
    if (inflateInit2(&g->z, WINDOW_OF_GZIP) == Z_OK) return g;
    free(g);
    return NULL;
}

void gzip_close(struct gzip *g)
{
    inflateEnd(&g->z);
    free(g);
}

enum gzip_state gzip_read(struct gzip *g, void *to, size_t room, size_t *ret_count)
{
    z_stream *z = &g->z;
    const size_t most = room < UINT_MAX ? room : UINT_MAX;
    z->next_out = to;
    z->avail_out = (uInt)most;
    const int result = inflate(z, Z_NO_FLUSH);
    *ret_count = most - z->avail_out;
    if (result == Z_STREAM_END) return z->avail_in ? GZIP_DAMAGED : GZIP_DONE;
    return result == Z_OK && *ret_count == most ? GZIP_MORE : GZIP_DAMAGED;
}
