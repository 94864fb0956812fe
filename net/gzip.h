/* gzip.h - decompresses a gzip body: exactly one member (RFC 1952) and nothing after it. */
#ifndef NET_GZIP_H
#define NET_GZIP_H

#include <stddef.h>

enum gzip_state { GZIP_MORE, GZIP_DONE, GZIP_DAMAGED };

struct gzip;
/* packed: borrowed until gzip_close(). NULL: out of memory. */
struct gzip *gzip_open(const void *packed, size_t bytes);
void gzip_close(struct gzip *);
/* Decompresses the next bytes, at most `room` (1 or more), into `to`. */
enum gzip_state gzip_read(struct gzip *, void *to, size_t room, size_t *ret_count);

#endif
