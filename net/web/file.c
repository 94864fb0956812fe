/* file.c - a file behind a URL, read by ranges: see web.h.
 *
 * Chunks are contiguous and requested in order: if the next byte is not in the first one, all are
 * dropped. Each time one is used up, twice as many as before are requested at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fingerprint.h"
#include "net/web/web.h"

struct chunk {
    struct web_call call;
    uint64_t at;
    size_t bytes;
    bool is_there;   /* its bytes have come */
    bool is_known;   /* and belong to the version of the file that was opened */
    uint8_t *memory; /* [WEB_CHUNK_BYTES] */
};

struct web_file {
    struct file file; /* first */
    const struct web_service *service;
    char *path, *etag, *shown;
    uint8_t *head; /* [head_bytes] the beginning of the file, or all of it */
    size_t head_bytes;
    struct chunk chunks[WEB_CHUNKS_MAX]; /* circular */
    int first, count, count_max;
    uint64_t next; /* offset of the chunk to request next */
};

static struct chunk *chunk_of(struct web_file *f, int i)
{
    return &f->chunks[(f->first + i) % WEB_CHUNKS_MAX];
}

static void give_up_first(struct web_file *f)
{
    web_call_close(&chunk_of(f, 0)->call);
    f->first = (f->first + 1) % WEB_CHUNKS_MAX;
    f->count--;
}

/* ---- opening ---- */

static err keep_text(const char *from, char **ret)
{
    *ret = strdup(from);
    return *ret ? OK : fail(ERR_MEMORY, "no memory to read %s", from);
}

static err no_ranges(const struct web_file *f)
{
    return fail(ERR_INPUT,
                "%s: its server does not support range requests, and the file has more than %d "
                "MiB, the most that is read whole",
                f->shown, WEB_WHOLE_MAX >> 20);
}

static err no_file(const struct web_file *f, const struct http_call *c)
{
    return fail(ERR_IO, "%s: its server gave no file, or not all of it: %s, %zu bytes", f->shown,
                c->answer.reason, c->answer.bytes);
}

/* For a server without ranges: reads the whole file into memory; said: its size, 0: unknown. */
static err fetch_whole(struct web_file *f, uint64_t said)
{
    struct web_call call;
    const uint64_t bytes = said ? said : WEB_WHOLE_MAX;
    free(f->head);
    f->head = malloc(bytes);
    if (!f->head) return fail(ERR_MEMORY, "%s: no memory to read it", f->shown);
    err e = web_call_open(&call, f->service, "GET", f->path);
    call.http.to = f->head;
    call.http.max = (size_t)bytes;
    if (!e) e = web_call_make(&call, f->service);
    f->head_bytes = call.http.answer.bytes;
    const bool is_all = call.http.answer.status == 200 && (!said || f->head_bytes == said);
    if (!e && call.http.answer.is_cut) e = no_ranges(f);
    if (!e && !is_all) e = no_file(f, &call.http);
    web_call_close(&call);
    return e;
}

/* Learns size and version from the first range; an empty file has no range. */
static err take_first(struct web_file *f, const struct http_call *c)
{
    const bool is_empty = c->answer.status == 416;
    if (c->answer.status >= 300 && !is_empty) return http_refused(c);
    if (c->answer.status < 300 && c->answer.status != 200 && c->answer.status != 206)
        return no_file(f, c);
    if (c->answer.status == 206 && !c->answer.total_bytes)
        return fail(ERR_IO,
                    "%s: its server supports range requests but does not say how large the file is",
                    f->shown);
    f->head_bytes = is_empty ? 0 : c->answer.bytes;
    if (c->answer.is_cut) {
        if (c->answer.total_bytes > WEB_WHOLE_MAX) return no_ranges(f);
        TRY(fetch_whole(f, c->answer.total_bytes));
    }
    f->file.state = (struct file_state){
        .bytes = c->answer.status == 206 ? c->answer.total_bytes : f->head_bytes,
        .changed_s = c->answer.changed_s,
        .identity = c->answer.etag[0] ? fingerprint(c->answer.etag, strlen(c->answer.etag)) : 0,
    };
    return keep_text(c->answer.etag, &f->etag);
}

