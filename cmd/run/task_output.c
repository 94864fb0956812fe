/* task_output.c - see task_output.h. */
#include "cmd/run/task_output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/standard_output.h"

enum { OUTPUT_BYTES = 16384, READS_MAX = 16 };

/* What log.h writes before a status, and before a line that may overwrite one */
static const char clear_line[] = "\r\033[K";
enum { CLEAR_BYTES = sizeof clear_line - 1 };

/* Lines gathered for one write. OUTPUT_BYTES is more than the longest line with its name. */
struct output_lines {
    int to;
    size_t used;
    char at[OUTPUT_BYTES];
};

static void flush(struct output_lines *out)
{
    standard_output_pass(out->to, out->at, out->used);
    out->used = 0;
}

static void put(struct output_lines *out, const char *bytes, size_t count)
{
    if (out->used + count > sizeof out->at) flush(out);
    memcpy(out->at + out->used, bytes, count);
    out->used += count;
}

/* Bytes that a terminal no longer shows: up to and including the last clear_line */
static size_t overwritten(const char *bytes, size_t count)
{
    for (size_t end = count; end >= CLEAR_BYTES; end--)
        if (memcmp(bytes + end - CLEAR_BYTES, clear_line, CLEAR_BYTES) == 0) return end;
    return 0;
}

/* Clears the status line of any task first; the task's next status redraws it. */
static void put_line(const struct task_output *lines, struct output_lines *out, const char *bytes,
                     size_t count)
{
    log_clear_status();
    size_t gone = overwritten(bytes, count);
    put(out, lines->prefix, strlen(lines->prefix));
    put(out, bytes + gone, count - gone);
    put(out, "\n", 1);
}

/* Text after a clear_line without an end of line is a status. */
static void show_status(struct task_output *lines)
{
    size_t gone = overwritten(lines->at, lines->used);
    if (gone == 0 || gone == lines->used) return;
    log_status("%s%.*s", lines->prefix, (int)(lines->used - gone), lines->at + gone);
    memmove(lines->at + CLEAR_BYTES, lines->at + gone, lines->used - gone);
    memcpy(lines->at, clear_line, CLEAR_BYTES);
    lines->used -= gone - CLEAR_BYTES;
}

/* Moves what remains, the beginning of a line, to the front. */
static void put_whole_lines(struct task_output *lines, struct output_lines *out)
{
    size_t start = 0;
    for (;;) {
        const char *end = memchr(lines->at + start, '\n', lines->used - start);
        if (!end) break;
        size_t length = (size_t)(end - (lines->at + start));
        put_line(lines, out, lines->at + start, length);
        start += length + 1;
    }
    lines->used -= start;
    memmove(lines->at, lines->at + start, lines->used);
    if (lines->used < sizeof lines->at) return;
    put_line(lines, out, lines->at, lines->used);
    lines->used = 0;
}

void task_output_pass(struct task_output *lines)
{
    struct output_lines out; /* large: not cleared */
    out.to = lines->to;
    out.used = 0;
    bool is_new = false;
    for (int reads = 0; reads < READS_MAX && lines->from >= 0; reads++) {
        ssize_t got = read(lines->from, lines->at + lines->used, sizeof lines->at - lines->used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got > 0) {
            is_new = true;
            lines->used += (size_t)got;
            put_whole_lines(lines, &out);
            continue;
        }
        if (lines->used && !overwritten(lines->at, lines->used))
            put_line(lines, &out, lines->at, lines->used);
        task_output_close(lines);
    }
    flush(&out);
    if (is_new && lines->from >= 0) show_status(lines);
}

static void hear(void *context)
{
    task_output_pass(context);
}

err task_output_watch(struct task_output *lines, struct loop *loop)
{
    lines->loop = loop;
    return loop_watch(loop, lines->from, hear, lines);
}

void task_output_close(struct task_output *lines)
{
    if (lines->from >= 0 && lines->loop) loop_unwatch(lines->loop, lines->from);
    if (lines->from >= 0) close(lines->from);
    lines->from = -1;
    lines->used = 0;
}
