/* feeder.c - see feeder.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/runner/feed/feed.h"
#include "core/cluster/runner/feed/feeder.h"
#include "core/cluster/runner/listen.h"
#include "core/base/threads/thread.h"

enum {
    STRANGER = -1,
    LOOK_MS = 1, /* interval for checking whether a batch has been read */
};

/* A link; its context. */
struct caller {
    struct feeder *feeder;
    struct link *link;
    struct caller *next;
    uint64_t since_ms;
    int worker; /* STRANGER until it has greeted */
};

/* The share of one worker */
struct worker_share {
    struct session_share read;
    struct caller *caller; /* NULL: not connected */
    uint64_t incarnation;  /* of that caller */
    uint64_t request_id;   /* of the current request; 0: none on this link */
    uint64_t next, end;    /* batches that are still to be sent */
    struct batch batch;    /* being sent */
    size_t sent;           /* bytes of it sent */
    bool has_batch;
};

struct feeder {
    struct task_options options;
    struct greeter me;
    struct loop *loop;
    struct listener *listener;
    struct waker waker;
    pthread_t thread;
    bool is_running;
    atomic_bool is_stopping;
    struct worker_share *shares; /* [workers]; the chief's own is empty */
    bool is_handed_out;          /* by ps/0: workers have no shares, and request the batches that
                                    they were given */
    struct feed_layout layout;
    char *description;
    struct caller *callers; /* newest first */
    int strangers;
    struct log_limit refused, unserved;
    char part[FEED_PART_BYTES];
};

/* ---- callers ---- */

static void forget(struct caller *caller)
{
    struct feeder *f = caller->feeder;
    struct caller **at = &f->callers;
    while (*at != caller) at = &(*at)->next;
    *at = caller->next;
    if (caller->worker == STRANGER)
        f->strangers--;
    else if (f->shares[caller->worker].caller == caller)
        f->shares[caller->worker].caller = NULL;
    free(caller);
}

static void hang_up(struct caller *caller)
{
    link_close(caller->link);
    forget(caller);
}

/* With the thread's error text */
static void refuse(struct caller *caller, err why)
{
    greeting_refuse(&caller->feeder->me, caller->link, &caller->feeder->refused, why);
    hang_up(caller);
}

/* A worker sends HELLO at once, so the connection that has waited longest is not one. */
static void refuse_oldest_stranger(struct feeder *f)
{
    struct caller *oldest = NULL;
    for (struct caller *caller = f->callers; caller; caller = caller->next)
        if (caller->worker == STRANGER) oldest = caller;
    const err e = fail(ERR_PEER, "it sent nothing, and its place is needed for others");
    if (oldest) refuse(oldest, e);
}

static void on_accepted(void *context, struct link *link)
{
    struct feeder *f = context;
    if (f->strangers >= TASK_STRANGERS_MAX) refuse_oldest_stranger(f);
    struct caller *caller = calloc(1, sizeof *caller);
    if (!caller) {
        link_close(link);
        return;
    }
    *caller = (struct caller){f, link, f->callers, clock_ms(), STRANGER};
    f->callers = caller;
    f->strangers++;
    link_set_context(link, caller);
    link_set_body_max(link, TASK_GREETING_BYTES_MAX);
}

static void on_turned_away(void *context, struct message *ret_last_words)
{
    struct feeder *f = context;
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", error_text());
    log_limited(&f->unserved, clock_ms(), LOG_WARNING, "turned a connection away: %s", why);
    refuse_oldest_stranger(f); /* so that there is a descriptor for the next one */
    (void)fail(ERR_IO, "%s", why);
    *ret_last_words = greeting_refusal(&f->me, EXIT_LOST_PEER);
}

