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

static bool starts_with_clear(const char *bytes, size_t count)
{
    return count >= CLEAR_BYTES && memcmp(bytes, clear_line, CLEAR_BYTES) == 0;
}

static void put_line(struct lines *lines, struct output *out, const char *bytes, size_t count)
{
    if (*lines->has_status) write_all(STDERR_FILENO, clear_line, CLEAR_BYTES);
    *lines->has_status = false;
    for (; starts_with_clear(bytes, count); count -= CLEAR_BYTES) bytes += CLEAR_BYTES;
    put(out, lines->prefix, strlen(lines->prefix));
    put(out, bytes, count);
    put(out, "\n", 1);
}

/* What stands before the last clear_line was to be overwritten. */
static void drop_overwritten(struct lines *lines)
{
    for (size_t i = lines->used; i-- > 1;) {
        if (!starts_with_clear(lines->at + i, lines->used - i)) continue;
        memmove(lines->at, lines->at + i, lines->used - i);
        lines->used -= i;
        return;
    }
}

static void show_status(struct lines *lines)
{
    drop_overwritten(lines);
    if (!starts_with_clear(lines->at, lines->used) || lines->used == CLEAR_BYTES) return;
    log_status("%s%.*s", lines->prefix, (int)(lines->used - CLEAR_BYTES), lines->at + CLEAR_BYTES);
    *lines->has_status = true;
}

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
    struct output out = {.to = lines->to};
    for (int reads = 0; reads < READS_MAX && lines->from >= 0; reads++) {
        ssize_t got = read(lines->from, lines->at + lines->used, sizeof lines->at - lines->used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got > 0) {
            lines->used += (size_t)got;
            put_whole_lines(lines, &out);
            continue;
        }
        if (lines->used && !starts_with_clear(lines->at, lines->used))
            put_line(lines, &out, lines->at, lines->used);
        lines_close(lines);
    }
    flush(&out);
    if (lines->from >= 0) show_status(lines);
}

void lines_close(struct lines *lines)
{
    if (lines->from >= 0) close(lines->from);
    lines->from = -1;
    lines->used = 0;
}
