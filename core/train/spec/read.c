/* read.c - from a file or standard input to JSON.
 *
 * Read through a callback, so that a limit on the length holds for pipes and devices, too, whose
 * size is not known beforehand. Syntax errors name line and column; a key that is given twice is
 * one of them.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/files/file_system.h"
#include "core/base/files/local.h"
#include "core/base/files/own.h"
#include "core/train/spec/spec_inside.h"

enum { SPEC_BYTES_MAX = 16 << 20 };

struct spec_reader {
    FILE *file;
    size_t bytes; /* read so far */
    int error;    /* errno of a failed read */
    bool is_too_long;
    unsigned char first[6]; /* of its bytes */
};

/* jansson's reading function: (size_t)-1 stops it. */
static size_t read_some(void *buffer, size_t size, void *context)
{
    struct spec_reader *reader = context;
    const size_t got = fread(buffer, 1, size, reader->file);
    if (got == 0 && ferror(reader->file)) {
        reader->error = errno;
        return (size_t)-1;
    }
    if (reader->bytes == 0)
        memcpy(reader->first, buffer, got < sizeof reader->first ? got : sizeof reader->first);
    reader->bytes += got;
    reader->is_too_long = reader->bytes > SPEC_BYTES_MAX;
    return reader->is_too_long ? (size_t)-1 : got;
}

/* The errors by which something else is where a file of this program's own should be; all others
 * are failures of storage. */
static bool is_users(void)
{
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EINVAL ||
           errno == ENXIO || errno == EISDIR || errno == ENAMETOOLONG;
}

/* After a member or an element the parser expects an end or a comma, and names only the end. */
static const char *comma_hint(const char *text)
{
    static const char behind[] = "' expected near '";
    if (strcmp(text, "string or '}' expected near '}'") == 0 ||
        strcmp(text, "unexpected token near ']'") == 0)
        return "; the comma in front of it is one too many";
    const bool wants_end = text[0] == '\'' && (text[1] == '}' || text[1] == ']') &&
                           strncmp(text + 2, behind, sizeof behind - 1) == 0;
    return wants_end && !strchr("]}", text[1 + sizeof behind])
               ? "; is a comma missing in front of it?"
               : "";
}

static const char quotes[] = "; names and texts stand in straight double quotes";
static const char numbers[] = "; numbers are written as -12, 0.5 or 1e-3";

/* What other languages have and JSON does not, by how it begins */
static const char *foreign_hint(const char *near)
{
    static const struct {
        const char *begin, *hint;
    } known[] = {{"/", "; JSON has no comments"},
                 {"#", "; JSON has no comments"},
                 {"'", quotes},
                 {"\xe2\x80\x98", quotes}, /* as word processors and web pages make them */
                 {"\xe2\x80\x99", quotes},
                 {"\xe2\x80\x9c", quotes},
                 {"\xe2\x80\x9d", quotes},
                 {"\xe2\x80\x9e", quotes},
                 {"True", "; JSON writes true"},
                 {"False", "; JSON writes false"},
                 {"None", "; JSON writes null"},
                 {"+", numbers},
                 {".", numbers}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(near, known[i].begin, strlen(known[i].begin)) == 0) return known[i].hint;
    return "";
}

/* What to write instead; "": the parser's message says enough. */
static const char *hint_of(const char *text)
{
    static const char before[] = " near '";
    const char *at = strstr(text, before), *near = at ? at + sizeof before - 1 : "";
    const char *foreign = foreign_hint(near), *comma = comma_hint(text);
    const bool is_token = strncmp(text, "invalid token", 13) == 0;
    if (*foreign) return foreign;
    if (*comma) return comma;
    if (is_token && isdigit((unsigned char)*near)) return numbers;
    const bool wants_name = is_token || strncmp(text, "string or", 9) == 0;
    return wants_name && isalpha((unsigned char)*near) ? quotes : "";
}