static err check_greeting(const struct feeder *f, const struct message *m, struct greeting *ret)
{
    if (m->type != MESSAGE_HELLO)
        return fail(ERR_PROTOCOL, "%s before a greeting", message_name(m->type));
    TRY(greeting_read(&f->me, m, ret));
    if (ret->task >= f->me.peer_count)
        return fail(ERR_INPUT, "worker/%d does not take part: there are %d", ret->task,
                    f->me.peer_count);
    if (ret->task == f->me.index)
        return fail(ERR_INPUT, "worker/%d reads the data itself", ret->task);
    if (ret->membership.resizes != f->options.cluster->resizes)
        return fail(ERR_PEER,
                    "worker/%d is of a job that was resized %llu times, this task of one that "
                    "has %llu times",
                    ret->task, (unsigned long long)ret->membership.resizes,
                    (unsigned long long)f->options.cluster->resizes);
    return OK;
}

/* The same incarnation on a new link has lost the old one, which is closed; another incarnation
 * must wait until the first is gone. */
static err make_room(struct worker_share *share, const struct greeting *g)
{
    if (!share->caller) return OK;
    if (share->incarnation != g->incarnation)
        return fail(ERR_PEER, "worker/%d is already here (%s)", g->task,
                    link_peer_name(share->caller->link));
    hang_up(share->caller);
    return OK;
}

/* Requests on the worker's previous link are dropped. */
static err greet(struct caller *caller, const struct message *m)
{
    struct feeder *f = caller->feeder;
    struct greeting g;
    TRY(greeting_check_right(caller->link, RIGHT_TO_TAKE_PART));
    TRY(check_greeting(f, m, &g));
    struct worker_share *share = &f->shares[g.task];
    TRY(make_room(share, &g));
    *share =
        (struct worker_share){.read = share->read, .caller = caller, .incarnation = g.incarnation};
    caller->worker = g.task;
    f->strangers--;
    link_set_guest(caller->link, false);
    TRY(greeting_send(&f->me, caller->link, MESSAGE_WELCOME, NULL));
    log_line(LOG_DEBUG, "feeds worker/%d (%s)", g.task, link_peer_name(caller->link));
    const struct message data = {
        .type = MESSAGE_DATA,
        .job = JOB_WORKER,
        .body = f->description,
        .body_bytes = (uint32_t)strlen(f->description),
    };
    return link_send(caller->link, &data);
}

/* Reads the plan of batches that ps/0 has handed out; batches requested before stay the same. */
static err take_plan(struct batch_source *source, const struct message *m, bool is_new)
{
    struct reading_plan plan;
    bool is_void = false;
    TRY(reading_plan_unpack(m->body, m->body_bytes, 1, &plan));
    if (m->feed.first < plan.first || m->feed.end > reading_plan_end(&plan))
        return fail(ERR_PROTOCOL, "asks for batches beyond what it was given");
    TRY(source->calls->plan(source, plan.first, plan.ranges, plan.count, &is_void));
    if (!is_void || is_new) return OK;
    return fail(ERR_PROTOCOL, "asks for other batches instead of those that it has");
}

static err take_request(struct caller *caller, const struct message *m)
{
    const bool is_handed_out = caller->feeder->is_handed_out;
    struct worker_share *share = &caller->feeder->shares[caller->worker];
    struct batch_source *source = share->read.source;
    char breach[MESSAGE_BREACH_MAX];
    if (m->type != MESSAGE_FEED || message_fault(m, FROM_WORKER) || m->feed.request_id == 0)
        return fail(ERR_PROTOCOL, "sent %s, which does not ask for batches", message_name(m->type));
    if (!message_is_within(m, &message_ends_of_all, breach))
        return fail(ERR_PROTOCOL, "sent FEED, %s", breach);
    const bool is_new = m->feed.request_id != share->request_id;
    const uint64_t from = is_new ? m->feed.first : share->next;
    if (is_handed_out != (m->body_bytes > 0))
        return fail(ERR_PROTOCOL, "asks for batches %s that are handed out",
                    is_handed_out ? "and names none of those" : "as if they were some");
    if (m->feed.end < from || m->feed.end - from > FEED_AHEAD_MAX)
        return fail(ERR_PROTOCOL, "asks for batches %llu to %llu, at most %d may be",
                    (unsigned long long)from, (unsigned long long)m->feed.end, FEED_AHEAD_MAX);
    if (is_handed_out) TRY(take_plan(source, m, is_new));
    if (is_new) {
        TRY(source->calls->seek(source, m->feed.first));
        share->request_id = m->feed.request_id;
        share->next = m->feed.first;
        share->has_batch = false;
    }
    share->end = m->feed.end;
    return OK;
}

