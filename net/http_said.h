/* http_said.h - shortens a server's error response for use in our error messages. */
#ifndef NET_HTTP_SAID_H
#define NET_HTTP_SAID_H

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_SAID_SHOWN_BYTES = 208 };

/* Replaces the secret by stars, also if its end is truncated; NULL or "": nothing to hide. */
void http_hide(char *text, const char *secret);
/* Writes ": " and the error message of the body to `to`; "": it has none. lends: the body may hold
 * a secret; only a field named as a message is shown. */
const char *http_said_in_short(const char *said, bool lends, char *to, size_t size);

#endif
