/* upload.h - writes a file behind a URL in parts: one is filled while those before it are sent.
 *
 * A file of up to one part is sent by a single request if the service has one. A full part is sent
 * when more comes, so that the last one is known to be the last.
 */
#ifndef NET_WEB_UPLOAD_H
#define NET_WEB_UPLOAD_H

#include "net/web/web.h"

enum { UPLOAD_PARTS_MAX = 4, UPLOAD_ANSWER_BYTES = 16 << 10 };

struct upload_part {
    struct web_call call;
    bool is_sent, is_last; /* is_sent: its call is open */
    int number;            /* from 1 */
    uint64_t at;           /* offset in the file */
    uint8_t *memory;       /* [bytes_max] */
    size_t bytes, bytes_max;
    char answer[UPLOAD_ANSWER_BYTES];
};

/* First member of each service's own writer. */
struct upload {
    struct file_writer writer; /* first */
    const struct upload_way *way;
    char *path;
    struct upload_part parts[UPLOAD_PARTS_MAX]; /* circular, [way->parts] */
    int sent;                                   /* parts, so far */
    uint64_t at;                                /* offset of the part being filled */
};

/* How to upload to a service. */
struct upload_way {
    size_t writer_bytes; /* size of its own writer, zeroed when new */
    size_t part_bytes;   /* of the first parts */
    int parts_of_a_size; /* after each this many, parts grow by part_bytes; 0: never */
    int parts;           /* in memory, including the one being filled */
    bool in_order;       /* a part is sent once the one before it has arrived */
    err (*whole)(struct upload *, const struct upload_part *); /* one part; NULL: as more */
    err (*begin)(struct upload *);                             /* before the first part; optional */
    /* Opens the part's call and starts it; `from`: file offset, the server has all before it. */
    err (*start)(struct upload *, struct upload_part *, uint64_t from);
    err (*wait)(struct upload *, struct upload_part *); /* until the server has all of it */
    err (*end)(struct upload *);                        /* all parts have arrived */
    void (*drop)(struct upload *); /* also after a failure: removes all traces on the server */
};

/* For upload_ways whose server has only some of a part: close its call, start another. */
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
