/* upload.h - a file that is written behind a URL: it is sent in parts, of which one is filled while
 * those before it are under way.
 *
 * A file of up to a part is sent whole where the service has a request for that. A part that is
 * full is sent when more comes, so that the last one is known as the last.
 */
#ifndef NET_WEB_UPLOAD_H
#define NET_WEB_UPLOAD_H

#include "net/web/web.h"

enum { UPLOAD_PARTS_MAX = 4, UPLOAD_ANSWER_BYTES = 16 << 10 };

struct upload_part {
    struct web_call call;
    bool is_sent, is_last; /* sent: its call is open */
    int number;            /* from 1 */
    uint64_t at;           /* in the file */
    uint8_t *memory;       /* [bytes_max] */
    size_t bytes, bytes_max;
    char answer[UPLOAD_ANSWER_BYTES];
};

/* A service's own writer begins with it. */
struct upload {
    struct file_writer writer; /* first */
    const struct upload_way *way;
    char *path;
    struct upload_part parts[UPLOAD_PARTS_MAX]; /* circular, [way->parts] */
    int sent;                                   /* parts, so far */
    uint64_t at;                                /* where the part that is filled begins */
};

/* How a service takes a file. */
struct upload_way {
    size_t writer_bytes; /* of its own writer, zeroed when new */
    size_t part_bytes;   /* of a part */
    int parts_of_a_size; /* then they are larger by part_bytes; 0: all are alike */
    int parts;           /* in memory; with one that is filled */
    bool in_order;       /* a part is sent when the one before it is there */
    err (*whole)(struct upload *, const struct upload_part *); /* NULL: as other files */
    err (*begin)(struct upload *);                             /* before the first part; optional */
    /* Opens the part's call and starts it; `from`: of the file, where the server has what is in
     * front of it. */
    err (*start)(struct upload *, struct upload_part *, uint64_t from);
    err (*wait)(struct upload *, struct upload_part *); /* until the server has all of it */
    err (*end)(struct upload *);                        /* all parts are there */
    void (*drop)(struct upload *); /* also where it failed: nothing of it is left at the server */
};

/* For ways, of a part that the server has only some of: a call is closed, another one started. */
void upload_close_part(struct upload_part *);
err upload_start_part(struct upload *, struct upload_part *, uint64_t from);

/* For the tables of services */
err upload_create(const struct file_system *, const char *path, struct file_writer **ret);
err upload_write(struct file_writer *, const void *, size_t bytes);
err upload_finish(struct file_writer *);
void upload_drop(struct file_writer *); /* keeps the text of the last error */
#define UPLOAD_WRITING                                                                             \
    .create = upload_create, .write = upload_write, .finish = upload_finish, .drop = upload_drop

#endif
