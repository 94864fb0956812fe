/* gzip.h - bytes that a client has packed by gzip: one member (RFC 1952), and nothing behind it. */
#ifndef NET_GZIP_H
#define NET_GZIP_H

#include <stddef.h>

enum gzip_state { GZIP_MORE, GZIP_DONE, GZIP_DAMAGED };

struct gzip;
/* packed: borrowed. NULL: there is no memory. */
struct gzip *gzip_open(const void *packed, size_t bytes);
void gzip_close(struct gzip *);
/* What comes next of what was packed, at most room bytes (1 or more), into `to`. */
enum gzip_state gzip_read(struct gzip *, void *to, size_t room, size_t *ret_count);

#endif
