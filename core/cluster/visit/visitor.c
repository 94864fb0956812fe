/* visitor.c - see visitor.h. */
#include "core/cluster/visit/visitor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/visit/ask.h"
#include "core/cluster/visit/body.h"
#include "net/transport.h"

enum {
    RETRY_MS = 100,         /* between two attempts to connect to one ps */
    REFUSED_RETRY_MS = 500, /* after refusal by a ps that has no place */
    LOOK_MS = 50,           /* between two checks of what is due */
    WELCOME_MS = 10000,     /* for WELCOME: behind a proxy the ps may have moved */
};

/* One ps, and the request to it. */
struct host {
    struct visitor *visitor;
    int index;
    struct link *link;      /* NULL: not connected */
    bool is_up;             /* WELCOME has come */
    uint64_t up_ms;         /* when */
    uint64_t opened_ms;     /* when the link was opened; 0: it is not */
    bool is_asked, is_lost; /* lost: during a request */
    uint64_t retry_ms;
    uint64_t ask; /* number of the last one */
    json_t *answer;
    char trouble[ADDRESS_MAX];
};

struct visitor {
    struct visitor_options options;
    struct host *hosts;
    int room;          /* ps that may take part */
    int count, active; /* active: how many of these take part, as far as known */
    struct membership membership;
    struct visitor_verdict verdict;
    err refusal;
    char refusal_text[ERROR_TEXT_MAX];
};

static void take_back(struct host *host)
{
    json_decref(host->answer);
    host->answer = NULL;
    host->is_asked = host->is_lost = false;
}

/* Drops the link; why: for people. */
static void lose(struct host *host, const char *why)
{
    snprintf(host->trouble, sizeof host->trouble, "%s", why);
    host->is_lost = host->is_asked && !host->answer;
    /* A ps that restarts, as at a resize, is retried at once. */
    const bool has_lived = host->is_up && clock_ms() - host->up_ms >= RETRY_MS;
    host->retry_ms = has_lived ? 0 : clock_ms() + RETRY_MS;
    host->is_up = false;
    host->link = NULL;
}

/* Its current address */
static const char *address_of(const struct host *host, char ret[ADDRESS_MAX])
{
    const struct visitor_options *o = &host->visitor->options;
    if (o->cluster)
        cluster_find(o->cluster, JOB_PS, host->index, ret);
    else
        snprintf(ret, ADDRESS_MAX, "%s", o->ps_hosts->at[host->index]);
    return ret;
}

/* Refused for good: retrying would not help. */
static void give_up(struct host *host, err e)
{
    struct visitor *v = host->visitor;
    char address[ADDRESS_MAX];
    v->refusal = e;
    snprintf(v->refusal_text, sizeof v->refusal_text, "ps/%d at %s: %s", host->index,
             address_of(host, address), error_text());
    link_close(host->link);
    lose(host, error_text());
}

/* Refused for now: retried later. */
static void look_again(struct host *host, const char *why)
{
    link_close(host->link);
    lose(host, why);
    host->retry_ms = clock_ms() + REFUSED_RETRY_MS;
}

static const char silent[] = "somebody listens, and has not answered as a ps does";
static const char hung_up[] = "closed the connection before it said which ps it is: is that the "
                              "address of a ps, and not of a worker?";

static void on_opened(void *context, struct link *link)
{
    struct host *host = context;
    host->opened_ms = clock_ms();
    const err e = greeting_send_visitor(link);
    snprintf(host->trouble, sizeof host->trouble, "%s", e ? error_text() : silent);
}

static void take_membership(struct visitor *v, const struct membership *membership)
{
    if (v->membership.count[JOB_PS] && membership->resizes < v->membership.resizes) return;
    v->membership = *membership;
    v->active = v->count < membership->count[JOB_PS] ? v->count : membership->count[JOB_PS];
}

/* Whether the list has all ps that take part, or all that may. */
static bool is_of_list(const struct visitor *v, const struct welcome *w)
{
    const int named = v->options.ps_hosts->count;
    return v->options.any_count || named == w->membership.count[JOB_PS] || v->room == w->room;
}

