/* write.c - objects are written, copied and removed: see gs_inside.h. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/web/gs/gs_inside.h"
#include "net/web/services.h"

enum { ANSWER_BYTES = 16 << 10, GOES_ON = 308 };

struct part {
    struct web_call call;
    bool is_sent, is_last; /* sent: it is under way */
    uint64_t at;           /* in the file */
    uint8_t *memory;       /* [GS_PART_BYTES] */
    size_t bytes;
    char answer[ANSWER_BYTES];
};

struct gs_writer {
    struct file_writer writer; /* first */
    char *path;
    char session[HTTP_LOCATION_BYTES]; /* the upload's own address, which is secret; "": none */
    struct part parts[2];
    int filled; /* which of them */
    uint64_t at;
};

/* ---- single requests ---- */

static err open_call(struct web_call *c, const char *method, const char *path, const char *part,
                     const char *query)
{
    web_call_begin(c, method, path);
    return gs_address(path, part, query, c);
}

err gs_remove(const char *path)
{
    struct web_call c;
    err e = open_call(&c, "DELETE", path, "", "");
    if (!e) e = web_call_remove(&c, &gs_service);
    web_call_close(&c);
    return e;
}

/* An empty file as one part of two: gcp-storage-emulator breaks at an empty body. */
static void set_empty(struct web_call *c)
{
    static const char parts[] = "--part\r\nContent-Type: application/json\r\n\r\n{}\r\n"
                                "--part\r\nContent-Type: application/octet-stream\r\n\r\n\r\n"
                                "--part--\r\n";
    web_call_body(c, parts, strlen(parts));
    c->http.body_type = "multipart/related; boundary=part";
}

static err put_whole(const char *path, const void *at, size_t bytes)
{
    struct web_call c;
    char answer[ANSWER_BYTES];
    err e =
        open_call(&c, "POST", path, "/upload", bytes ? "uploadType=media" : "uploadType=multipart");
    web_call_body(&c, at, bytes);
    if (!bytes) set_empty(&c);
    c.http.to = answer;
    c.http.max = sizeof answer;
    if (!e) e = web_call_make(&c, &gs_service);
    web_call_close(&c);
    return e;
}

/* ---- a resumable upload ---- */

static err begin_upload(struct gs_writer *w)
{
    struct web_call c;
    char answer[ANSWER_BYTES];
    err e = open_call(&c, "POST", w->path, "/upload", "uploadType=resumable");
    web_call_body(&c, "", 0);
    c.http.to = answer;
    c.http.max = sizeof answer;
    if (!e) e = web_call_make(&c, &gs_service);
    if (!e && !c.http.location[0])
        e = fail(ERR_IO, "%s: the server gave its upload no address", c.http.shown);
    if (!e) snprintf(w->session, sizeof w->session, "%s", c.http.location);
    web_call_close(&c);
    return e;
}

/* A call to the upload itself, whose address proves who asks. */
static void open_session(const struct gs_writer *w, const char *method, struct web_call *c)
{
    web_call_begin(c, method, w->path);
    c->http.url = w->session;
    c->http.keeps_redirect = true;
}

/* What of the part is behind `from`. A try of it that comes twice does no harm: the server leaves
 * what it has. */
static err start_part(struct gs_writer *w, struct part *p, uint64_t from)
{
    const unsigned long long end = p->at + p->bytes;
    const size_t skipped = (size_t)(from - p->at);
    open_session(w, "PUT", &p->call);
    web_call_body(&p->call, p->memory + skipped, p->bytes - skipped);
    p->call.http.to = p->answer;
    p->call.http.max = sizeof p->answer;
    if (p->is_last)
        web_call_header(&p->call, "Content-Range: bytes %llu-%llu/%llu", (unsigned long long)from,
                        end - 1, end);
    else
        web_call_header(&p->call, "Content-Range: bytes %llu-%llu/*", (unsigned long long)from,
                        end - 1);
    p->is_sent = true;
    return http_start(&p->call.http);
}

/* One answer; ret_kept: how much of the file the server has. */
static err take_answer(struct part *p, uint64_t *ret_kept)
{
    const struct http_call *h = &p->call.http;
    TRY(http_wait(&p->call.http));
    if (h->status < 300) *ret_kept = p->at + p->bytes;
    if (h->status == GOES_ON) *ret_kept = h->kept_bytes;
    if (h->status >= 300 && h->status != GOES_ON) return http_refused(h);
    const bool is_done = h->status < 300;
    if (is_done != p->is_last && (is_done || *ret_kept >= p->at + p->bytes))
        return fail(ERR_IO, "%s: the upload %s: %s", h->shown,
                    is_done ? "ended before its last part" : "does not end with its last part",
                    h->reason);
    if (*ret_kept < p->at || *ret_kept > p->at + p->bytes)
        return fail(ERR_IO, "%s: of bytes %llu to %llu the server has %llu", h->shown,
                    (unsigned long long)p->at, (unsigned long long)(p->at + p->bytes),
                    (unsigned long long)*ret_kept);
    return OK;
}

