/* http.c - files of web servers: see web.h. Such a server has no list of its files. */
#include "net/web/web.h"

static err address_of(const char *path, struct web_call *c)
{
    c->http.url = arena_string(&c->arena, path);
    c->http.secret = web_password_proof(&c->arena, path);
    return OK;
}

static const char *const schemes[] = {"http", "https", NULL};
const struct web_service http_service = {
    .files = {.schemes = schemes, WEB_FILE_READING},
    .address = address_of,
};