/* Ps that do not take part are not waited for. */
static void welcome(struct host *host, const struct message *m)
{
    struct visitor *v = host->visitor;
    struct welcome w;
    err e = greeting_read_welcome(m, &w);
    if (!e && !is_of_list(v, &w))
        e = fail(ERR_INPUT, "the cluster has %d ps, --ps_hosts names %d",
                 w.membership.count[JOB_PS], v->options.ps_hosts->count);
    const bool is_another = !e && w.ps != host->index;
    if (is_another) e = fail(ERR_INPUT, "it is ps/%d, at another place of --ps_hosts", w.ps);
    const bool is_found = v->options.cluster && v->options.cluster->find;
    if (is_another && is_found) /* the address is out of date */
        look_again(host, error_text());
    else if (e)
        give_up(host, e);
    else
        host->is_up = true;
    host->up_ms = clock_ms();
    if (!e) take_membership(v, &w.membership);
}

static void refused(struct host *host, const struct message *m)
{
    char text[ACTION_TEXT_MAX];
    message_text(m, text);
    if (m->refused.exit_code == EXIT_INPUT) {
        give_up(host, fail(ERR_INPUT, "%s", text));
        return;
    }
    look_again(host, text);
}

static void answered(struct host *host, const struct message *m)
{
    if (!host->is_asked || m->answer.number != host->ask || host->answer) return;
    host->answer = visit_body_answer(m->body, m->body_bytes);
    if (!host->answer) give_up(host, fail(ERR_PROTOCOL, "an invalid answer"));
}

static void ended(struct visitor *v, const struct message *m)
{
    if (v->verdict.has_come) return;
    v->verdict.has_come = true;
    v->verdict.code = message_verdict(m, m->verdict.exit_code, v->verdict.text);
}

/* Messages that a visitor does not know are ignored. */
static void on_message(void *context, struct link *link, const struct message *m)
{
    struct host *host = context;
    if (host->link != link) return;
    if (m->type == MESSAGE_WELCOME)
        welcome(host, m);
    else if (m->type == MESSAGE_REFUSED)
        refused(host, m);
    else if (m->type == MESSAGE_ANSWER)
        answered(host, m);
    else if (m->type == MESSAGE_VERDICT)
        ended(host->visitor, m);
}

static void on_closed(void *context, struct link *link, err why)
{
    struct host *host = context;
    if (host->link != link) return;
    const bool is_greeted = host->opened_ms && !host->is_up && why == ERR_PEER;
    if (link_is_of_other_version(link))
        give_up(host, ERR_INPUT);
    else
        lose(host, is_greeted ? hung_up : error_text());
}

static const struct link_events events = {
    .opened = on_opened,
    .message = on_message,
    .closed = on_closed,
};

static void connect_host(struct host *host)
{
    struct loop *loop = host->visitor->options.loop;
    char address[ADDRESS_MAX];
    host->opened_ms = 0;
    if (transport_tcp.connect(loop, address_of(host, address), &events, host, &host->link))
        lose(host, error_text());
}

void visitor_poll(struct visitor *v, int timeout_ms)
{
    uint64_t now_ms = clock_ms();
    bool goes_on = !v->refusal && !v->verdict.has_come, is_due = false;
    for (int i = 0; i < v->active && goes_on; i++) {
        struct host *host = &v->hosts[i];
        const bool is_silent = host->link && host->opened_ms && !host->is_up;
        if (is_silent && now_ms - host->opened_ms >= WELCOME_MS) look_again(host, silent);
        if (!host->link && now_ms >= host->retry_ms) connect_host(host);
        is_due |= !host->is_up;
    }
    const bool looks = is_due && (timeout_ms < 0 || timeout_ms > LOOK_MS);
    loop_poll(v->options.loop, looks ? LOOK_MS : timeout_ms);
}

err visitor_open(const struct visitor_options *options, struct visitor **ret)
{
    struct visitor *v = calloc(1, sizeof *v);
    if (!v) return fail(ERR_MEMORY, "no memory for a visitor");
    v->options = *options;
    v->room = options->cluster ? cluster_room(options->cluster, JOB_PS) : options->ps_hosts->count;
    v->count = options->only_first ? 1 : v->room;
    v->active = options->only_first ? 1 : options->ps_hosts->count;
    v->hosts = calloc((size_t)v->count, sizeof *v->hosts);
    if (!v->hosts) {
        free(v);
        return fail(ERR_MEMORY, "no memory for a visitor");
    }
    for (int i = 0; i < v->count; i++)
        v->hosts[i] = (struct host){.visitor = v, .index = i, .trouble = "no answer yet"};
    *ret = v;
    return OK;
}

void visitor_close(struct visitor *v)
{
    if (!v) return;
    for (int i = 0; i < v->count; i++) {
        if (v->hosts[i].link) link_close(v->hosts[i].link);
        take_back(&v->hosts[i]);
    }
    free(v->hosts);
    free(v);
}