/* Until the server has all of the part. */
static err wait_part(struct gs_writer *w, struct part *p)
{
    uint64_t kept = 0;
    err e = OK;
    for (int i = 0; !e && p->is_sent && i < GS_RESUMES_MAX; i++) {
        e = take_answer(p, &kept);
        web_call_close(&p->call);
        p->is_sent = false;
        if (!e && kept < p->at + p->bytes) e = start_part(w, p, kept);
    }
    if (!e && p->is_sent)
        e = fail(ERR_IO, "%s: the server does not take the part at byte %llu", w->path,
                 (unsigned long long)p->at);
    return e;
}

static err send_part(struct gs_writer *w, bool is_last)
{
    struct part *p = &w->parts[w->filled], *other = &w->parts[!w->filled];
    if (!w->session[0]) TRY(begin_upload(w));
    TRY(wait_part(w, other));
    other->bytes = 0;
    p->at = w->at;
    p->is_last = is_last;
    w->at += p->bytes;
    w->filled = !w->filled;
    return start_part(w, p, p->at);
}

/* ---- a file that is written ---- */

err gs_create(const struct file_system *system, const char *path, struct file_writer **ret)
{
    struct gs_writer *w = calloc(1, sizeof *w);
    if (w) w->path = strdup(path);
    if (!w || !w->path) {
        free(w);
        return fail(ERR_MEMORY, "no memory to write a file");
    }
    w->writer.system = system;
    *ret = &w->writer;
    return OK;
}

/* A full part is sent when more comes: the last one says that it is the last. */
err gs_write(struct file_writer *writer, const void *from, size_t bytes)
{
    struct gs_writer *w = (struct gs_writer *)writer;
    const uint8_t *at = from;
    while (bytes > 0) {
        if (w->parts[w->filled].bytes == GS_PART_BYTES) TRY(send_part(w, false));
        struct part *p = &w->parts[w->filled];
        if (!p->memory) p->memory = malloc(GS_PART_BYTES);
        if (!p->memory) return fail(ERR_MEMORY, "no memory to write %s", w->path);
        const size_t room = GS_PART_BYTES - p->bytes, now = bytes < room ? bytes : room;
        memcpy(p->memory + p->bytes, at, now);
        p->bytes += now;
        at += now;
        bytes -= now;
    }
    return OK;
}

err gs_finish(struct file_writer *writer)
{
    struct gs_writer *w = (struct gs_writer *)writer;
    struct part *p = &w->parts[w->filled];
    if (!w->session[0]) return put_whole(w->path, p->memory, p->bytes);
    TRY(send_part(w, true));
    TRY(wait_part(w, p));
    w->session[0] = '\0';
    return OK;
}

/* Also where it failed: the server need not keep what was sent. */
static void drop_session(const struct gs_writer *w)
{
    struct web_call c;
    if (!w->session[0]) return;
    char said[ERROR_TEXT_MAX]; /* of what went wrong before */
    snprintf(said, sizeof said, "%s", error_text());
    open_session(w, "DELETE", &c);
    if (!http_start(&c.http)) (void)http_wait(&c.http);
    web_call_close(&c);
    (void)fail(ERR_IO, "%s", said);
}

void gs_drop(struct file_writer *writer)
{
    struct gs_writer *w = (struct gs_writer *)writer;
    for (int i = 0; i < 2; i++) {
        if (w->parts[i].is_sent) web_call_close(&w->parts[i].call);
        free(w->parts[i].memory);
    }
    drop_session(w);
    free(w->path);
    free(w);
}

/* ---- a copy, made by the server ---- */

/* ret: where the copy goes on; "": it is done. */
static err take_rewrite(const struct http_call *h, char ret[WEB_TOKEN_BYTES])
{
    json_t *answer = json_loadb(h->to, h->bytes, 0, NULL);
    const char *token = json_string_value(json_object_get(answer, "rewriteToken"));
    const bool is_done = json_is_true(json_object_get(answer, "done"));
    const bool fits = token && strlen(token) < WEB_TOKEN_BYTES;
    ret[0] = '\0';
    if (!is_done && fits) strcpy(ret, token);
    json_decref(answer);
    return is_done || ret[0] ? OK : fail(ERR_IO, "%s: the server answered no copy", h->shown);
}

static err rewrite(const char *from, const char *to, char token[WEB_TOKEN_BYTES])
{
    struct web_call c = {0};
    char answer[ANSWER_BYTES], bucket[BUCKET_BYTES_MAX];
    const char *key = "";
    TRY(web_split(to, bucket, &key));
    const char *part =
        arena_format(&c.arena, "/rewriteTo/b/%s/o/%s", web_escape(&c.arena, bucket, false),
                     web_escape(&c.arena, key, false));
    const char *query = arena_format(&c.arena, "%s%s", *token ? "rewriteToken=" : "",
                                     web_escape(&c.arena, token, false));
    struct web_call call;
    err e = open_call(&call, "POST", from, part, query);
    web_call_body(&call, "", 0);
    call.http.to = answer;
    call.http.max = sizeof answer;
    if (!e) e = web_call_make(&call, &gs_service);
    if (!e) e = take_rewrite(&call.http, token);
    web_call_close(&call);
    web_call_close(&c);
    return e;
}

err gs_move(const char *from, const char *to)
{
    char token[WEB_TOKEN_BYTES] = "";
    for (int i = 0; i < GS_REWRITES_MAX; i++) {
        TRY(rewrite(from, to, token));
        if (!token[0]) return gs_remove(from);
    }
    return fail(ERR_IO, "%s: its copy does not end", to);
}
