/* url.h - which paths are URLs, and hiding their secrets: user and password, and keys and
 * signatures in the query. fail() and log_line() hide these in all texts; code that writes texts
 * elsewhere must call path_shown() or urls_hide(). */
#ifndef CORE_BASE_FILES_URL_H
#define CORE_BASE_FILES_URL_H

#include <stdbool.h>
#include <stddef.h>

enum { PATH_BYTES_MAX = 4096, URL_SERVERS_MAX = 64 };

/* The scheme is "s3" in "s3://...". */
bool path_is_url(const char *path);
size_t url_scheme_bytes(const char *path); /* 0: none */

/* The path without secrets. Returns `to`, which has PATH_BYTES_MAX bytes. */
const char *path_shown(const char *path, char *to);

/* The same for every URL in a text, in place: a URL ends before white space, before a quotation
 * mark without a backslash, or with the text. Returns the begin of one that ends with the text;
 * NULL: there is none. */
char *urls_hide(char *text);

/* The servers named on the command line and in the spec of this process: credentials are not sent
 * to others, which a peer or a file behind a URL may name. url_servers_note adds those of every URL
 * in a text; at start, before there are threads. */
void url_servers_note(const char *text);
const char *url_server(int i); /* "hdfs://host:port"; NULL past the last */

/* Folders to which this job has had access: a refusal there may be temporary, as while expired
 * credentials are renewed. From any thread. */
void url_folder_note(const char *url); /* ignored if it is not a URL, or too long */
bool url_is_let_in(const char *shown); /* shown: by path_shown(); true: such a folder, or in one */

#endif
