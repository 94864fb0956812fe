/* url.c - see url.h. */
#include "core/base/files/url.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SCHEME_BYTES_MAX = 16, STARS_MAX = 3, SERVER_BYTES_MAX = 300 };

/* As in RFC 3986, lower case only: "C:" and "a b://" are file names. */
size_t url_scheme_bytes(const char *path)
{
    size_t bytes = 0;
    while (islower((unsigned char)path[bytes]) || (bytes && isdigit((unsigned char)path[bytes])))
        bytes++;
    return bytes <= SCHEME_BYTES_MAX && strncmp(path + bytes, "://", 3) == 0 ? bytes : 0;
}

bool path_is_url(const char *path)
{
    return url_scheme_bytes(path) > 0;
}

static bool is_secret(const char *name, size_t bytes)
{
    static const char *const words[] = {"sig",  "token",      "key",  "cred", "secret",
                                        "pass", "delegation", "auth", NULL};
    char copy[64];
    snprintf(copy, sizeof copy, "%.*s", (int)bytes, name);
    for (int i = 0; words[i]; i++)
        if (strcasestr(copy, words[i])) return true;
    return false;
}

/* The number of bytes before the first of these characters, or before `end`. */
static size_t span_until(const char *from, const char *end, const char *characters)
{
    const char *at = from;
    while (at < end && !strchr(characters, *at)) at++;
    return (size_t)(at - from);
}

/* user:password@ of "scheme://user:password@host/...": its length. An unescaped slash in the
 * password is recognized, because what precedes it is not host and port. */
static size_t user_bytes(const char *rest, const char *end)
{
    const size_t host = span_until(rest, end, "/?#");
    const char *colon = memchr(rest, ':', host), *at = memrchr(rest, '@', host);
    const bool is_broken =
        colon && strspn(colon + 1, "0123456789") + 1 != host - (size_t)(colon - rest);
    if (!at && is_broken && rest[0] != '[') at = memrchr(rest, '@', (size_t)(end - rest));
    return at ? (size_t)(at + 1 - rest) : 0;
}

/* Writes the URL without secrets to `to`, which may be equal to `from`: it never grows. scheme: its
 * length. Returns the end. */
static char *hide(const char *from, const char *end, size_t scheme, char *to)
{
    const char *rest = from + scheme + 3;
    to = (char *)memmove(to, from, scheme + 3) + scheme + 3;
    rest += user_bytes(rest, end);
    const size_t plain = span_until(rest, end, "?");
    to = (char *)memmove(to, rest, plain) + plain;
    for (rest += plain; rest < end;) {
        const size_t pair = 1 + span_until(rest + 1, end, "&");
        const size_t name = 1 + span_until(rest + 1, end, "&=");
        const bool hides = pair > name && is_secret(rest + 1, name - 1);
        const size_t value = hides ? pair - name - 1 : 0, kept = hides ? name + 1 : pair;
        const size_t stars = value < STARS_MAX ? value : STARS_MAX;
        to = (char *)memmove(to, rest, kept) + kept;
        to = (char *)memset(to, '*', stars) + stars;
        rest += pair;
    }
    return to;
}

const char *path_shown(const char *path, char *to)
{
    const size_t scheme = url_scheme_bytes(path);
    snprintf(to, PATH_BYTES_MAX, "%s", path);
    if (scheme) *hide(to, to + strlen(to), scheme, to) = '\0';
    return to;
}

/* The length of the scheme that ends at "://". */
static size_t scheme_before(const char *begin, const char *colon)
{
    size_t bytes = 0;
    while (begin + bytes < colon && isalnum((unsigned char)colon[-1 - (ptrdiff_t)bytes])) bytes++;
    while (bytes && url_scheme_bytes(colon - bytes) != bytes) bytes--;
    return bytes;
}

static const char *end_of(const char *url)
{
    const char *end = url;
    while (*end && !isspace((unsigned char)*end) && !(*end == '"' && end[-1] != '\\')) end++;
    return end;
}

char *urls_hide(char *text)
{
    char *to = text, *last = NULL;
    const char *from = text;
    for (const char *colon; (colon = strstr(from, "://"));) {
        const size_t scheme = scheme_before(from, colon);
        const char *url = colon - scheme, *end = scheme ? end_of(colon) : colon + 3;
        to = (char *)memmove(to, from, (size_t)(url - from)) + (url - from);
        last = !*end && scheme ? to : NULL;
        to = hide(url, end, scheme, to);
        from = end;
    }
    memmove(to, from, strlen(from) + 1);
    return last;
}

/* ---- servers that are named ---- */

static struct {
    char at[URL_SERVERS_MAX][SERVER_BYTES_MAX];
    int count;
} servers;

static void note_server(const char *url, size_t bytes)
{
    if (bytes >= SERVER_BYTES_MAX || servers.count == URL_SERVERS_MAX) return;
    char *to = servers.at[servers.count];
    memcpy(to, url, bytes);
    to[bytes] = '\0';
    for (int i = 0; i < servers.count; i++)
        if (strcmp(servers.at[i], to) == 0) return;
    servers.count++;
}

void url_servers_note(const char *text)
{
    for (const char *colon; (colon = strstr(text, "://")); text = colon + 3) {
        const size_t scheme = scheme_before(text, colon);
        if (scheme) note_server(colon - scheme, scheme + 3 + strcspn(colon + 3, "/?#,\"' "));
    }
}

const char *url_server(int i)
{
    return i < servers.count ? servers.at[i] : NULL;
}

/* ---- folders that a job was let into ---- */

enum { FOLDERS_MAX = 16 }; /* per job; each chief may have its own */

static struct {
    pthread_mutex_t lock;
    char at[FOLDERS_MAX][PATH_BYTES_MAX];
    int count;
} folders = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_inside(const char *shown, const char *folder)
{
    const size_t bytes = strlen(folder);
    return strncmp(shown, folder, bytes) == 0 && (!shown[bytes] || shown[bytes] == '/');
}

static bool is_in_any(const char *shown)
{
    for (int i = 0; i < folders.count; i++)
        if (is_inside(shown, folders.at[i])) return true;
    return false;
}

void url_folder_note(const char *url)
{
    if (!path_is_url(url) || strlen(url) >= PATH_BYTES_MAX) return;
    pthread_mutex_lock(&folders.lock);
    if (folders.count < FOLDERS_MAX) {
        char *to = folders.at[folders.count];
        path_shown(url, to);
        size_t bytes = strlen(to);
        while (bytes && to[bytes - 1] == '/') to[--bytes] = '\0';
        folders.count += bytes && !is_in_any(to);
    }
    pthread_mutex_unlock(&folders.lock);
}

bool url_is_let_in(const char *shown)
{
    pthread_mutex_lock(&folders.lock);
    const bool is_in = is_in_any(shown);
    pthread_mutex_unlock(&folders.lock);
    return is_in;
}
