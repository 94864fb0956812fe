/* token_file.c - the file of tokens that Hadoop gives to what it starts: see hdfs_inside.h.
 *
 * "HDTS", a byte for the version (0), how many tokens there are, and of each its name, identifier,
 * password, kind and service: bytes behind their number. What is asked with is all but the name.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/web/hdfs/hdfs_inside.h"

static const char begin[] = "HDTS";

struct rest {
    const uint8_t *at;
    size_t bytes;
    bool is_broken;
};

static uint8_t take_byte(struct rest *r)
{
    r->is_broken |= r->bytes == 0;
    if (r->is_broken) return 0;
    r->bytes--;
    return *r->at++;
}

/* A number of Hadoop's of one byte, or behind one of up to four that says how many there are; a
 * negative one breaks the file. */
static size_t take_number(struct rest *r)
{
    const int first = (int8_t)take_byte(r);
    if (first >= 0) return (size_t)first;
    const int count = -112 - first;
    size_t number = 0;
    r->is_broken |= count < 1 || count > 4;
    for (int i = 0; i < count && !r->is_broken; i++) number = number << 8 | take_byte(r);
    return number;
}

static struct rest take_bytes(struct rest *r)
{
    const size_t bytes = take_number(r);
    r->is_broken |= bytes > r->bytes;
    if (r->is_broken) return (struct rest){.is_broken = true};
    const struct rest taken = {.at = r->at, .bytes = bytes};
    r->at += bytes;
    r->bytes -= bytes;
    return taken;
}

static bool is_kind(struct rest kind)
{
    static const char *const kinds[] = {"HDFS_DELEGATION_TOKEN", "WEBHDFS delegation",
                                        "SWEBHDFS delegation"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kind.bytes == strlen(kinds[i]) && memcmp(kind.at, kinds[i], kind.bytes) == 0)
            return true;
    return false;
}

/* NULL: there is none. */
static const char *find_token(struct arena *arena, struct rest *r)
{
    const size_t count = take_number(r);
    for (size_t i = 0; i < count && !r->is_broken; i++) {
        (void)take_bytes(r); /* its name */
        const uint8_t *token = r->at;
        (void)take_bytes(r);
        (void)take_bytes(r);
        const struct rest kind = take_bytes(r);
        (void)take_bytes(r);
        if (!r->is_broken && is_kind(kind))
            return web_encode(arena, token, (size_t)(r->at - token));
    }
    return NULL;
}

static err read_tokens(struct arena *arena, const char *path, const uint8_t *bytes, size_t count,
                       const char **ret)
{
    const size_t head = strlen(begin) + 1;
    struct rest rest = {.at = bytes + head, .bytes = count - head};
    if (count < head || memcmp(bytes, begin, head - 1) != 0)
        return fail(ERR_INPUT, "HADOOP_TOKEN_FILE_LOCATION=%s: is no file of Hadoop's tokens",
                    path);
    if (bytes[head - 1] != 0)
        return fail(ERR_INPUT,
                    "HADOOP_TOKEN_FILE_LOCATION=%s: expected version 0, which hdfs dtutil writes "
                    "with -format java, and it has %d",
                    path, bytes[head - 1]);
    *ret = find_token(arena, &rest);
    if (*ret) return OK;
    return fail(ERR_INPUT, "HADOOP_TOKEN_FILE_LOCATION=%s: %s", path,
                rest.is_broken ? "is broken" : "has no delegation token of HDFS");
}

err hdfs_token_of_file(struct arena *arena, const char *path, const char **ret)
{
    uint8_t bytes[HDFS_TOKEN_FILE_BYTES_MAX];
    FILE *in = fopen(path, "re");
    if (!in) return fail(ERR_INPUT, "HADOOP_TOKEN_FILE_LOCATION=%s: %s", path, strerror(errno));
    const size_t count = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    return read_tokens(arena, path, bytes, count, ret);
}
