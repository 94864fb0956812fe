/* record.c - see record.h: writing. */
#include "core/cluster/runner/record_inside.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/own.h"
#include "core/base/log.h"

enum { ROWS_KEPT = 1024 };
/* O_NONBLOCK: opening a pipe does not wait for a reader. */
enum { HOW = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };

struct record {
    int fd; /* -1: it has ended */
    int count;
    uint32_t rows[ROWS_KEPT][RECORD_NUMBERS];
    char path[RECORD_PATH_MAX];
};

err record_path(const char *path, int ps, char ret[RECORD_PATH_MAX])
{
    if (snprintf(ret, RECORD_PATH_MAX, "%s.ps-%d", path, ps) < RECORD_PATH_MAX) return OK;
    return fail(ERR_INPUT, "the record %.64s...: too long a path", path);
}

/* Refuses files that are not records. Cuts off an incomplete last row of a ps that was killed. */
static err look_at(const struct record *r)
{
    enum { ROW_BYTES = sizeof r->rows[0] };
    struct stat found;
    uint32_t row[RECORD_NUMBERS];
    if (fstat(r->fd, &found)) return fail(ERR_INPUT, "--record: %s: %s", r->path, strerror(errno));
    if (!S_ISREG(found.st_mode)) return fail(ERR_INPUT, "--record: %s is no file", r->path);
    if (!found.st_size) return OK;
    if (pread(r->fd, row, sizeof row, 0) != (ssize_t)sizeof row ||
        le32toh(row[0]) >> 24 != RECORD_SECTION)
        return fail(ERR_INPUT,
                    "--record: %s is there, and is no record: give another path, or take it away",
                    r->path);
    const off_t whole = found.st_size - found.st_size % ROW_BYTES;
    if (whole == found.st_size || !ftruncate(r->fd, whole)) return OK;
    return fail(ERR_INPUT, "--record: cannot write %s: %s", r->path, strerror(errno));
}

err record_open(const char *path, int ps, struct record **ret)
{
    struct record *r = calloc(1, sizeof *r);
    if (!r) return fail(ERR_MEMORY, "no memory for a record");
    err e = record_path(path, ps, r->path);
    r->fd = e ? -1 : open(r->path, HOW, 0666);
    if (!e && r->fd < 0)
        e = fail(ERR_INPUT, "--record: cannot write %s: %s", r->path, strerror(errno));
    if (!e) e = look_at(r);
    if (!e) {
        *ret = r;
        return OK;
    }
    if (r->fd >= 0) close(r->fd);
    free(r);
    return e;
}

static void give_up(struct record *r, const char *why)
{
    log_line(LOG_WARNING, "the record %s ends here: %s", r->path, why);
    close(r->fd);
    r->fd = -1;
}

void record_flush(struct record *r)
{
    const size_t bytes = (size_t)r->count * sizeof r->rows[0];
    r->count = 0;
    if (r->fd >= 0 && !own_write(r->fd, r->rows, bytes)) give_up(r, strerror(errno));
}

static void add(struct record *r, const uint32_t row[RECORD_NUMBERS])
{
    if (r->fd < 0) return;
    for (int i = 0; i < RECORD_NUMBERS; i++) r->rows[r->count][i] = htole32(row[i]);
    if (++r->count == ROWS_KEPT) record_flush(r);
}

static void add_numbers(struct record *r, uint64_t a, uint64_t b)
{
    const uint32_t row[RECORD_NUMBERS] = {(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b,
                                          (uint32_t)(b >> 32)};
    add(r, row);
}

void record_begin(struct record *r, const struct record_section *s)
{
    const uint32_t first[RECORD_NUMBERS] = {(uint32_t)RECORD_SECTION << 24 | RECORD_VERSION,
                                            (uint32_t)s->ps, (uint32_t)s->ps_count,
                                            (uint32_t)s->workers};
    add(r, first);
    add_numbers(r, s->generation, s->step);
    uint64_t factor;
    memcpy(&factor, &s->rate_factor, sizeof factor);
    add_numbers(r, s->spec, factor);
}

/* How many updates back; RECORD_NONE: none, or too many for 32 bits. */
static uint32_t behind(uint64_t applied, uint64_t at)
{
    return at == TURN_NOTHING || at > applied || applied - at >= RECORD_NONE
               ? RECORD_NONE
               : (uint32_t)(applied - at);
}

void record_add(struct record *r, const struct turn *turn, uint64_t applied)
{
    if (r->fd >= 0 && turn->batch > UINT32_MAX) give_up(r, "it has no room for such a batch");
    const uint32_t row[RECORD_NUMBERS] = {
        (uint32_t)(turn->kind | (turn->asks_rows ? RECORD_ASKED : 0)) << 24 |
            ((uint32_t)turn->worker & 0xffffff),
        behind(applied, turn->values), behind(applied, turn->rows), (uint32_t)turn->batch};
    add(r, row);
}

void record_close(struct record *r)
{
    if (!r) return;
    record_flush(r);
    if (r->fd >= 0) close(r->fd);
    free(r);
}