static err fetch_head(struct web_file *f)
{
    struct web_call call;
    if (f->service->look) return f->service->look(f->path, &f->file.state);
    f->head = malloc(WEB_HEAD_BYTES);
    if (!f->head) return fail(ERR_MEMORY, "%s: no memory to read it", f->shown);
    err e = web_call_open(&call, f->service, "GET", f->path);
    call.http.range_bytes = WEB_HEAD_BYTES;
    call.http.to = f->head;
    call.http.max = WEB_HEAD_BYTES;
    if (!e) e = web_call_start(&call, f->service);
    if (!e) e = http_wait(&call.http);
    if (!e) e = take_first(f, &call.http);
    web_call_close(&call);
    return e;
}

err web_file_open(const struct file_system *system, const char *path, struct file **ret)
{
    char shown[PATH_BYTES_MAX];
    struct web_file *f = calloc(1, sizeof *f);
    if (!f) return fail(ERR_MEMORY, "no memory to read a file");
    f->service = (const struct web_service *)system;
    f->count_max = 1;
    err e = keep_text(path, &f->path);
    if (!e) e = keep_text(path_shown(path, shown), &f->shown);
    f->file = (struct file){.system = system, .name = f->shown};
    if (!e) e = fetch_head(f);
    if (e)
        web_file_close(&f->file);
    else
        *ret = &f->file;
    return e;
}

void web_file_close(struct file *file)
{
    struct web_file *f = (struct web_file *)file;
    while (f->count > 0) give_up_first(f);
    for (int i = 0; i < WEB_CHUNKS_MAX; i++) free(f->chunks[i].memory);
    free(f->head);
    free(f->etag);
    free(f->shown);
    free(f->path);
    free(f);
}

err web_file_state(struct file *file, struct file_state *ret)
{
    *ret = file->state;
    return OK;
}

/* ---- reading ---- */

static err start_chunk(struct web_file *f, struct chunk *c)
{
    if (!c->memory) c->memory = malloc(WEB_CHUNK_BYTES);
    if (!c->memory) return fail(ERR_MEMORY, "%s: no memory to read it", f->shown);
    TRY(web_call_open(&c->call, f->service, "GET", f->path));
    c->is_there = c->is_known = false;
    c->call.http.max = c->bytes;
    c->call.http.to = c->memory;
    if (f->service->range) {
        f->service->range(&c->call, c->at, c->bytes);
    } else {
        c->call.http.range_at = c->at;
        c->call.http.range_bytes = c->bytes;
    }
    return web_call_start(&c->call, f->service);
}

/* Requests as many as allowed, up to offset `end`. */
static err start_chunks(struct web_file *f, uint64_t end)
{
    while (f->count < f->count_max && f->next < end) {
        struct chunk *c = chunk_of(f, f->count);
        c->at = f->next;
        c->bytes = end - f->next < WEB_CHUNK_BYTES ? (size_t)(end - f->next) : WEB_CHUNK_BYTES;
        f->count++;
        f->next += c->bytes;
        TRY(start_chunk(f, c));
    }
    return OK;
}

static err has_changed(const struct web_file *f, const char *how)
{
    return fail(ERR_INPUT, "%s: changed while it is read: %s", f->shown, how);
}

static const char other_file[] = "another file took its place";

/* For a server whose ranges name no version: checks that the file has not changed since. */
static err look_again(struct web_file *f)
{
    const struct file_state *was = &f->file.state;
    struct file_state now;
    for (int i = 0; i < f->count; i++) {
        struct chunk *c = chunk_of(f, i);
        c->is_known = c->is_there || http_is_done(&c->call.http);
    }
    const err e = f->service->look(f->path, &now);
    if (e && errno == ENOENT) return has_changed(f, "it is gone");
    if (e) return e;
    const bool is_same = now.bytes == was->bytes && now.identity == was->identity &&
                         now.changed_s == was->changed_s && now.changed_ns == was->changed_ns;
    return is_same ? OK : has_changed(f, other_file);
}

