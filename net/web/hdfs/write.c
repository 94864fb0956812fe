/* write.c - files of Hadoop are written, renamed and removed: see hdfs_inside.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fingerprint.h"
#include "core/base/random.h"
#include "net/web/hdfs/hdfs_inside.h"

enum { ANSWER_BYTES = 1024 };

struct part {
    struct web_call call;
    bool is_sent;    /* it is under way */
    uint64_t at;     /* in the file */
    uint8_t *memory; /* [HDFS_PART_BYTES] */
    size_t bytes;
    char answer[ANSWER_BYTES];
};

struct hdfs_writer {
    struct file_writer writer; /* first */
    char *path, *spare;        /* its name once it is whole, and until then */
    bool has_spare;            /* something of it may be there */
    struct part parts[2];
    int filled; /* which of them */
    uint64_t at;
};

static const char create[] = "op=CREATE&overwrite=true", append[] = "op=APPEND";

/* ---- names ---- */

/* The server, as a number, whose renames replace what has the name; 0: none has shown it yet. */
static _Atomic uint64_t replacing;

static uint64_t server_of(const char *path)
{
    const char *host = strstr(path, "://") + 3;
    return fingerprint(host, strcspn(host, "/"));
}

static err remove_name(const char *path)
{
    struct hdfs_answer answer;
    const err e = hdfs_ask("DELETE", path, "op=DELETE&recursive=false", &answer);
    json_decref(answer.root);
    return e && errno == ENOENT ? OK : e;
}

/* The part of a URL that is the server's path */
static const char *path_there(const char *path)
{
    const char *host = strstr(path, "://") + 3;
    return host + strcspn(host, "/");
}

/* more: "", or "&" and what else is asked for. A name node that takes options answers nothing, and
 * has done it; others say whether they have. */
static err rename_once(const char *from, const char *to, const char *more, bool *ret_done)
{
    struct arena arena = {0};
    struct hdfs_answer answer;
    const char *operation = arena_format(&arena, "op=RENAME&destination=%s%s",
                                         web_escape(&arena, path_there(to), true), more);
    const err e = hdfs_ask("PUT", from, operation, &answer);
    const json_t *said = json_object_get(answer.root, "boolean");
    *ret_done = !e && !json_is_false(said);
    if (!e && *more && !answer.root) atomic_store(&replacing, server_of(from));
    json_decref(answer.root);
    arena_free(&arena);
    return e;
}

/* Of a rename whose answer was lost: the name is that very file's. */
static bool has_name(const char *path, const struct file_state *of)
{
    char said[ERROR_TEXT_MAX];
    struct file_state now;
    snprintf(said, sizeof said, "%s", error_text());
    const bool is_it = !hdfs_look(path, &now) && now.bytes == of->bytes &&
                       now.identity == of->identity && now.changed_s == of->changed_s &&
                       now.changed_ns == of->changed_ns;
    if (!is_it) (void)fail(ERR_IO, "%s", said);
    return is_it;
}

/* The name must be free. */
static err rename_file(const char *from, const char *to, const struct file_state *state)
{
    bool is_done;
    const err e = rename_once(from, to, "", &is_done);
    if (is_done || has_name(to, state)) return OK;
    return e ? e : fail(ERR_IO, "%s: the server does not rename it to %s", from, to);
}

static err spare_name(const char *path, uint64_t number, char **ret)
{
    if (asprintf(ret, "%s" HDFS_SPARE "%llu", path, (unsigned long long)number) < 0) *ret = NULL;
    return *ret ? OK : fail(ERR_MEMORY, "no memory for the name of a file");
}

/* With what a life left that ended between two of the three steps, which a server that replaces
 * does not need: else it would get the name once that is free. */
err hdfs_remove(const char *path)
{
    char *whole = NULL;
    if (atomic_load(&replacing) == server_of(path)) return remove_name(path);
    TRY(spare_name(path, 0, &whole));
    err e = remove_name(whole);
    if (!e) e = remove_name(path);
    free(whole);
    return e;
}

/* What is left of the three steps where the last one is missing. */
bool hdfs_recover(const char *path)
{
    char *whole = NULL;
    bool is_done = false;
    struct file_state state;
    if (spare_name(path, 0, &whole)) return false;
    if (!hdfs_find(whole, &state)) (void)rename_once(whole, path, "", &is_done);
    free(whole);
    return is_done;
}

static err move_in_steps(const char *from, const char *to, const struct file_state *state)
{
    struct file_state old;
    char *whole = NULL;
    TRY(hdfs_look(to, &old)); /* what cannot be renamed for another reason stays as it is */
    TRY(spare_name(to, 0, &whole));
    err e = remove_name(whole);
    if (!e) e = rename_file(from, whole, state);
    if (!e) e = remove_name(to);
    if (!e) e = rename_file(whole, to, state);
    free(whole);
    return e;
}

err hdfs_move(const char *from, const char *to)
{
    struct file_state state;
    bool is_done;
    TRY(hdfs_look(from, &state));
    const err e = rename_once(from, to, "&renameoptions=OVERWRITE", &is_done);
    if (is_done || has_name(to, &state)) return OK;
    return e ? e : move_in_steps(from, to, &state);
}

