/* http_server_none.c - http_server.h in a build without libmicrohttpd. */
#include "net/http_server.h"

err http_server_check(const char *address)
{
    return fail(ERR_INPUT, "this dtrain was built without libmicrohttpd, and answers no HTTP");
}

err http_server_open(const struct http_server_options *options, struct http_server **ret)
{
    return http_server_check(options->address);
}

void http_server_close(struct http_server *server)
{
}

int http_server_drain(struct http_server *server, uint64_t ms)
{
    return 0;
}

int http_server_port(const struct http_server *server)
{
    return 0;
}

const char *http_server_version(void)
{
    return NULL;
}
