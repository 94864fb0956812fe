/* hdfs_inside.h - requests to Hadoop's file system by WebHDFS, who asks, and what is written. */
#ifndef NET_WEB_HDFS_HDFS_INSIDE_H
#define NET_WEB_HDFS_HDFS_INSIDE_H

#include <jansson.h>

#include "net/web/web.h"

/* The call of an operation, "op=OPEN&offset=0", of a path. ERR_INPUT: it has no host, or the token
 * of who asks is none. */
err hdfs_address(const char *path, const char *operation, struct web_call *);

/* What a name node says in JSON. */
struct hdfs_answer {
    int status;   /* 0: there is none */
    json_t *root; /* NULL: it is empty; freed by the caller */
};
/* ERR_INPUT and ERR_IO as http_refused() says; errno is ENOENT only of what Hadoop says is not
 * there, and not of a server that knows no such address. */
err hdfs_ask(const char *method, const char *path, const char *operation, struct hdfs_answer *ret);
/* A refusal, in the same way. */
err hdfs_refused(const struct http_call *);
/* Whether a refusal may pass: a node that does not lead or has just begun, a file whose last writer
 * is not yet given up. */
bool hdfs_may_pass(const struct http_call *);

/* As file_look() says, of this very name. */
err hdfs_find(const char *path, struct file_state *ret);
/* The same; what another life left under its spare name gets its name first. */
err hdfs_look(const char *path, struct file_state *ret);

/* ---- who asks (who.c) ---- */

enum { HDFS_TOKEN_BYTES = 4096, HDFS_TOKEN_FILE_BYTES_MAX = 64 << 10 };

/* "delegation=TOKEN" of HADOOP_TOKEN, else of the file HADOOP_TOKEN_FILE_LOCATION, else
 * "user.name=NAME" of HADOOP_USER_NAME or this process's user; "": nobody is known. ret_secret: the
 * token; "": none. ERR_INPUT: what should be a token is none. */
err hdfs_who(struct arena *, const char **ret, const char **ret_secret);
/* The first delegation token of HDFS in a file of tokens, as text (token_file.c) */
err hdfs_token_of_file(struct arena *, const char *path, const char **ret);

/* ---- writing (write.c) ----
 *
 * A file is created under a spare name and then gets its own, which it takes from what had it. What
 * is larger than a part is appended part by part, of which one is sent while the next is filled;
 * where the answer is lost, the length of the file tells what came.
 *
 * A server that gives a file no name that another has (HttpFS) needs three steps: the new file is
 * NAME.tempstate0, the old one is removed, the new one gets the name. Where a life ends between the
 * last two, whoever next looks for the name finishes that.
 */
enum {
    HDFS_PART_BYTES = 8 << 20,
    HDFS_SENDS_MAX = 20, /* of a part; a data node that died holds a file for a minute */
};
#define HDFS_SPARE ".tempstate" /* and a number; sweeps of a run's folder know it */

err hdfs_create(const struct file_system *, const char *path, struct file_writer **ret);
err hdfs_write(struct file_writer *, const void *, size_t bytes);
err hdfs_finish(struct file_writer *);
void hdfs_drop(struct file_writer *);
err hdfs_remove(const char *path);
err hdfs_move(const char *from, const char *to);
/* false also where nothing was left, or it is not known */
bool hdfs_recover(const char *path);

#endif
