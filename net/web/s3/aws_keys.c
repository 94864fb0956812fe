/* aws_keys.c - see aws_keys.h. */
#include "net/web/s3/aws_keys.h"
#include "net/web/s3/aws_role.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/files/local.h"

enum { LINE_BYTES = AWS_TOKEN_BYTES + 64, PATH_BYTES = 4096, LINES_MAX = 1 << 16 };

struct file_setting {
    const char *name; /* in a file */
    char *to;
    size_t size;
};

/* Keeps a setting unless one was found before. */
static void keep(const struct file_setting *settings, const char *name, const char *value)
{
    for (const struct file_setting *s = settings; s->name; s++)
        if (strcmp(s->name, name) == 0 && !s->to[0]) snprintf(s->to, s->size, "%s", value);
}

static char *trimmed(char *text)
{
    text += strspn(text, " \t");
    size_t bytes = strlen(text);
    while (bytes > 0 && strchr(" \t\r\n", text[bytes - 1])) text[--bytes] = '\0';
    return text;
}

/* "[NAME]", in the config file "[profile NAME]" */
static bool is_profile(char *line, const char *profile)
{
    char *name = trimmed(line + 1);
    name[strcspn(name, "]")] = '\0';
    if (strncmp(name, "profile", 7) == 0 && strchr(" \t", name[7]) && name[7]) name += 8;
    return strcmp(trimmed(name), profile) == 0;
}

/* Whether the file has the profile. Lines that begin with blanks are settings below settings. */
static bool read_file(const char *path, const char *profile, const struct file_setting *settings)
{
    char line[LINE_BYTES];
    bool is_inside = false, is_found = false;
    FILE *file;
    if (local_open_text(path, &file)) return false;
    for (int i = 0; i < LINES_MAX && fgets(line, sizeof line, file); i++) {
        char *equals = strchr(line, '=');
        if (line[0] == '[') {
            is_inside = is_profile(line, profile);
            is_found |= is_inside;
        } else if (is_inside && equals && !strchr("#; \t", line[0])) {
            *equals = '\0';
            keep(settings, trimmed(line), trimmed(equals + 1));
        }
    }
    fclose(file);
    return is_found;
}

static bool read_below_home(const char *variable, const char *name, const char *profile,
                            const struct file_setting *settings)
{
    char path[PATH_BYTES];
    const char *given = getenv(variable), *home = getenv("HOME");
    if (given && *given) return read_file(given, profile, settings);
    if (!home) return false;
    snprintf(path, sizeof path, "%s/.aws/%s", home, name);
    return read_file(path, profile, settings);
}

static void take(const char *variable, char *to, size_t size)
{
    const char *value = getenv(variable);
    if (value && *value && !to[0]) snprintf(to, size, "%s", value);
}

static err check(const struct aws_keys *k)
{
    if (!k->id[0] == !k->secret[0]) return OK;
    return fail(ERR_INPUT,
                "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or their like in the files below "
                "~/.aws, only the %s is there",
                k->id[0] ? "first" : "second");
}

/* Keys of a machine's role are requested only for Amazon's own servers, or where the environment
 * names a metadata server. */
static bool may_be_amazons(const struct aws_keys *k)
{
    const char *said = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    return !k->endpoint[0] || (said && *said) || strstr(k->endpoint, ".amazonaws.com");
}

err aws_keys_find(struct aws_keys *ret)
{
    struct aws_keys k = {0};
    take("AWS_ACCESS_KEY_ID", k.id, sizeof k.id);
    take("AWS_SECRET_ACCESS_KEY", k.secret, sizeof k.secret);
    take("AWS_REGION", k.region, sizeof k.region);
    take("AWS_DEFAULT_REGION", k.region, sizeof k.region);
    take("AWS_ENDPOINT_URL_S3", k.endpoint, sizeof k.endpoint);
    take("AWS_ENDPOINT_URL", k.endpoint, sizeof k.endpoint);
    const bool has_keys = k.id[0] || k.secret[0]; /* then the environment's token is theirs */
    if (has_keys) take("AWS_SESSION_TOKEN", k.token, sizeof k.token);
    const bool is_of_pod = !has_keys && aws_role_is_of_pod();
    const struct file_setting settings[] = {
        {"region", k.region, sizeof k.region},
        {"endpoint_url", k.endpoint, sizeof k.endpoint},
        {has_keys || is_of_pod ? NULL : "aws_access_key_id", k.id,
         sizeof k.id}, /* id and secret must come from the same place */
        {"aws_secret_access_key", k.secret, sizeof k.secret},
        {"aws_session_token", k.token, sizeof k.token},
        {0},
    };
    const char *asked = getenv("AWS_PROFILE"), *profile = asked && *asked ? asked : "default";
    bool is_found =
        read_below_home("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile, settings);
    is_found |= read_below_home("AWS_CONFIG_FILE", "config", profile, settings);
    if (asked && *asked && !is_found)
        return fail(ERR_INPUT, "AWS_PROFILE: there is no profile \"%s\"", asked);
    if (!k.region[0]) snprintf(k.region, sizeof k.region, "us-east-1");
    TRY(check(&k));
    if (!k.id[0]) TRY(aws_role_keys(&k, may_be_amazons(&k)));
    *ret = k;
    return OK;
}
