/* upload.c - see upload.h. */
#include "net/web/upload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

err upload_create(const struct file_system *system, const char *path, struct file_writer **ret)
{
    const struct upload_way *way = ((const struct web_service *)system)->upload;
    struct upload *u = calloc(1, way->writer_bytes);
    if (u) u->path = strdup(path);
    if (!u || !u->path) {
        free(u);
        return fail(ERR_MEMORY, "no memory to write a file");
    }
    u->writer.system = system;
    u->way = way;
    *ret = &u->writer;
    return OK;
}

/* The next part to send, or the one `ahead` parts later */
static struct upload_part *part_of(struct upload *u, int ahead)
{
    return &u->parts[(u->sent + ahead) % u->way->parts];
}

void upload_close_part(struct upload_part *p)
{
    if (p->is_sent) web_call_close(&p->call);
    p->is_sent = false;
}

err upload_start_part(struct upload *u, struct upload_part *p, uint64_t from)
{
    p->is_sent = true;
    const err e = u->way->start(u, p, from);
    if (e) upload_close_part(p);
    return e;
}

/* Waits until the part is sent; then its memory can be reused. */
static err wait_part(struct upload *u, struct upload_part *p)
{
    const err e = p->is_sent ? u->way->wait(u, p) : OK;
    upload_close_part(p);
    p->bytes = 0;
    return e;
}

static err send_part(struct upload *u, bool is_last)
{
    struct upload_part *p = part_of(u, 0);
    if (u->sent == 0 && u->way->begin) TRY(u->way->begin(u));
    if (u->way->in_order) TRY(wait_part(u, part_of(u, u->way->parts - 1)));
    p->number = u->sent + 1;
    p->at = u->at;
    p->is_last = is_last;
    TRY(upload_start_part(u, p, p->at));
    u->sent++;
    u->at += p->bytes;
    return wait_part(u, part_of(u, 0)); /* its memory is filled next */
}

static err make_room(const struct upload *u, struct upload_part *p)
{
    const struct upload_way *way = u->way;
    const int larger = way->parts_of_a_size ? (u->sent + 1) / way->parts_of_a_size : 0;
    const size_t wanted = way->part_bytes * (1 + (size_t)larger);
    if (p->bytes > 0 || p->bytes_max == wanted) return OK;
    free(p->memory);
    p->memory = malloc(wanted);
    p->bytes_max = p->memory ? wanted : 0;
    return p->memory ? OK : fail(ERR_MEMORY, "no memory to write %s", u->path);
}

err upload_write(struct file_writer *writer, const void *from, size_t bytes)
{
    struct upload *u = (struct upload *)writer;
    const uint8_t *at = from;
    while (bytes > 0) {
        struct upload_part *p = part_of(u, 0);
        TRY(make_room(u, p));
        const size_t room = p->bytes_max - p->bytes, now = bytes < room ? bytes : room;
        if (now == 0) {
            TRY(send_part(u, false));
            continue;
        }
        memcpy(p->memory + p->bytes, at, now);
        p->bytes += now;
        at += now;
        bytes -= now;
    }
    return OK;
}

err upload_finish(struct file_writer *writer)
{
    struct upload *u = (struct upload *)writer;
    if (u->sent == 0 && u->way->whole) return u->way->whole(u, part_of(u, 0));
    TRY(send_part(u, true));
    for (int i = 0; i < u->way->parts; i++) TRY(wait_part(u, part_of(u, i)));
    return u->way->end(u);
}

void upload_drop(struct file_writer *writer)
{
    struct upload *u = (struct upload *)writer;
    char said[ERROR_TEXT_MAX]; /* the earlier error */
    for (int i = 0; i < u->way->parts; i++) {
        upload_close_part(&u->parts[i]);
        free(u->parts[i].memory);
    }
    snprintf(said, sizeof said, "%s", error_text());
    u->way->drop(u);
    (void)fail(ERR_IO, "%s", said);
    free(u->path);
    free(u);
}
