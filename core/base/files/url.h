/* url.h - which paths are URLs, and what of a URL is not for others to see: its user and password,
 * and keys and signatures of its query. Messages and the log hide these in all their texts (fail,
 * log_line); whoever writes a text elsewhere that may have a URL hides them there.
 */
#ifndef CORE_BASE_FILES_URL_H
#define CORE_BASE_FILES_URL_H

#include <stdbool.h>
#include <stddef.h>

enum { PATH_BYTES_MAX = 4096, URL_SERVERS_MAX = 64 };

/* "s3" of "s3://..."; the path is one of a URL. */
bool path_is_url(const char *path);
size_t url_scheme_bytes(const char *path); /* 0: none */

/* The path without secrets. Returns `to`, which has PATH_BYTES_MAX. */
const char *path_shown(const char *path, char *to);

/* The same of every URL of a text, in place: each ends with white space, a quotation mark that has
 * no backslash before it, or the text. Returns where one begins that the text ends with; NULL: it
 * ends otherwise. */
char *urls_hide(char *text);

/* The servers that the command line and the spec of this very process name: no secret of its user
 * goes to another one that a peer, or a file behind a URL, names. url_servers_note takes every URL
 * of a text, at start, before there are threads. */
void url_servers_note(const char *text);
const char *url_server(int i); /* "hdfs://host:port"; NULL behind the last */

/* Folders that this job has been let into: a refusal there may pass, as where what proves who asks
 * has ended and comes anew. In any thread. */
void url_folder_note(const char *url); /* what is none of a URL, or too long, is left out */
bool url_is_let_in(const char *shown); /* of path_shown(): it is such a folder, or inside */

#endif
