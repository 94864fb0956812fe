/* s3_inside.h - requests to S3, and what is written by them. */
#ifndef NET_WEB_S3_S3_INSIDE_H
#define NET_WEB_S3_S3_INSIDE_H

#include "net/web/s3/aws_keys.h"
#include "net/web/list.h"

/* What a call of this service has for its own */
struct s3_request {
    struct aws_keys keys;
    const char *copied, *copied_range; /* "/bucket/key", "bytes=0-9"; NULL: nothing is copied */
};

/* query: its keys in the order of their bytes */
err s3_address(const char *path, const char *query, struct web_call *);

/* A page of XML (list.c) */
web_list_taker s3_list_take;

/* ---- writing (write.c) ----
 *
 * A file of up to a part is sent whole. Of a larger one parts are sent while it is written, of
 * S3_PART_BYTES, later ones larger; up to S3_PARTS_SENT at once, each in memory until it is there.
 */
enum {
    S3_PART_BYTES = 8 << 20,
    S3_PARTS_SENT = 4,
    S3_PARTS_MAX = 10000,        /* of a file, says S3 */
    S3_PARTS_OF_A_SIZE = 1000,   /* then they are larger by S3_PART_BYTES: 440 GB in all */
    S3_COPY_BYTES_MAX = 1 << 30, /* at once */
};
err s3_create(const struct file_system *, const char *path, struct file_writer **ret);
err s3_write(struct file_writer *, const void *, size_t bytes);
err s3_finish(struct file_writer *);
void s3_drop(struct file_writer *);
err s3_remove(const char *path);
err s3_move(const char *from, const char *to);

#endif
