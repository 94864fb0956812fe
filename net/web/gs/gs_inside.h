/* gs_inside.h - requests to Google Cloud Storage, who asks, and what is written by them. */
#ifndef NET_WEB_GS_GS_INSIDE_H
#define NET_WEB_GS_GS_INSIDE_H

#include <time.h>

#include "net/web/list.h"

/* "" of part: the object of the path in the JSON API; else what stands behind it, or, where it
 * begins with "/upload", the address at which a new object is made. ERR_INPUT: no key. */
err gs_address(const char *path, const char *part, const char *query, struct web_call *);

/* ---- who asks (token.c) ---- */

enum {
    GS_TOKEN_BYTES = 4096,
    GS_KEY_FILE_BYTES_MAX = 64 << 10,
    GS_TOKEN_S = 3600,      /* for how long a token is asked for, and the most that one is kept */
    GS_TOKEN_EARLY_S = 300, /* before its end it is renewed */
};

/* The token of this process: of the service account whose key is in
 * GOOGLE_APPLICATION_CREDENTIALS, or of the person whose refresh token is there; where that is not
 * set, of what gcloud keeps below ~/.config, else of the machine's metadata server
 * (GCE_METADATA_HOST). It is kept until shortly before its end. ERR_INPUT: the key is none; else as
 * http_refused() says. */
err gs_token(char ret[GS_TOKEN_BYTES]);
/* The signed assertion that a token server wants: a JWT by RS256 with a key in PEM. NULL: the key
 * is none, or there is no memory. */
char *gs_assertion(struct arena *, const char *email, const char *pem, const char *audience,
                   time_t now);

/* ---- writing (write.c) ----
 *
 * A file of up to a part is sent whole. A larger one is a resumable upload, of whose parts one is
 * sent while the next is filled; it has its name once the last part is there.
 */
enum {
    GS_PART_BYTES = 8 << 20, /* a multiple of 256 KiB, says Google */
    GS_RESUMES_MAX = 64,     /* of a part that the server keeps only some of */
    GS_REWRITES_MAX = 10000, /* of a copy, each of which copies some of it */
};
err gs_create(const struct file_system *, const char *path, struct file_writer **ret);
err gs_write(struct file_writer *, const void *, size_t bytes);
err gs_finish(struct file_writer *);
void gs_drop(struct file_writer *);
err gs_remove(const char *path);
err gs_move(const char *from, const char *to);

#endif