struct membership visitor_membership(const struct visitor *v)
{
    return v->membership;
}

int visitor_ps_count(const struct visitor *v)
{
    return v->active;
}

bool visitor_is_up(const struct visitor *v, int ps)
{
    return v->hosts[ps].is_up;
}

const char *visitor_trouble(const struct visitor *v, int ps)
{
    return v->hosts[ps].trouble;
}

err visitor_refusal(const struct visitor *v)
{
    return v->refusal ? fail(v->refusal, "%s", v->refusal_text) : OK;
}

const struct visitor_verdict *visitor_verdict(const struct visitor *v)
{
    return &v->verdict;
}

/* The errors that end any wait. */
static err check_alive(const struct visitor *v)
{
    TRY(visitor_refusal(v));
    if (v->verdict.has_come)
        return fail(ERR_PEER, "the job has ended%s%s", v->verdict.text[0] ? ": " : "",
                    v->verdict.text);
    return OK;
}

static const struct host *first_absent(const struct visitor *v)
{
    for (int i = 0; i < v->active; i++)
        if (!v->hosts[i].is_up) return &v->hosts[i];
    return NULL;
}

err visitor_wait_up(struct visitor *v, uint64_t limit_ms, const char *flag)
{
    const uint64_t started_ms = clock_ms();
    uint64_t noted_ms = started_ms;
    for (const struct host *host; (host = first_absent(v)); visitor_poll(v, LOOK_MS)) {
        const uint64_t now_ms = clock_ms();
        char address[ADDRESS_MAX];
        TRY(check_alive(v));
        if (now_ms - started_ms >= limit_ms)
            return fail(ERR_TIMEOUT, "ps/%d at %s did not come within %.3g s (%s): %s", host->index,
                        address_of(host, address), (double)limit_ms / 1000, flag, host->trouble);
        if (!log_wait_is_due(started_ms, noted_ms, now_ms)) continue;
        noted_ms = now_ms;
        log_line(log_wait_level(now_ms - started_ms),
                 "waiting for ps/%d at %s: %s, %llu s of %.3g s (%s)", host->index,
                 address_of(host, address), host->trouble,
                 (unsigned long long)(now_ms - started_ms) / 1000, (double)limit_ms / 1000, flag);
    }
    return OK;
}

err visitor_ask(struct visitor *v, int ps, json_t *ask)
{
    struct host *host = &v->hosts[ps];
    take_back(host);
    if (!host->is_up) return fail(ERR_PEER, "lost ps/%d: %s", ps, host->trouble);
    unsigned char *body;
    size_t bytes;
    TRY(visit_body_of_ask(ask, &body, &bytes));
    const struct message m = {
        .type = MESSAGE_ASK,
        .job = JOB_COUNT,
        .ask.number = ++host->ask,
        .body = body,
        .body_bytes = (uint32_t)bytes,
    };
    const err e = link_send(host->link, &m);
    free(body);
    if (!e) host->is_asked = true;
    return e;
}

json_t *visitor_answer(const struct visitor *v, int ps)
{
    return v->hosts[ps].answer;
}

void visitor_forget(struct visitor *v, int ps)
{
    take_back(&v->hosts[ps]);
}

static int unanswered(const struct visitor *v)
{
    int count = 0;
    for (int i = 0; i < v->active; i++) count += v->hosts[i].is_asked && !v->hosts[i].answer;
    return count;
}

static err check_answering(const struct visitor *v)
{
    TRY(check_alive(v));
    for (int i = 0; i < v->active; i++)
        if (v->hosts[i].is_lost) return fail(ERR_PEER, "lost ps/%d: %s", i, v->hosts[i].trouble);
    return OK;
}

/* Waits until at most `left` requests are not answered. */
static err wait_for(struct visitor *v, int left, uint64_t limit_ms)
{
    const uint64_t started_ms = clock_ms();
    while (unanswered(v) > left) {
        TRY(check_answering(v));
        if (clock_ms() - started_ms >= limit_ms)
            return fail(ERR_TIMEOUT, "no answer within %.3g s (--timeout)",
                        (double)limit_ms / 1000);
        visitor_poll(v, LOOK_MS);
    }
    return OK;
}

err visitor_wait_all(struct visitor *v, uint64_t limit_ms)
{
    return wait_for(v, 0, limit_ms);
}

err visitor_wait_any(struct visitor *v, uint64_t limit_ms)
{
    int count = unanswered(v);
    return count ? wait_for(v, count - 1, limit_ms) : OK;
}