static void on_message(void *context, struct link *link, const struct message *m)
{
    struct caller *caller = context;
    const err e = caller->worker == STRANGER ? greet(caller, m) : take_request(caller, m);
    if (e) refuse(caller, e);
}

static void on_closed(void *context, struct link *link, err why)
{
    struct caller *caller = context;
    if (link_is_of_other_version(link))
        log_limited(&caller->feeder->refused, clock_ms(), LOG_WARNING, "refused %s: it %s",
                    link_peer_name(link), error_text());
    else if (why == ERR_PROTOCOL)
        log_limited(&caller->feeder->refused, clock_ms(), LOG_WARNING, "hangs up on %s, which %s",
                    link_peer_name(link), error_text());
    else if (caller->worker != STRANGER)
        log_line(LOG_DEBUG, "worker/%d has gone: %s", caller->worker, error_text());
    forget(caller);
}

static const struct link_events events = {
    .accepted = on_accepted,
    .turned_away = on_turned_away,
    .message = on_message,
    .closed = on_closed,
};

/* ---- feeding ---- */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Gathers the bytes of a batch from `first` on; gaps between columns are not read. */
static uint32_t gather(struct feeder *f, const struct batch *batch, size_t first)
{
    const struct feed_layout *l = &f->layout;
    const size_t end = smaller(first + FEED_PART_BYTES, l->bytes);
    for (int i = 0; i < l->count; i++) {
        const struct column *c = &batch->columns[l->columns[i]];
        const size_t bytes = column_row_bytes(c) * (size_t)batch->rows;
        const size_t from = l->at[i] > first ? l->at[i] : first;
        const size_t to = smaller(l->at[i] + bytes, end);
        if (from < to)
            memcpy(f->part + (from - first), (const char *)c->at + (from - l->at[i]), to - from);
    }
    return (uint32_t)(end - first);
}

static err send_part(struct feeder *f, struct worker_share *share)
{
    const struct message m = {
        .type = MESSAGE_BATCH,
        .job = JOB_WORKER,
        .batch = {share->next, share->request_id, .offset = share->sent},
        .body = f->part,
        .body_bytes = gather(f, &share->batch, share->sent),
    };
    TRY(link_send(share->caller->link, &m));
    share->sent += m.body_bytes;
    if (share->sent < f->layout.bytes) return OK;
    share->has_batch = false;
    share->next++;
    return OK;
}

/* *ret_is_there false: not read yet. */
static err take_batch(struct worker_share *share, bool *ret_is_there)
{
    struct batch_source *source = share->read.source;
    *ret_is_there = source->calls->ready(source) != 0;
    if (!*ret_is_there) return OK;
    TRY(source->calls->next(source, &share->batch));
    share->has_batch = true;
    share->sent = 0;
    return OK;
}

/* Sends as much as the link takes. */
static err feed(struct feeder *f, struct worker_share *share, bool *ret_waits)
{
    while (share->next < share->end) { /* ends: the link fills */
        bool is_there = true;
        if (link_queued_bytes(share->caller->link) >= FEED_QUEUE_BYTES) return OK;
        if (!share->has_batch) TRY(take_batch(share, &is_there));
        if (!is_there) {
            *ret_waits = true;
            return OK;
        }
        TRY(send_part(f, share));
    }
    return OK;
}

