/* http_said.c - see http_said.h. */
#include "net/http_said.h"

#include <stdio.h>
#include <string.h>

#include "net/http.h"
#include "net/xml.h"

enum { SHOWN_BYTES = HTTP_SAID_SHOWN_BYTES - 8, SECRET_BEGIN_BYTES = 8 };

/* Also hides a secret whose end is truncated */
void http_hide(char *text, const char *secret)
{
    char begin[SECRET_BEGIN_BYTES + 1];
    if (!secret || !*secret) return;
    snprintf(begin, sizeof begin, "%s", secret);
    for (char *at = strstr(text, begin); at; at = strstr(at, begin))
        for (const char *s = secret; *at && *at == *s; s++) *at++ = '*';
}

/* Servers answer in XML (S3), JSON (Google, Hadoop) or plain text. */
const char *http_said_in_short(const char *said, bool lends, char *to, size_t size)
{
    char text[HTTP_SAID_BYTES];
    struct xml_text wanted[] = {{"Message", text, sizeof text}, {0}};
    const char *from = NULL, *end = NULL;
    xml_read(said, strlen(said), NULL, 0, wanted);
    if (text[0]) from = text;
    const char *message = strstr(said, "\"message\"");
    const char *json = message ? message : strstr(said, "\"error_description\"");
    if (!from && json) {
        json = strchr(json + 1, '"') + 1;
        from = json + strspn(json, " :\t\"");
        end = strpbrk(from, "\"\\"); /* cuts off Hadoop's stack trace */
    }
    if (!from && !lends && said[0] != '<') end = strpbrk(from = said, "\r\n");
    if (!from || !*from) return "";
    const int bytes = end ? (int)(end - from) : (int)strlen(from);
    snprintf(to, size, ": %.*s", bytes < SHOWN_BYTES ? bytes : SHOWN_BYTES, from);
    return to;
}
