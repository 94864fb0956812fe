/* http.c - see http.h. */
#include "cmd/run/http.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/run/page.h"
#include "cmd/status/rules.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/log_kept.h"
#include "core/cluster/runner/board.h"
#include "net/http_server.h"

enum { TASKS_MAX = 4096 }; /* in /status.json */

struct task_http {
    const struct run *run;
    struct board *board;
    struct http_server *server; /* NULL: none */
    uint64_t opened_ms;
};

static void say(struct http_reply *r, int status, const char *text)
{
    r->status = status;
    r->body = strdup(text);
    r->body_bytes = strlen(text);
}

/* ---- requests ---- */

static void answer_metrics(const struct task_http *h, struct http_reply *r)
{
    int count;
    struct task_status *own = board_copy(h->board, true, &count);
    FILE *out = own ? open_memstream(&r->body, &r->body_bytes) : NULL;
    if (out) counters_write_text(out, own, count);
    if (out && fclose(out)) {
        free(r->body);
        r->body = NULL;
    }
    free(own);
    r->type = "text/plain; version=0.0.4; charset=utf-8";
}

/* Healthy before the loop's first turn: the task may still be reading data. */
static void answer_health(const struct task_http *h, struct http_reply *r)
{
    const uint64_t turned_ms = board_turned_ms(h->board), now_ms = clock_ms(),
                   since_ms = turned_ms ? turned_ms : h->opened_ms;
    char text[160];
    if (!turned_ms || now_ms < since_ms + h->run->flags.limits.step_ms) {
        say(r, 200, turned_ms ? "ok\n" : "ok: it starts\n");
        return;
    }
    snprintf(text, sizeof text,
             "the loop of this task has not turned for %llu s (--step_timeout)\n",
             (unsigned long long)(now_ms - since_ms) / 1000);
    say(r, 503, text);
}

static void answer_ready(const struct task_http *h, struct http_reply *r)
{
    int count;
    char text[STATUS_STATE_MAX + STATUS_NAME_MAX + 32] = "not ready: it starts\n";
    struct task_status *own = board_copy(h->board, true, &count);
    bool is_ready = count > 0;
    for (int i = 0; own && i < count && is_ready; i++) {
        is_ready = own[i].is_stepping;
        snprintf(text, sizeof text, "not ready: %s: %s\n", own[i].task, own[i].state);
    }
    free(own);
    say(r, is_ready ? 200 : 503, is_ready ? "ready\n" : text);
}

/* Findings by the rules of `dtrain status`, from what this task knows: ps/0 does not hear of other
 * ps. NULL: no memory */
static json_t *find(const struct task_http *h)
{
    int count;
    struct task_status *tasks = board_copy(h->board, false, &count);
    struct finding *findings = calloc(FINDINGS_MAX, sizeof *findings);
    const struct job_facts facts = {
        .tasks = tasks, .count = count, .now_ms = clock_ms(), .unix_s = clock_unix_s()};
    json_t *found =
        tasks && findings ? findings_json(findings, rules_apply(&facts, findings)) : NULL;
    free(findings);
    free(tasks);
    return found;
}

/* Takes ownership of the text; NULL: no memory */
static void give_json(struct http_reply *r, char *text)
{
    r->body = text;
    r->body_bytes = text ? strlen(text) : 0;
    r->type = "application/json";
}

static void answer_status(const struct task_http *h, struct http_reply *r)
{
    json_t *status = board_json(h->board, false, 0, TASKS_MAX, clock_ms());
    if (status) json_object_set_new(status, "findings", find(h));
    give_json(r, json_dumps(status, JSON_PRESERVE_ORDER | JSON_COMPACT | JSON_REAL_PRECISION(9)));
    json_decref(status);
}

/* Log lines of this process, in which several tasks may run. */
static void answer_logs(const struct task_http *h, struct http_reply *r)
{
    enum { LINES_SHOWN = 100 };
    json_t *lines = log_kept_json(0, LINES_SHOWN);
    (void)h;
    give_json(r, json_dumps(lines, JSON_PRESERVE_ORDER | JSON_COMPACT));
    json_decref(lines);
}

static void answer_placement(const struct task_http *h, struct http_reply *r)
{
    char *known = board_placement(h->board);
    give_json(r, known ? known : strdup("{\"variables\":[],\"left_out\":0}"));
}

static void answer_page(const struct task_http *h, struct http_reply *r)
{
    r->type = "text/html; charset=utf-8";
    r->body = malloc(page_bytes);
    r->body_bytes = page_bytes;
    if (r->body) memcpy(r->body, page_html, page_bytes);
}

static const struct {
    const char *path;
    void (*answer)(const struct task_http *, struct http_reply *);
} pages[] = {
    {"/", answer_page},
    {"/metrics", answer_metrics},
    {"/healthz", answer_health},
    {"/readyz", answer_ready},
    {"/status.json", answer_status},
    {"/logs.json", answer_logs},
    {"/placement.json", answer_placement},
};

static void handle(void *context, const struct http_request *request, struct http_reply *r)
{
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        if (strcmp(pages[i].path, request->path) == 0) {
            pages[i].answer(context, r);
            return;
        }
    say(r, 404,
        "there are /, /metrics, /healthz, /readyz, /status.json, /logs.json and /placement.json\n");
}

/* ---- life ---- */

static err serve(struct task_http *h)
{
    const struct http_server_options options = {
        .address = h->run->flags.listening.http, .handle = handle, .context = h};
    const err e = http_server_open(&options, &h->server);
    if (e) return fail_prefix(e, "--http");
    log_line(LOG_INFO,
             "answers HTTP at port %d: /, /metrics, /healthz, /readyz, /status.json, /logs.json, "
             "/placement.json",
             http_server_port(h->server));
    return OK;
}

err task_http_open(const struct run *run, struct task_http **ret)
{
    struct task_http *h = calloc(1, sizeof *h);
    if (!h) return fail(ERR_MEMORY, "no memory for counters");
    *h = (struct task_http){.run = run, .opened_ms = clock_ms()};
    err e = board_open(&h->board);
    if (!e && run->flags.listening.http) e = serve(h);
    if (e)
        task_http_close(h);
    else
        *ret = h;
    return e;
}

void task_http_close(struct task_http *h)
{
    if (!h) return;
    http_server_close(h->server);
    board_close(h->board);
    free(h);
}

struct board *task_http_board(const struct task_http *h)
{
    return h ? h->board : NULL;
}

int task_http_port(const struct task_http *h)
{
    return h && h->server ? http_server_port(h->server) : 0;
}
