/* list.h - lists the keys of a bucket that have a prefix, page by page. */
#ifndef NET_WEB_LIST_H
#define NET_WEB_LIST_H

#include "net/web/web.h"

enum {
    BUCKET_BYTES_MAX = 256,
    WEB_KEYS_MAX = 1 << 20,
    WEB_LIST_BYTES_MAX = 256 << 20, /* of all names */
    WEB_PAGES_MAX = 1 << 16,        /* servers may answer fewer keys than they could, or none */
    WEB_LIST_MAX_S = 3600,
    WEB_TOKEN_BYTES = 2048,
};

/* Keys sorted by bytes. One that ends with "/" is the common prefix of longer ones that are left
 * out, or an empty object that stands for a folder. */
struct web_list {
    char **keys; /* [count] */
    size_t count, capacity, bytes;
    int pages; /* asked for so far */
    uint64_t until_ms;
    bool is_truncated;           /* there is another page */
    char token[WEB_TOKEN_BYTES]; /* requests the next page */
};

/* The request: keys that begin with prefix and have at most `depth` "/" after it; may give more. */
struct web_listing {
    const char *scheme, *bucket, *prefix; /* scheme: "s3" */
    int depth;
};

/* Parses a page and adds its keys. ERR_IO: not a list. ERR_INPUT: more than WEB_KEYS_MAX keys or
 * WEB_LIST_BYTES_MAX bytes. */
typedef err web_list_taker(struct web_list *, const char *page, size_t bytes);

err web_list_add(struct web_list *, const char *key);
/* To be called before each page. ERR_IO: WEB_PAGES_MAX or WEB_LIST_MAX_S is exceeded. */
err web_list_turn(struct web_list *, const struct web_listing *);
/* Makes a call whose address is set, and passes its answer to the taker. */
err web_list_ask(struct web_call *, const struct web_service *, const struct web_listing *,
                 web_list_taker *, struct web_list *);

/* Bucket and key of "scheme://bucket/key"; ERR_INPUT: it has no bucket. */
err web_split(const char *path, char *ret_bucket, const char **ret_key);

/* For the tables of services: see file_system.h. */
err web_match(const struct file_system *, const char *pattern, size_t plain, file_found *,
              void *context);
err web_visit(const struct file_system *, const char *folder, file_found *, void *context);

#endif
