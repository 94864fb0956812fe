/* http_said.h - what servers say where they refuse, as messages have it. */
#ifndef NET_HTTP_SAID_H
#define NET_HTTP_SAID_H

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_SAID_SHOWN_BYTES = 208 };

/* Stars instead of a secret, also where its end is cut off; NULL and "": there is none. */
void http_hide(char *text, const char *secret);
/* ": " and the message of a body, written to `to`; "": it has none. lends: a body that brings a
 * secret is shown only as far as it names something a message. */
const char *http_said_in_short(const char *said, bool lends, char *to, size_t size);

#endif