/* ---- parts ---- */

static err start_part(struct hdfs_writer *w, struct part *p, uint64_t from)
{
    const size_t skipped = (size_t)(from - p->at);
    struct web_call *c = &p->call;
    w->has_spare = p->bytes > 0; /* an empty file is whole at once */
    web_call_begin(c, from ? "POST" : "PUT", w->path);
    const err e = hdfs_address(w->has_spare ? w->spare : w->path, from ? append : create, c);
    if (e) {
        web_call_close(c);
        return e;
    }
    web_call_body(c, p->memory + skipped, p->bytes - skipped);
    c->http.body_waits = true;
    c->http.is_once = from > 0;
    c->http.to = p->answer;
    c->http.max = sizeof p->answer;
    p->is_sent = true;
    return http_start(&c->http);
}

static err take_answer(struct part *p)
{
    const struct http_call *h = &p->call.http;
    const err e = http_wait(&p->call.http);
    const err refused = !e && h->status >= 300 ? hdfs_refused(h) : e;
    web_call_close(&p->call);
    p->is_sent = false;
    return refused;
}

/* How much of the file is there, where nobody said that all is */
static err find_kept(const struct hdfs_writer *w, const struct part *p, uint64_t *ret)
{
    struct file_state state;
    TRY(hdfs_look(w->spare, &state));
    *ret = state.bytes;
    if (state.bytes >= p->at && state.bytes <= p->at + p->bytes) return OK;
    return fail(ERR_IO, "%s: of bytes %llu to %llu the server has %llu", w->path,
                (unsigned long long)p->at, (unsigned long long)(p->at + p->bytes),
                (unsigned long long)state.bytes);
}

/* Until the server has all of the part. */
static err wait_part(struct hdfs_writer *w, struct part *p)
{
    err e = OK;
    for (int i = 1; p->is_sent && i <= HDFS_SENDS_MAX; i++) {
        uint64_t kept = 0;
        e = take_answer(p);
        if (e != ERR_IO || p->at == 0 || i == HDFS_SENDS_MAX) return e;
        http_pause(i);
        TRY(find_kept(w, p, &kept));
        if (kept == p->at + p->bytes) return OK;
        TRY(start_part(w, p, kept));
    }
    return e;
}

static err send_part(struct hdfs_writer *w)
{
    struct part *p = &w->parts[w->filled], *other = &w->parts[!w->filled];
    TRY(wait_part(w, other));
    other->bytes = 0;
    p->at = w->at;
    w->at += p->bytes;
    w->filled = !w->filled;
    return start_part(w, p, p->at);
}

/* ---- a file that is written ---- */

err hdfs_create(const struct file_system *system, const char *path, struct file_writer **ret)
{
    struct hdfs_writer *w = calloc(1, sizeof *w);
    const uint64_t number = random_u64((uint64_t)getpid(), clock_ns()) | 1; /* 0 is for a step */
    if (w) w->path = strdup(path);
    if (!w || !w->path || spare_name(path, number, &w->spare)) {
        if (w) free(w->path);
        free(w);
        return fail(ERR_MEMORY, "no memory to write a file");
    }
    w->writer.system = system;
    *ret = &w->writer;
    return OK;
}

err hdfs_write(struct file_writer *writer, const void *from, size_t bytes)
{
    struct hdfs_writer *w = (struct hdfs_writer *)writer;
    const uint8_t *at = from;
    while (bytes > 0) {
        if (w->parts[w->filled].bytes == HDFS_PART_BYTES) TRY(send_part(w));
        struct part *p = &w->parts[w->filled];
        if (!p->memory) p->memory = malloc(HDFS_PART_BYTES);
        if (!p->memory) return fail(ERR_MEMORY, "no memory to write %s", w->path);
        const size_t room = HDFS_PART_BYTES - p->bytes, now = bytes < room ? bytes : room;
        memcpy(p->memory + p->bytes, at, now);
        p->bytes += now;
        at += now;
        bytes -= now;
    }
    return OK;
}

err hdfs_finish(struct file_writer *writer)
{
    struct hdfs_writer *w = (struct hdfs_writer *)writer;
    TRY(send_part(w));
    TRY(wait_part(w, &w->parts[!w->filled]));
    if (w->has_spare) TRY(hdfs_move(w->spare, w->path));
    w->has_spare = false;
    return OK;
}

/* Also where it failed: nobody else removes it. */
static void drop_spare(const struct hdfs_writer *w)
{
    char said[ERROR_TEXT_MAX]; /* of what went wrong before */
    if (!w->has_spare) return;
    snprintf(said, sizeof said, "%s", error_text());
    (void)remove_name(w->spare);
    (void)fail(ERR_IO, "%s", said);
}

void hdfs_drop(struct file_writer *writer)
{
    struct hdfs_writer *w = (struct hdfs_writer *)writer;
    for (int i = 0; i < 2; i++) {
        if (w->parts[i].is_sent) web_call_close(&w->parts[i].call);
        free(w->parts[i].memory);
    }
    drop_spare(w);
    free(w->spare);
    free(w->path);
    free(w);
}
