/* s3_list.h - lists of objects as S3 writes them: XML, in pages. */
#ifndef NET_WEB_S3_LIST_H
#define NET_WEB_S3_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"

enum { S3_KEYS_MAX = 1 << 20, S3_TOKEN_BYTES = 2048 };

/* S3 gives keys in the order of their bytes. What ends with "/" is what longer ones begin with that
 * are left out, or an empty object that stands for a folder. */
struct s3_list {
    char **keys; /* [count] */
    size_t count, capacity;
    bool is_truncated;          /* there is another page, */
    char token[S3_TOKEN_BYTES]; /* which is asked for by this */
};

/* Adds a page. ERR_IO: it is no list. ERR_INPUT: more than S3_KEYS_MAX keys. */
err s3_list_take(struct s3_list *, const char *page, size_t bytes);
void s3_list_free(struct s3_list *); /* a zeroed one is fine */

#endif