static err check_plain(struct web_file *f, struct chunk *c)
{
    const struct http_call *h = &c->call.http;
    if (!c->is_known) TRY(look_again(f));
    return h->answer.status >= 300 ? http_refused(h) : OK;
}

static err check_range(const struct web_file *f, const struct chunk *c)
{
    const struct http_call *h = &c->call.http;
    const bool is_other = strcmp(h->answer.etag, f->etag) != 0 ||
                          h->answer.changed_s != f->file.state.changed_s ||
                          h->answer.total_bytes != f->file.state.bytes;
    if (h->answer.status == 404 || h->answer.status == 410 || h->answer.status == 416 ||
        (h->answer.status < 300 && is_other))
        return has_changed(f, h->answer.status < 300 ? other_file : h->answer.reason);
    if (h->answer.status >= 300) return http_refused(h);
    if (h->answer.status == 206) return OK;
    return fail(ERR_IO, "%s: its server gave a range before, and now %s", f->shown,
                h->answer.reason);
}

/* Success means that all requested bytes have come, whatever the answer's headers say. */
static err wait_for(struct web_file *f, struct chunk *c)
{
    const struct http_call *h = &c->call.http;
    if (c->is_there) return OK;
    TRY(http_wait(&c->call.http));
    TRY(f->service->look ? check_plain(f, c) : check_range(f, c));
    c->is_there = h->answer.bytes == c->bytes && !h->answer.is_cut;
    if (c->is_there) return OK;
    return fail(ERR_IO, "%s: asked for %zu bytes from %llu, the answer has %s%zu", f->shown,
                c->bytes, (unsigned long long)c->at, h->answer.is_cut ? "more than " : "",
                h->answer.bytes);
}

/* Drops chunks that end before the offset; if none of the others has it, drops all. */
static void go_to(struct web_file *f, uint64_t offset)
{
    const bool is_inside = f->count > 0 && offset >= chunk_of(f, 0)->at && offset <= f->next;
    while (f->count > 0 && (!is_inside || offset >= chunk_of(f, 0)->at + chunk_of(f, 0)->bytes)) {
        give_up_first(f);
        if (f->count_max < WEB_CHUNKS_MAX) f->count_max *= 2;
    }
    if (f->count > 0 || f->next == offset) return;
    f->count_max = 1;
    f->next = offset;
}

static err read_chunks(struct web_file *f, uint64_t offset, uint64_t end, void *to, size_t max,
                       size_t *ret_bytes)
{
    go_to(f, offset);
    TRY(start_chunks(f, end));
    struct chunk *c = chunk_of(f, 0);
    TRY(wait_for(f, c));
    const size_t at = (size_t)(offset - c->at), left = c->bytes - at;
    *ret_bytes = left < max ? left : max;
    memcpy(to, c->memory + at, *ret_bytes);
    return OK;
}

err web_file_read(struct file *file, uint64_t offset, uint64_t until, void *to, size_t max,
                  size_t *ret_bytes)
{
    struct web_file *f = (struct web_file *)file;
    const uint64_t bytes = f->file.state.bytes;
    *ret_bytes = 0;
    if (offset < f->head_bytes) {
        const size_t left = f->head_bytes - (size_t)offset;
        *ret_bytes = left < max ? left : max;
        memcpy(to, f->head + offset, *ret_bytes);
    }
    if (*ret_bytes > 0 || offset >= bytes || max == 0) return OK;
    const err e =
        read_chunks(f, offset, until > offset && until < bytes ? until : bytes, to, max, ret_bytes);
    while (e && f->count > 0) give_up_first(f);
    return e;
}
