/* standard_output.c - see standard_output.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/printable.h"
#include "core/base/standard_output.h"

enum { PIECE_BYTES = 4096, WRITE_TRIES = 1000, WRITE_WAIT_MS = 10000 };

static struct {
    int error;                       /* errno of a write that failed; 0: none did */
    char begun[PRINTABLE_BYTES_MAX]; /* bytes of a character whose rest has not come yet */
    size_t begun_count;
} state;

/* Returns 0 or errno. Gives up after WRITE_TRIES interruptions by signals without progress. */
static int write_all(int to, const char *bytes, size_t count)
{
    for (int tries = 0; count > 0 && tries < WRITE_TRIES; tries++) {
        const ssize_t written = write(to, bytes, count);
        if (written > 0) {
            bytes += written;
            count -= (size_t)written;
            tries = 0;
        }
        if (written >= 0 || errno == EINTR) continue;
        if (errno != EAGAIN) return errno;
        struct pollfd room = {.fd = to, .events = POLLOUT};
        if (poll(&room, 1, WRITE_WAIT_MS) == 0) return EAGAIN;
    }
    return count > 0 ? EINTR : 0;
}

void standard_output_pass(int to, const char *bytes, size_t count)
{
    const int error = write_all(to, bytes, count);
    if (to == STDOUT_FILENO && !state.error) state.error = error;
}

/* Output that is made safe, and written one full piece at a time. */
struct output_piece {
    size_t used;
    char at[PIECE_BYTES];
};

static void put(struct output_piece *piece, const char *bytes, size_t count)
{
    if (piece->used + count > sizeof piece->at) {
        standard_output_pass(STDOUT_FILENO, piece->at, piece->used);
        piece->used = 0;
    }
    memcpy(piece->at + piece->used, bytes, count);
    piece->used += count;
}

static void put_escaped(struct output_piece *piece, char byte)
{
    char escaped[PRINTABLE_BYTES_MAX];
    put(piece, escaped, (size_t)printable_escape(byte, escaped));
}

/* Moves whole characters from `begun` to the piece. */
static void put_begun(struct output_piece *piece)
{
    while (state.begun_count > 0) {
        const int bytes = printable_bytes(state.begun, state.begun_count);
        if (bytes == PRINTABLE_BEGUN) return;
        if (bytes > 0)
            put(piece, state.begun, (size_t)bytes);
        else
            put_escaped(piece, state.begun[0]);
        const size_t taken = bytes > 0 ? (size_t)bytes : 1;
        state.begun_count -= taken;
        memmove(state.begun, state.begun + taken, state.begun_count);
    }
}

/* The write function of stdout. Reports success to stdio always. */
static ssize_t take(void *cookie, const char *bytes, size_t count)
{
    struct output_piece piece = {.used = 0};
    log_clear_status();
    for (size_t i = 0; i < count; i++) {
        state.begun[state.begun_count++] = bytes[i];
        put_begun(&piece);
    }
    standard_output_pass(STDOUT_FILENO, piece.at, piece.used);
    return (ssize_t)count;
}

void standard_output_open(void)
{
    FILE *file = fopencookie(NULL, "w", (cookie_io_functions_t){.write = take});
    if (!file) return; /* no memory: the plain stdout stays */
    setvbuf(file, NULL, isatty(STDOUT_FILENO) == 1 ? _IOLBF : _IOFBF, BUFSIZ);
    stdout = file;
}

err standard_output_flush(void)
{
    struct output_piece piece = {.used = 0};
    fflush(stdout);
    for (size_t i = 0; i < state.begun_count; i++) put_escaped(&piece, state.begun[i]);
    state.begun_count = 0;
    standard_output_pass(STDOUT_FILENO, piece.at, piece.used);
    const int error = state.error;
    state.error = 0;
    return error ? fail(ERR_IO, "standard output: %s", strerror(error)) : OK;
}

/* Without memory lines are printed as they are. */
FILE *result_lines_begin(struct result_lines *lines)
{
    *lines = (struct result_lines){.file = stdout};
    FILE *gathered = log_is_json() ? open_memstream(&lines->text, &lines->size) : NULL;
    if (gathered) lines->file = gathered;
    return lines->file;
}

void result_lines_end(struct result_lines *lines)
{
    char *rest = NULL;
    if (lines->file == stdout) {
        fflush(stdout);
        return;
    }
    fclose(lines->file);
    for (char *line = lines->text ? strtok_r(lines->text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        log_asked("%s", line);
    free(lines->text);
}
