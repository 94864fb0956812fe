/* web.h - internal to net/web: what the file systems behind URLs have in common.
 *
 * A service maps a path to an HTTP address and adds credentials to requests. Files are read by
 * ranges: the first one tells size and version of the file (or the service looks, and looks again
 * after each range); the longer it is read sequentially, the more ranges are requested at once.
 */
#ifndef NET_WEB_WEB_H
#define NET_WEB_WEB_H

#include "core/base/arena.h"
#include "core/base/files/file_system.h"
#include "net/http.h"

enum {
    WEB_HEAD_BYTES = 64 << 10,  /* the first range */
    WEB_CHUNK_BYTES = 1 << 20,  /* the others */
    WEB_CHUNKS_MAX = 8,         /* requested at once */
    WEB_WHOLE_MAX = 256 << 20,  /* largest file from a server without ranges */
    WEB_ANSWER_BYTES = 8 << 20, /* of an answer other than a file */
    WEB_WRITE_MAX_S = 4 * 3600, /* for a copy, or a part that is taken piece by piece */
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
    const char *host, *path, *query; /* of http.url, escaped; query: "" or "a=b&c=d" */
    int header_count;
    void *own; /* the service's, in the arena */
};

struct web_service {
    struct file_system files;        /* first */
    const struct upload_way *upload; /* NULL: nothing can be written */
    /* Sets the address of a path, and its text for messages. ERR_INPUT: not of this service. */
    err (*address)(const char *path, struct web_call *);
    /* Adds credentials to a call that is otherwise complete; NULL: none needed. */
    err (*sign)(struct web_call *);
    /* For a server whose ranges do not tell the file's version, else NULL: its state now, failing
     * as file_look does, and how a range is requested. */
    err (*look)(const char *path, struct file_state *ret);
    void (*range)(struct web_call *, uint64_t at, size_t bytes);
    /* Requests one page of a list (list.h); token "": the first. NULL: the service has no lists. */
    err (*list)(const struct web_listing *, const char *token, struct web_list *);
};

extern const struct web_service *const web_services[]; /* NULL at the end */

/* Begins a call without an address. Needs web_call_close also after a failure. */
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

/* The same; success if the object does not exist. */
err web_call_remove(struct web_call *, const struct web_service *);

/* Makes a call to a server that issues keys or tokens; each try may take WEB_LENDER_TRY_S if try_s
 * is 0. ret: [size], the answer, NUL-terminated; after a failure "". Fails as web_call_make() does.
 */
enum { WEB_LENDER_TRY_S = 5 };
err web_ask_lender(struct http_call *, char *ret, size_t size);

/* %-escapes all but letters, digits, "-_.~" and, if keeps_slash, "/". */
char *web_escape(struct arena *, const char *text, bool keeps_slash);
/* Base64 for URLs, without "=" at the end */
char *web_encode(struct arena *, const void *bytes, size_t count);
/* Base64 of "user:password" in "http://user:password@host/", for basic authentication; NULL: none.
 */
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
