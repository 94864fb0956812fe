/* lines.c - see lines.h. */
#include "cmd/lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"

enum { OUTPUT_BYTES = 16384, WRITE_WAIT_MS = 10000, READS_MAX = 16 };

/* What log.h writes before a line that may stand over a status line, and before a status. */
static const char clear_line[] = "\r\033[K";
enum { CLEAR_BYTES = sizeof clear_line - 1 };

/* Lines gathered for one write. OUTPUT_BYTES is more than the longest line with its name. */
struct output {
    int to;
    size_t used;
    char at[OUTPUT_BYTES];
};

/* A reader that does not read for WRITE_WAIT_MS loses what it did not take. */
static void write_all(int to, const char *bytes, size_t count)
{
    size_t sent = 0;
    while (sent < count) {
        ssize_t written = write(to, bytes + sent, count - sent);
        if (written > 0) sent += (size_t)written;
        if (written >= 0 || errno == EINTR) continue;
        struct pollfd room = {.fd = to, .events = POLLOUT};
        if (errno != EAGAIN || poll(&room, 1, WRITE_WAIT_MS) <= 0) break;
    }
}

static void flush(struct output *out)
{
    write_all(out->to, out->at, out->used);
    out->used = 0;
}

static void put(struct output *out, const char *bytes, size_t count)
{
    if (out->used + count > sizeof out->at) flush(out);
    memcpy(out->at + out->used, bytes, count);
    out->used += count;
}

/* How many bytes a terminal would not show any more: up to and with the last clear_line. */
static size_t overwritten(const char *bytes, size_t count)
{
    for (size_t end = count; end >= CLEAR_BYTES; end--)
        if (memcmp(bytes + end - CLEAR_BYTES, clear_line, CLEAR_BYTES) == 0) return end;
    return 0;
}

/* The status line of any task gives way to a line; the next status of its task draws it anew. */
static void put_line(struct lines *lines, struct output *out, const char *bytes, size_t count)
{
    if (*lines->has_status) write_all(STDERR_FILENO, clear_line, CLEAR_BYTES);
    *lines->has_status = false;
    size_t gone = overwritten(bytes, count);
    put(out, lines->prefix, strlen(lines->prefix));
    put(out, bytes + gone, count - gone);
    put(out, "\n", 1);
}

/* Text behind a clear_line that no end of line follows is a status. */
static void show_status(struct lines *lines)
{
    size_t gone = overwritten(lines->at, lines->used);
    if (gone == 0 || gone == lines->used) return;
    log_status("%s%.*s", lines->prefix, (int)(lines->used - gone), lines->at + gone);
    *lines->has_status = true;
    memmove(lines->at + CLEAR_BYTES, lines->at + gone, lines->used - gone);
    memcpy(lines->at, clear_line, CLEAR_BYTES);
    lines->used -= gone - CLEAR_BYTES;
}

/* What is left is the beginning of a line, moved to the front. */
static void put_whole_lines(struct lines *lines, struct output *out)
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

void lines_pass(struct lines *lines)
{
    struct output out; /* large: not cleared */
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
        lines_close(lines);
    }
    flush(&out);
    if (is_new && lines->from >= 0) show_status(lines);
}

void lines_close(struct lines *lines)
{
    if (lines->from >= 0) close(lines->from);
    lines->from = -1;
    lines->used = 0;
}
