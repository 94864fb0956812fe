/* web.h - the inside of net/web: what the file systems behind URLs have in common.
 *
 * A service says under which address of HTTP a path is, and puts into a request what proves who
 * asks. Files are read by ranges: the first one tells what the file is (or the service looks, and
 * looks again behind what came), and more of them are asked for at once the longer it is read on.
 */
#ifndef NET_WEB_WEB_H
#define NET_WEB_WEB_H

#include "core/base/arena.h"
#include "core/base/files/file_system.h"
#include "net/http.h"

enum {
    WEB_HEAD_BYTES = 64 << 10,  /* the first range */
    WEB_CHUNK_BYTES = 1 << 20,  /* the others */
    WEB_CHUNKS_MAX = 8,         /* asked for at once */
    WEB_WHOLE_MAX = 256 << 20,  /* of a file whose server gives no ranges */
    WEB_ANSWER_BYTES = 8 << 20, /* of an answer that is no file */
    WEB_WRITE_MAX_S = 4 * 3600, /* for a part that a server takes piece by piece, and for a copy */
};
_Static_assert((int)WEB_CHUNK_BYTES *(int)WEB_CHUNKS_MAX == (int)FILE_AHEAD_BYTES,
               "more is read ahead than is said");

struct web_list;
struct web_listing;
struct upload_way;

/* One request. Its texts live in its arena. */
struct web_call {
    struct http_call http;
    struct arena arena;
    const char *host, *path, *query; /* of http.url, as it is sent; query: "" or "a=b&c=d" */
    int header_count;
    void *own; /* the service's, in the arena */
};

struct web_service {
    struct file_system files;        /* first */
    const struct upload_way *upload; /* NULL: nothing can be written */
    /* The address of a path, and how it is shown. ERR_INPUT: it is none of this service. */
    err (*address)(const char *path, struct web_call *);
    /* The call is complete but for its proof; NULL: none is needed. */
    err (*sign)(struct web_call *);
    /* Of a server whose ranges do not tell what the file is, else NULL: what is there now, as
     * file_look fails, and how a range is asked for. */
    err (*look)(const char *path, struct file_state *ret);
    void (*range)(struct web_call *, uint64_t at, size_t bytes);
    /* Asks for one page of a list (list.h); token "": the first. NULL: there are no lists. */
    err (*list)(const struct web_listing *, const char *token, struct web_list *);
};

extern const struct web_service *const web_services[]; /* NULL at the end */

/* A call that has no address yet. web_call_close also after a failure. */
void web_call_begin(struct web_call *, const char *method, const char *path);
/* The same, with the path's address. */
err web_call_open(struct web_call *, const struct web_service *, const char *method,
                  const char *path);
void web_call_close(struct web_call *);
void web_call_header(struct web_call *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sets url, host, path and query: base is "http://host:port", path begins with "/". */
void web_call_address(struct web_call *, const char *base, const char *path, const char *query);
void web_call_body(struct web_call *, const void *, size_t bytes); /* borrowed */
/* Signs and starts. */
err web_call_start(struct web_call *, const struct web_service *);
/* Starts, waits; ERR_INPUT or ERR_IO where the status is 300 or more. */
err web_call_make(struct web_call *, const struct web_service *);

/* The same; that it is not there is no failure. */
err web_call_remove(struct web_call *, const struct web_service *);

/* Asks who lends keys or tokens; a try that says nothing else has WEB_LENDER_TRY_S. ret: [size],
 * the answer, ended by NUL; after a failure "". Fails as web_call_make() does. */
enum { WEB_LENDER_TRY_S = 5 };
err web_ask_lender(struct http_call *, char *ret, size_t size);

/* %-escaped but for letters, digits, "-_.~" and, where `keeps_slash`, "/". */
char *web_escape(struct arena *, const char *text, bool keeps_slash);
/* Base64 for URLs, without "=" at the end */
char *web_encode(struct arena *, const void *bytes, size_t count);
/* What a server is told of "http://user:password@host/": base64 of both; NULL: of none. */
const char *web_password_proof(struct arena *, const char *url);

/* For the tables of services */
err web_file_open(const struct file_system *, const char *path, struct file **ret);
err web_file_read(struct file *, uint64_t offset, uint64_t until, void *to, size_t max,
                  size_t *ret_bytes);
err web_file_state(struct file *, struct file_state *ret);
void web_file_close(struct file *);
#define WEB_FILE_READING                                                                           \
    .open = web_file_open, .read = web_file_read, .state = web_file_state, .close = web_file_close

#endif
