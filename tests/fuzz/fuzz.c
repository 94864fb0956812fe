/* fuzz.c - see fuzz.h. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/files/file_system.h"

uint8_t fuzz_byte(struct view *input)
{
    return input->at < input->end ? *input->at++ : 0;
}

struct view fuzz_bytes(struct view *input, size_t count)
{
    struct view ret = {0};
    view_cut(input, count < view_bytes(*input) ? count : view_bytes(*input), &ret);
    return ret;
}

struct view fuzz_text(struct view *input)
{
    const uint8_t *zero = view_bytes(*input) ? memchr(input->at, 0, view_bytes(*input)) : NULL;
    const struct view ret =
        fuzz_bytes(input, zero ? (size_t)(zero - input->at) : view_bytes(*input));
    fuzz_byte(input);
    return ret;
}

void fuzz_holds(bool holds, const char *text)
{
    if (holds) return;
    fprintf(stderr, "does not hold: %s\n", text);
    abort();
}

bool fuzz_went_well(err e)
{
    fuzz_holds(!e || error_text()[0], "an error says what it is");
    return !e;
}

/* ---- files in memory ---- */

static struct {
    const char *name;
    struct view bytes;
} files[MEMORY_FILES_MAX];
static int file_count;

static const char scheme[] = "memory://";

struct memory_reader {
    struct file file; /* first */
    struct view bytes;
};

static err open_memory(const struct file_system *system, const char *path, struct file **ret)
{
    for (int i = 0; i < file_count; i++) {
        if (strcmp(files[i].name, path + strlen(scheme)) != 0) continue;
        struct memory_reader *r = calloc(1, sizeof *r);
        if (!r) return fail(ERR_MEMORY, "no memory");
        r->bytes = files[i].bytes;
        r->file = (struct file){system, files[i].name, {.bytes = view_bytes(r->bytes)}};
        *ret = &r->file;
        return OK;
    }
    const err e = fail(ERR_INPUT, "%s: no such file", path);
    errno = ENOENT;
    return e;
}

static err read_memory(struct file *f, uint64_t offset, uint64_t until, void *to, size_t max,
                       size_t *ret_bytes)
{
    const struct view bytes = ((struct memory_reader *)f)->bytes;
    const size_t at = offset < view_bytes(bytes) ? (size_t)offset : view_bytes(bytes);
    const size_t left = view_bytes(bytes) - at;
    *ret_bytes = left < max ? left : max;
    if (*ret_bytes) memcpy(to, bytes.at + at, *ret_bytes);
    return OK;
}

static err state_of_memory(struct file *f, struct file_state *ret)
{
    *ret = f->state;
    return OK;
}

static void close_memory(struct file *f)
{
    free(f);
}

static const struct file_system memory = {
    .schemes = (const char *const[]){"memory", NULL},
    .open = open_memory,
    .read = read_memory,
    .state = state_of_memory,
    .close = close_memory,
};

void memory_file(const char *name, struct view bytes)
{
    static bool is_registered;
    if (!is_registered) file_system_register(&memory);
    is_registered = true;
    files[file_count].name = name;
    files[file_count++].bytes = bytes;
}

void memory_clear(void)
{
    file_count = 0;
}
