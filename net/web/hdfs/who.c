/* who.c - who asks Hadoop: see hdfs_inside.h. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/web/hdfs/hdfs_inside.h"

static const char token_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=";

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static const char *user(struct arena *arena)
{
    const char *given = variable("HADOOP_USER_NAME");
    struct passwd entry, *found = NULL;
    char names[4096];
    if (given) return given;
    if (getpwuid_r(geteuid(), &entry, names, sizeof names, &found) || !found)
        return variable("USER");
    return arena_string(arena, entry.pw_name);
}

/* Hadoop's own way to write a token as text; what it is made of is the server's matter. */
static err check_token(const char *token, const char *from)
{
    const size_t bytes = strspn(token, token_letters);
    if (bytes > 0 && !token[bytes] && bytes < HDFS_TOKEN_BYTES) return OK;
    return fail(ERR_INPUT, "%s: expected a delegation token in base64 for URLs", from);
}

err hdfs_who(struct arena *arena, const char **ret, const char **ret_secret)
{
    const char *token = variable("HADOOP_TOKEN"), *file = variable("HADOOP_TOKEN_FILE_LOCATION");
    *ret = *ret_secret = "";
    if (token) TRY(check_token(token, "HADOOP_TOKEN"));
    if (!token && file) TRY(hdfs_token_of_file(arena, file, &token));
    if (token) {
        *ret_secret = arena_string(arena, token);
        *ret = arena_format(arena, "delegation=%s", token);
        return OK;
    }
    const char *name = user(arena);
    if (name) *ret = arena_format(arena, "user.name=%s", web_escape(arena, name, false));
    return OK;
}