/* true: a worker waits for a batch that is being read. */
static bool feed_all(struct feeder *f)
{
    bool waits = false;
    for (int i = 0; i < f->me.peer_count; i++) {
        struct worker_share *share = &f->shares[i];
        if (!share->caller) continue;
        const err e = feed(f, share, &waits);
        if (e && e != ERR_PEER) refuse(share->caller, e);
        if (e == ERR_PEER) hang_up(share->caller);
    }
    return waits;
}

static void drop_silent(struct feeder *f)
{
    const uint64_t now_ms = clock_ms();
    for (struct caller *caller = f->callers, *next; caller; caller = next) {
        next = caller->next;
        if (caller->worker == STRANGER && now_ms - caller->since_ms >= TASK_GREET_LIMIT_MS)
            hang_up(caller);
    }
}

static void *run(void *context)
{
    struct feeder *f = context;
    while (!atomic_load(&f->is_stopping)) {
        const bool waits = feed_all(f);
        loop_poll(f->loop, waits ? LOOK_MS : TASK_TICK_MS);
        if (f->strangers) drop_silent(f);
    }
    return NULL;
}

/* ---- life ---- */

static err open_shares(struct feeder *f, const struct session *session)
{
    f->shares = calloc((size_t)f->me.peer_count, sizeof *f->shares);
    if (!f->shares) return fail(ERR_MEMORY, "no memory to feed workers");
    for (int i = 0; i < f->me.peer_count; i++) {
        if (i == f->me.index) continue;
        const err e = session_open_share(session, i, &f->shares[i].read);
        if (e) return fail_prefix(e, "to feed worker/%d", i);
    }
    return OK;
}

err feeder_start(struct feeder *f, const struct session *session)
{
    const struct batch_source *data = session->data.train;
    const struct spec *spec = session->options.spec;
    f->me.fingerprint = spec->fingerprint;
    f->is_handed_out = session->options.is_handed_out;
    if (f->me.peer_count < 2) return OK;
    TRY(open_shares(f, session));
    TRY(feed_layout_make(data->columns, data->column_count, f->shares[1].read.reads,
                         spec->data.batch_size, &f->layout));
    TRY(feed_describe(data, spec, &f->description));
    TRY(thread_start(&f->thread, run, f));
    f->is_running = true;
    log_line(LOG_INFO, "reads the data of all %d workers", f->me.peer_count);
    return OK;
}

void feeder_stop(struct feeder *f)
{
    if (!f) return;
    if (f->is_running) {
        atomic_store(&f->is_stopping, true);
        waker_ring(&f->waker);
        pthread_join(f->thread, NULL);
    }
    f->is_running = false;
    while (f->callers) hang_up(f->callers);
    for (int i = 0; f->shares && i < f->me.peer_count; i++)
        batch_source_close(f->shares[i].read.source);
    free(f->shares);
    f->shares = NULL;
}

static err open_parts(struct feeder *f, const struct task_options *options)
{
    f->options = *options;
    f->me = feed_greeter(options);
    TRY(loop_open(&f->loop));
    loop_set_keys(f->loop, loop_keys(options->loop));
    loop_set_insecure(f->loop, loop_is_insecure(options->loop));
    TRY(waker_open(&f->waker, f->loop));
    f->options.loop = f->loop;
    TRY(task_listen(&f->options, &events, f, &f->listener));
    listener_set_guests(f->listener);
    return OK;
}

err feeder_open(const struct task_options *options, struct feeder **ret)
{
    struct feeder *f = calloc(1, sizeof *f);
    if (!f) return fail(ERR_MEMORY, "no memory to feed workers");
    const err e = open_parts(f, options);
    if (e) {
        feeder_close(f);
        return e;
    }
    *ret = f;
    return OK;
}

void feeder_close(struct feeder *f)
{
    if (!f) return;
    feeder_stop(f);
    if (f->listener) listener_close(f->listener);
    waker_close(&f->waker);
    if (f->loop) loop_close(f->loop);
    free(f->description);
    free(f);
}
