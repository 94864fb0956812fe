/* call.c - requests of the file systems behind URLs: see web.h. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "net/web/web.h"

err web_call_open(struct web_call *c, const struct web_service *service, const char *method,
                  const char *path)
{
    char shown[PATH_BYTES_MAX];
    *c = (struct web_call){.http.method = method};
    c->http.shown = arena_string(&c->arena, path_shown(path, shown));
    const err e = service->address(path, c);
    if (e) errno = EINVAL; /* nobody has looked whether it is there */
    return e;
}

void web_call_close(struct web_call *c)
{
    http_drop(&c->http);
    arena_free(&c->arena);
}

void web_call_header(struct web_call *c, const char *format, ...)
{
    char line[HTTP_HEADER_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (c->header_count < HTTP_HEADERS_MAX)
        c->http.headers[c->header_count++] = arena_string(&c->arena, line);
}

void web_call_address(struct web_call *c, const char *base, const char *path, const char *query)
{
    const char *host = strstr(base, "://");
    c->host = host ? host + 3 : base;
    c->path = arena_string(&c->arena, path);
    c->query = arena_string(&c->arena, query);
    c->http.url = arena_format(&c->arena, "%s%s%s%s", base, path, *query ? "?" : "", query);
}

err web_call_start(struct web_call *c, const struct web_service *service)
{
    if (service->sign) TRY(service->sign(c));
    return http_start(&c->http);
}

err web_call_make(struct web_call *c, const struct web_service *service)
{
    TRY(web_call_start(c, service));
    TRY(http_wait(&c->http));
    return c->http.status >= 300 ? http_refused(&c->http) : OK;
}

char *web_escape(struct arena *arena, const char *text, bool keeps_slash)
{
    char *escaped = arena_new(arena, 3 * strlen(text) + 1), *to = escaped;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (isalnum(*c) || strchr("-_.~", *c) || (keeps_slash && *c == '/'))
            *to++ = (char)*c;
        else
            to += sprintf(to, "%%%02X", *c);
    }
    return escaped;
}
