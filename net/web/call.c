/* call.c - requests of the file systems behind URLs: see web.h. */
#include <ctype.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/files/url.h"
#include "net/web/web.h"

void web_call_begin(struct web_call *c, const char *method, const char *path)
{
    char shown[PATH_BYTES_MAX];
    *c = (struct web_call){.http.method = method};
    c->http.shown = arena_string(&c->arena, path_shown(path, shown));
}

err web_call_open(struct web_call *c, const struct web_service *service, const char *method,
                  const char *path)
{
    web_call_begin(c, method, path);
    const err e = service->address(path, c);
    if (e) errno = EINVAL; /* not ENOENT: whether the file exists is unknown */
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

/* The Host header: with the port unless it is the scheme's default. */
static const char *host_header(struct arena *arena, const char *base, const char *host,
                               size_t bytes)
{
    const char *port = strncmp(base, "https:", 6) == 0 ? ":443" : ":80";
    const size_t length = strlen(port);
    if (bytes > length && strncmp(host + bytes - length, port, length) == 0) bytes -= length;
    return arena_format(arena, "%.*s", (int)bytes, host);
}

void web_call_address(struct web_call *c, const char *base, const char *path, const char *query)
{
    const char *scheme = strstr(base, "://"), *host = scheme ? scheme + 3 : base;
    const char *folder = host + strcspn(host, "/");
    c->host = host_header(&c->arena, base, host, (size_t)(folder - host));
    c->path = arena_format(&c->arena, "%s%s", folder, path);
    c->query = arena_string(&c->arena, query);
    c->http.url = arena_format(&c->arena, "%s%s%s%s", base, path, *query ? "?" : "", query);
}

void web_call_body(struct web_call *c, const void *at, size_t bytes)
{
    c->http.body = bytes ? at : "";
    c->http.body_bytes = bytes;
}

/* Adds credentials. That they are missing may be temporary for URLs of url_is_let_in(): ERR_IO. */
static err sign(struct web_call *c, const struct web_service *service)
{
    const err e = service->sign ? service->sign(c) : OK;
    return e == ERR_INPUT && url_is_let_in(c->http.shown) ? ERR_IO : e;
}

err web_call_start(struct web_call *c, const struct web_service *service)
{
    TRY(sign(c, service));
    return http_start(&c->http);
}

err web_call_make(struct web_call *c, const struct web_service *service)
{
    TRY(web_call_start(c, service));
    TRY(http_wait(&c->http));
    return c->http.answer.status >= 300 ? http_refused(&c->http) : OK;
}

err web_call_remove(struct web_call *c, const struct web_service *service)
{
    TRY(web_call_start(c, service));
    TRY(http_wait(&c->http));
    return c->http.answer.status >= 300 && c->http.answer.status != 404 ? http_refused(&c->http)
                                                                        : OK;
}

err web_ask_lender(struct http_call *c, char *ret, size_t size)
{
    c->to = ret;
    c->max = size - 1;
    c->shown = c->url;
    c->keeps_redirect = true; /* credentials are valid for one host */
    c->lends = true;
    if (!c->try_s) c->try_s = WEB_LENDER_TRY_S;
    err e = http_start(c);
    if (!e) e = http_wait(c);
    if (!e && c->answer.status >= 300) e = http_refused(c);
    ret[e ? 0 : c->answer.bytes] = '\0';
    http_drop(c);
    return e;
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

static int digit_of(char c)
{
    const char *digits = "0123456789abcdef",
               *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

const char *web_password_proof(struct arena *arena, const char *url)
{
    const char *from = strstr(url, "://"), *end = from ? strpbrk(from + 3, "@/?#") : NULL;
    if (!end || *end != '@') return NULL;
    const size_t bytes = (size_t)(end - from) - 3;
    unsigned char *plain = arena_new(arena, bytes + 1), *to = plain;
    for (const char *c = from + 3; c < end; c++) {
        const bool is_escape = *c == '%' && digit_of(c[1]) >= 0 && digit_of(c[2]) >= 0;
        *to++ = (unsigned char)(is_escape ? digit_of(c[1]) << 4 | digit_of(c[2]) : *c);
        c += is_escape ? 2 : 0;
    }
    unsigned char *proof = arena_new(arena, (bytes + 2) / 3 * 4 + 1);
    EVP_EncodeBlock(proof, plain, (int)(to - plain));
    return (const char *)proof;
}

char *web_encode(struct arena *arena, const void *bytes, size_t count)
{
    unsigned char *text = arena_new(arena, (count + 2) / 3 * 4 + 1);
    EVP_EncodeBlock(text, bytes, (int)count);
    for (unsigned char *c = text; *c; c++) {
        if (*c == '+') *c = '-';
        if (*c == '/') *c = '_';
        if (*c == '=') *c = '\0';
    }
    return (char *)text;
}