/* NULL: it is not packed in a format known here. */
static const char *packed_by(const struct spec_reader *reader)
{
    static const struct {
        const char *head;
        size_t bytes;
        const char *by;
    } known[] = {{"\x1f\x8b", 2, "gzip"},
                 {"BZh", 3, "bzip2"},
                 {"\xfd"
                  "7zXZ",
                  5, "xz"},
                 {"\x28\xb5\x2f\xfd", 4, "zstd"},
                 {"PK\3\4", 4, "zip"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (memcmp(reader->first, known[i].head, known[i].bytes) == 0) return known[i].by;
    return NULL;
}

static err fail_read(const struct spec_reader *reader, const json_error_t *error)
{
    if (reader->error)
        return fail(reader->error == EISDIR ? ERR_INPUT : ERR_IO, "cannot be read: %s",
                    strerror(reader->error));
    if (reader->is_too_long) {
        return fail(ERR_INPUT, "longer than %d bytes: not a spec", SPEC_BYTES_MAX);
    }
    if (reader->bytes == 0) return fail(ERR_INPUT, "empty: expected a JSON object");
    if (packed_by(reader))
        return fail(ERR_INPUT, "packed by %s: unpack it; a spec is a JSON object",
                    packed_by(reader));
    const unsigned mark = (unsigned)reader->first[0] << 8 | reader->first[1];
    if (mark == 0xfffe || mark == 0xfeff)
        return fail(ERR_INPUT, "text in UTF-16: save it as UTF-8; a spec is a JSON object");
    const bool is_other = /* a table of data, say */
        (error->line == 1 && error->column <= 1) || strncmp(error->text, "'['", 3) == 0;
    return fail(ERR_INPUT, "line %d, column %d: %s%s%s", error->line, error->column, error->text,
                is_other ? "; a spec is a JSON object" : "", hint_of(error->text));
}

static err read_file(FILE *file, json_t **ret)
{
    struct spec_reader reader = {.file = file};
    file_skip_mark(file);
    json_error_t error = {0};
    json_t *json = json_load_callback(read_some, &reader, JSON_REJECT_DUPLICATES, &error);
    if (!json) return fail_read(&reader, &error);
    *ret = json;
    return OK;
}

/* The caller puts the path in front. */
static err open_here(const char *path, FILE **ret)
{
    const err e = local_open_text(path, ret);
    const char *why = error_text();
    const size_t named = strlen(path) + strlen(": ");
    if (!e) return OK;
    if (errno == EISDIR) return fail(e, "cannot be read: %s", strerror(errno));
    return fail(e, "cannot be opened: %s",
                strncmp(why, path, strlen(path)) == 0 && strlen(why) > named ? why + named : why);
}

err spec_read(const char *path, json_t **ret)
{
    if (strcmp(path, "-") == 0) return read_file(stdin, ret);
    FILE *file;
    if (path_is_url(path))
        TRY(file_open_text(path, SPEC_BYTES_MAX, &file));
    else
        TRY(open_here(path, &file));
    const err e = read_file(file, ret);
    fclose(file);
    return e;
}

static err find_kept(const char *path, bool *ret_is_there)
{
    struct stat status;
    struct file_state state;
    if (path_is_url(path)) return file_find(path, ret_is_there, &state);
    *ret_is_there = stat(path, &status) == 0;
    if (*ret_is_there || errno == ENOENT || errno == ENOTDIR) return OK;
    return fail(ERR_IO, "cannot be looked at: %s", strerror(errno));
}

err spec_find_kept(const char *path, json_t **ret)
{
    bool is_there;
    *ret = NULL;
    TRY(find_kept(path, &is_there));
    return is_there ? spec_read_kept(path, ret) : OK;
}

err spec_read_kept(const char *path, json_t **ret)
{
    FILE *file;
    if (path_is_url(path))
        TRY(file_open_text(path, SPEC_BYTES_MAX, &file));
    else if (!(file = own_read(path)))
        return fail(is_users() ? ERR_INPUT : ERR_IO, "cannot be read: %s", strerror(errno));
    const err e = read_file(file, ret);
    fclose(file);
    return e;
}
