/* ended.c - see ended.h. The file is one line: the token as in its own file, the code, and the
 * text. */
#include "core/train/checkpoint/ended.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/files/file_system.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/checkpoints_inside.h"

enum { LINE_MAX_BYTES = ERROR_TEXT_MAX + 64 };

err ended_write(const char *directory, const struct ended *ended)
{
    char path[CHECKPOINT_PATH_MAX], line[LINE_MAX_BYTES];
    bool is_ours;
    TRY(checkpoints_token_find(directory, ended->token, &is_ours));
    if (!is_ours) return OK;
    TRY(folder_join(directory, ENDED_NAME, path));
    const int bytes = snprintf(line, sizeof line, "%016" PRIx64 " %d %s\n", ended->token,
                               ended->code, ended->text);
    return path_is_url(path) ? file_put(path, line, (size_t)bytes)
                             : output_replace(path, line, (size_t)bytes);
}

static void parse(const char *line, struct ended *ret)
{
    char *token_end, *code_end;
    const uint64_t token = strtoull(line, &token_end, 16);
    const long code = strtol(token_end, &code_end, 10);
    if (*token_end != ' ' || code_end == token_end || *code_end != ' ') return;
    if (code < 0 || code > UINT8_MAX) return;
    const char *text = code_end + 1;
    *ret = (struct ended){.token = token, .code = (int)code};
    snprintf(ret->text, sizeof ret->text, "%.*s", (int)strcspn(text, "\n"), text);
}

static err read_ended(const char *directory, struct ended *ret)
{
    char path[CHECKPOINT_PATH_MAX], line[LINE_MAX_BYTES];
    uint8_t *read = NULL;
    size_t bytes = 0;
    *ret = (struct ended){0};
    TRY(folder_join(directory, ENDED_NAME, path));
    const err e = bundle_file_load(path, sizeof line - 1, &read, &bytes);
    if (!e && bytes) {
        memcpy(line, read, bytes);
        line[bytes] = '\0';
        parse(line, ret);
    }
    free(read);
    return e == ERR_INPUT ? OK : e;
}

err ended_find(const char *directory, uint64_t own_token, struct ended *ret)
{
    uint64_t token;
    TRY(read_ended(directory, ret));
    if (!ret->token) return OK;
    TRY(checkpoints_token(directory, &token));
    if (token && token != ret->token && token != own_token) *ret = (struct ended){0};
    return OK;
}

/* Behind a URL permission to write does not imply permission to remove: an empty file counts as
 * none, too. */
err ended_remove(const char *directory)
{
    struct ended ended;
    char path[CHECKPOINT_PATH_MAX];
    TRY(read_ended(directory, &ended));
    if (!ended.token) return OK;
    TRY(folder_join(directory, ENDED_NAME, path));
    if (path_is_url(path)) return file_put(path, "", 0);
    return unlink(path) && errno != ENOENT ? fail(ERR_IO, "%s: %s", path, strerror(errno)) : OK;
}
