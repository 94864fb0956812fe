/* systems.c - see systems.h. */
#include "net/web/systems.h"

#include <expat.h>
#include <openssl/crypto.h>
#include <string.h>

#include "net/web/web.h"

void web_systems_register(void)
{
    for (const struct web_service *const *s = web_services; *s; s++)
        file_system_register(&(*s)->files);
}

static const char *behind(const char *text, const char *begin)
{
    const size_t bytes = strlen(begin);
    return strncmp(text, begin, bytes) == 0 ? text + bytes : text;
}

const char *web_library_version(enum web_library what)
{
    switch (what) {
    case WEB_CURL:
        return behind(http_version(), "libcurl/");
    case WEB_CRYPTO:
        return behind(OpenSSL_version(OPENSSL_VERSION), "OpenSSL ");
    case WEB_EXPAT:
        return behind(XML_ExpatVersion(), "expat_");
    }
    return NULL;
}
