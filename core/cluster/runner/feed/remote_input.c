/* remote_input.c - see remote_input.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/runner/feed/remote_input.h"
#include "core/cluster/runner/feed/feed.h"
#include "core/data/batch_ring.h"
#include "core/data/convert.h"
#include "core/data/storage.h"
#include "core/base/threads/thread.h"

enum {
    POLL_MS = 100,
    GRACE_MS = 5000, /* so that a ps that ends a job without chief can say so first */
};
static const char source_name[] = "the data that the chief reads";

/* Used by whoever runs the loop: first remote_input_open, then the thread */
struct chief_link {
    struct link *link; /* NULL: none */
    bool is_greeted, is_told;
    char fingerprint[17]; /* if is_greeted: of the chief's spec */
    uint64_t retry_ms, lost_ms;
    uint32_t tries;
    uint64_t told_place, told_end; /* of the current request; 0: none on this link */
    uint64_t coming;               /* number of the batch being received */
    size_t came;                   /* bytes of it received */
};

/* Shared by the thread and the consumer */
struct shared {
    struct batch_ring ring;    /* its lock guards the members below */
    uint64_t place;            /* counts seeks, from 1, and plans that change the requests */
    struct reading_plan plan;  /* the batches handed out by ps/0 */
    uint64_t end;              /* batches below it may be requested */
    uint64_t wanted;           /* batches below it the consumer waits for, or has */
    bool is_here;              /* the chief is connected */
    char trouble[ADDRESS_MAX]; /* why the chief is not */
};

struct remote_input {
    struct batch_source source; /* first */
    struct task_options task;   /* of its worker */
    struct greeter me;
    struct spec *spec;
    struct arena arena;
    struct feed_description data;
    char *text; /* of it, as first received; NULL: not yet */
    uint32_t text_bytes;

    struct loop *loop;
    struct chief_link chief;

    /* begun */
    struct stream_options options;
    struct transform transform;
    struct conversion *conversions;
    struct feed_layout layout;
    struct dataset arrived; /* the batch being received, as stored */
    struct block arriving;

    struct waker waker;
    pthread_t thread;
    bool is_running;
    atomic_bool is_stopping;
    struct shared shared;
    struct {
        uint64_t since_ms, noted_ms;
    } waiting; /* of the consumer; since_ms 0: not waiting */
};

static const char *address_of(const struct remote_input *f)
{
    return f->task.cluster->hosts[JOB_WORKER].at[0];
}

/* ---- the link ---- */

/* Records the thread's error text; the first one counts. */
static void give_up(struct remote_input *f, err why)
{
    pthread_mutex_lock(&f->shared.ring.lock);
    batch_ring_fail(&f->shared.ring, why);
    pthread_mutex_unlock(&f->shared.ring.lock);
}

static void note_state(struct remote_input *f, bool is_here, const char *trouble)
{
    pthread_mutex_lock(&f->shared.ring.lock);
    f->shared.is_here = is_here;
    snprintf(f->shared.trouble, sizeof f->shared.trouble, "%s", trouble);
    pthread_mutex_unlock(&f->shared.ring.lock);
}

/* The link is gone: requests on it will not be answered. */
static void lose(struct remote_input *f, const char *why)
{
    const uint64_t now_ms = clock_ms();
    if (f->chief.is_told || !f->chief.lost_ms) f->chief.lost_ms = now_ms;
    f->chief.link = NULL;
    f->chief.is_greeted = f->chief.is_told = false;
    f->chief.told_place = 0;
    f->chief.retry_ms = now_ms + task_retry_ms(f->chief.tries++);
    note_state(f, false, why);
}

static void on_opened(void *context, struct link *link)
{
    struct remote_input *f = context;
    if (greeting_send(&f->me, link, MESSAGE_HELLO, NULL)) log_line(LOG_DEBUG, "%s", error_text());
}

static void on_closed(void *context, struct link *link, err why)
{
    struct remote_input *f = context;
    if (link_is_of_other_version(link))
        give_up(f, fail_prefix(ERR_INPUT, "worker/0 at %s", address_of(f)));
    lose(f, error_text());
}

/* With a coordinator: the chief's address is out of date. */
static err look_again(struct remote_input *f, err why)
{
    if (!f->task.cluster->find) return why;
    link_close(f->chief.link);
    lose(f, error_text());
    return OK;
}

static err check_welcome(struct remote_input *f, const struct message *m)
{
    struct greeting g;
    char name[TASK_NAME_MAX];
    if (m->type != MESSAGE_WELCOME)
        return fail(ERR_PROTOCOL, "sent %s before a greeting", message_name(m->type));
    TRY(greeting_read(&f->me, m, &g));
    if (g.task != 0)
        return look_again(f,
                          fail(ERR_INPUT, "worker/%d answers at the address of worker/0", g.task));
    /* compared later: the fingerprint includes measured values, which come with DATA */
    snprintf(f->chief.fingerprint, sizeof f->chief.fingerprint, "%s", g.fingerprint);
    f->chief.is_greeted = true;
    if (!f->text) return OK;
    return greeting_compare_specs(task_name(JOB_WORKER, f->me.index, name), f->spec->fingerprint,
                                  "worker/0", g.fingerprint);
}

static err read_data(struct remote_input *f, const struct message *m)
{
    char name[TASK_NAME_MAX];
    TRY(feed_read_description(m->body, m->body_bytes, f->spec, &f->arena, &f->data));
    TRY(greeting_compare_specs(task_name(JOB_WORKER, f->me.index, name), f->spec->fingerprint,
                               "worker/0", f->chief.fingerprint));
    f->text = malloc(m->body_bytes);
    if (!f->text) return fail(ERR_MEMORY, "no memory for a description of data");
    memcpy(f->text, m->body, m->body_bytes);
    f->text_bytes = m->body_bytes;
    return OK;
}

/* A restarted chief must have the same data. */
static err take_data(struct remote_input *f, const struct message *m)
{
    if (m->type != MESSAGE_DATA || !m->body_bytes)
        return fail(ERR_PROTOCOL, "sent %s instead of DATA", message_name(m->type));
    if (!f->text)
        TRY(read_data(f, m));
    else if (m->body_bytes != f->text_bytes || memcmp(m->body, f->text, f->text_bytes) != 0)
        return fail(ERR_INPUT, "came back with other data than before");
    f->chief.is_told = true;
    f->chief.tries = 0;
    note_state(f, true, "");
    return OK;
}

/* ---- a batch comes ---- */

/* Checks ids, since table rows are requested by them. */
static err check_ids(const struct column *c, int64_t rows)
{
    const int64_t *ids = c->at, count = rows * column_width(c);
    int outside = 0;
    for (int64_t i = 0; i < count; i++) outside |= ids[i] >= c->buckets;
    return outside ? fail(ERR_PROTOCOL, "column \"%s\": an id that is not below %lld", c->name,
                          (long long)c->buckets)
                   : OK;
}

static err check_arrived(struct remote_input *f)
{
    TRY(transform_check(&f->transform, &f->arrived));
    for (int i = 0; i < f->layout.count; i++) {
        const struct column *c = &f->arrived.columns[f->layout.columns[i]];
        if (c->dtype == INT64) TRY(check_ids(c, f->arrived.rows));
    }
    return OK;
}

/* The slot is not read by others until it is marked as made, nor at all after a seek. */
static err make_batch(struct remote_input *f, struct column *slot)
{
    TRY(check_arrived(f));
    for (int i = 0; i < f->layout.count; i++) {
        const int c = f->layout.columns[i];
        convert(&f->conversions[c], &f->arrived.columns[c], 0, f->arrived.rows, (void *)slot[c].at);
    }
    return OK;
}

static err batch_is_there(struct remote_input *f)
{
    pthread_mutex_lock(&f->shared.ring.lock);
    const bool is_wanted = f->shared.place == f->chief.told_place &&
                           f->chief.coming == batch_ring_next(&f->shared.ring);
    struct column *slot =
        f->shared.ring.slots[batch_ring_place(&f->shared.ring, batch_ring_next(&f->shared.ring))];
    pthread_mutex_unlock(&f->shared.ring.lock);
    if (!is_wanted) return OK;
    const err e = make_batch(f, slot);
    if (e) return fail_prefix(ERR_PROTOCOL, "batch %llu", (unsigned long long)f->chief.coming);
    pthread_mutex_lock(&f->shared.ring.lock);
    if (f->shared.place == f->chief.told_place) batch_ring_add(&f->shared.ring);
    pthread_mutex_unlock(&f->shared.ring.lock);
    return OK;
}

static err take_part(struct remote_input *f, const struct message *m)
{
    if (m->type != MESSAGE_BATCH || message_fault(m, FROM_CHIEF))
        return fail(ERR_PROTOCOL, "sent %s instead of a batch", message_name(m->type));
    if (!f->chief.told_place || m->batch.request_id != f->chief.told_place)
        return OK; /* from before a seek */
    if (m->batch.number != f->chief.coming || m->batch.number >= f->chief.told_end ||
        m->batch.offset != f->chief.came || !m->body_bytes ||
        m->body_bytes > f->layout.bytes - f->chief.came)
        return fail(ERR_PROTOCOL, "sent %u bytes of batch %llu at %llu, not what comes next",
                    m->body_bytes, (unsigned long long)m->batch.number,
                    (unsigned long long)m->batch.offset);
    memcpy((char *)f->arriving.at + f->chief.came, m->body, m->body_bytes);
    f->chief.came += m->body_bytes;
    if (f->chief.came < f->layout.bytes) return OK;
    f->chief.came = 0;
    TRY(batch_is_there(f));
    f->chief.coming++;
    return OK;
}

/* A refusal is temporary if the chief is ending, or still has a link of another incarnation of this
 * worker. */
static err refused(struct remote_input *f, const struct message *m)
{
    char text[ACTION_TEXT_MAX];
    message_text(m, text);
    if (exit_code_is_retryable((int)m->refused.exit_code)) {
        link_close(f->chief.link);
        lose(f, text);
        return OK;
    }
    return fail(m->refused.exit_code == EXIT_INPUT ? ERR_INPUT : ERR_PROTOCOL,
                "refuses to feed this worker: %s", text);
}

static void on_message(void *context, struct link *link, const struct message *m)
{
    struct remote_input *f = context;
    err e;
    if (m->type == MESSAGE_REFUSED)
        e = refused(f, m);
    else if (!f->chief.is_greeted)
        e = check_welcome(f, m);
    else if (!f->chief.is_told)
        e = take_data(f, m);
    else
        e = take_part(f, m);
    if (e) give_up(f, fail_prefix(e, "worker/0 at %s", address_of(f)));
}

static const struct link_events events = {
    .opened = on_opened,
    .message = on_message,
    .closed = on_closed,
};

static void connect_if_due(struct remote_input *f)
{
    char address[ADDRESS_MAX];
    if (f->chief.link || clock_ms() < f->chief.retry_ms) return;
    cluster_find(f->task.cluster, JOB_WORKER, 0, address);
    if (transport_tcp.connect(f->loop, address, &events, f, &f->chief.link)) lose(f, error_text());
}

/* ---- the thread ---- */

/* With the lock held: the end of batches for which there is room and a plan. */
static uint64_t end_of_room(const struct remote_input *f)
{
    const struct batch_ring *ring = &f->shared.ring;
    const uint64_t end = ring->first + ring->freed + (uint64_t)ring->slot_count;
    const uint64_t planned = reading_plan_end(&f->shared.plan);
    return f->options.is_handed_out && planned < end ? planned : end;
}

/* With the lock held. More is requested when half of the room is free, or the consumer waits. */
static bool is_more_due(const struct remote_input *f, uint64_t asked_end)
{
    const uint64_t end = end_of_room(f);
    return end >= asked_end + (uint64_t)(f->shared.ring.slot_count + 1) / 2 ||
           (f->shared.wanted > asked_end && end > asked_end);
}

/* Requests batches for which there is room; after a seek at once. */
static void ask(struct remote_input *f)
{
    uint64_t numbers[READING_PLAN_NUMBERS_MAX];
    pthread_mutex_lock(&f->shared.ring.lock);
    const uint64_t place = f->shared.place, first = batch_ring_next(&f->shared.ring),
                   end = end_of_room(f);
    const bool is_new = place != f->chief.told_place;
    const bool is_known = first >= f->shared.plan.first && end > first;
    const bool is_due = is_new ? is_known : is_more_due(f, f->chief.told_end);
    if (is_due) f->shared.end = end;
    const int count = f->options.is_handed_out ? reading_plan_pack(&f->shared.plan, numbers) : 0;
    pthread_mutex_unlock(&f->shared.ring.lock);
    if (!is_due) return;
    const struct message m = {
        .type = MESSAGE_FEED,
        .job = JOB_WORKER,
        .task = (uint32_t)f->me.index,
        .feed = {first, .request_id = place, .end = end},
        .body = numbers,
        .body_bytes = (uint32_t)((size_t)count * sizeof *numbers),
    };
    if (link_send(f->chief.link, &m)) return; /* it is closing */
    if (is_new) {
        f->chief.coming = first;
        f->chief.came = 0;
    }
    f->chief.told_place = place;
    f->chief.told_end = end;
}

static void watch_chief(struct remote_input *f)
{
    const uint64_t limit_ms = f->task.limits.restart_ms;
    if (f->chief.is_told || f->shared.ring.failure ||
        clock_ms() - f->chief.lost_ms < limit_ms + GRACE_MS)
        return;
    give_up(f, fail(ERR_TIMEOUT,
                    "worker/0 at %s, which reads the data, did not come back within %llu s "
                    "(--restart_timeout): %s",
                    address_of(f), (unsigned long long)limit_ms / 1000, f->shared.trouble));
}

static void *run(void *context)
{
    struct remote_input *f = context;
    while (!atomic_load(&f->is_stopping)) {
        connect_if_due(f);
        if (f->chief.is_told && !f->shared.ring.failure) ask(f);
        loop_poll(f->loop, POLL_MS);
        watch_chief(f);
    }
    return NULL;
}

/* ---- the source ---- */

/* At least the batches of one push, whatever data.prefetch is: during a step nothing is received.
 */
static int most_ready(const struct stream_options *o)
{
    const int per_push = (int)stream_per_push(o);
    const int push = per_push < PREFETCH_MAX ? per_push : PREFETCH_MAX;
    return o->prefetch > push ? o->prefetch : push;
}

static err open_slots(struct remote_input *f)
{
    const struct made_columns made = {source_name,       f->conversions,  f->data.column_count,
                                      f->layout.columns, f->layout.count, f->options.batch};
    TRY(batch_ring_open_slots(&f->shared.ring, &made, most_ready(&f->options) + 1));
    TRY(block_new(f->layout.bytes, &f->arriving));
    for (int i = 0; i < f->layout.count; i++)
        f->arrived.columns[f->layout.columns[i]].at = (char *)f->arriving.at + f->layout.at[i];
    return OK;
}

static void describe_arrived(struct remote_input *f)
{
    f->arrived = (struct dataset){
        .rows = f->options.batch,
        .columns = arena_array(&f->arena, (size_t)f->data.column_count, sizeof *f->data.columns),
        .column_count = f->data.column_count,
        .name = source_name,
        .label_name = source_name,
    };
    memcpy(f->arrived.columns, f->data.columns,
           (size_t)f->data.column_count * sizeof *f->data.columns);
}

static err begin(struct batch_source *source, const struct stream_options *options)
{
    struct remote_input *f = (struct remote_input *)source;
    f->options = *options;
    f->options.reads = NULL;
    f->transform = options->transform;
    describe_arrived(f);
    f->conversions = arena_array(&f->arena, (size_t)f->data.column_count, sizeof *f->conversions);
    conversions_of(&options->transform, &f->arrived, f->conversions);
    TRY(feed_layout_make(f->data.columns, f->data.column_count, options->reads, options->batch,
                         &f->layout));
    TRY(open_slots(f));
    TRY(waker_open(&f->waker, f->loop));
    f->shared.place = 1;
    TRY(thread_start(&f->thread, run, f));
    f->is_running = true;
    return OK;
}

/* With the lock held. Wakes the thread that requests batches. At most as many as can be kept ready.
 */
static uint64_t want(struct remote_input *f, int count)
{
    const struct batch_ring *ring = &f->shared.ring;
    const uint64_t wanted = batch_ring_most(ring, count);
    f->shared.wanted = ring->first + ring->taken + wanted;
    if (is_more_due(f, f->shared.end)) waker_ring(&f->waker);
    return wanted;
}

/* With the lock held. */
static struct batch batch_of(const struct remote_input *f, uint64_t index)
{
    const struct stream_options *o = &f->options;
    uint64_t batch = stream_position(o, index) / (uint64_t)o->batch;
    if (o->is_handed_out) reading_plan_find(&f->shared.plan, index, &batch);
    return (struct batch){
        .rows = o->batch,
        .columns = f->shared.ring.slots[batch_ring_place(&f->shared.ring, index)],
        .column_count = f->data.column_count,
        .index = index,
        .epoch = batch * (uint64_t)o->batch / (uint64_t)f->data.rows,
    };
}

/* Taking the next one makes room for another. */
static err next(struct batch_source *source, struct batch *ret)
{
    struct remote_input *f = (struct remote_input *)source;
    uint64_t index;
    pthread_mutex_lock(&f->shared.ring.lock);
    f->shared.ring.freed = f->shared.ring.taken;
    want(f, 1);
    const err e = batch_ring_take(&f->shared.ring, source_name, &index);
    if (!e) *ret = batch_of(f, index);
    pthread_mutex_unlock(&f->shared.ring.lock);
    return e;
}

static int ready(struct batch_source *source)
{
    struct remote_input *f = (struct remote_input *)source;
    pthread_mutex_lock(&f->shared.ring.lock);
    const int count = (int)batch_ring_ready(&f->shared.ring) + (f->shared.ring.failure != OK);
    pthread_mutex_unlock(&f->shared.ring.lock);
    return count;
}

static err seek(struct batch_source *source, uint64_t index)
{
    struct remote_input *f = (struct remote_input *)source;
    if (!stream_has_batch(&f->options, index))
        return fail(ERR_INPUT, "batch %llu is beyond the stream", (unsigned long long)index);
    pthread_mutex_lock(&f->shared.ring.lock);
    f->shared.place++;
    batch_ring_seek(&f->shared.ring, index);
    f->shared.wanted = f->shared.end = index;
    pthread_mutex_unlock(&f->shared.ring.lock);
    waker_ring(&f->waker);
    return OK;
}

/* Requested batches are kept up to the first that differs in the new plan; from there on they are
 * requested again. */
static err plan(struct batch_source *source, uint64_t first, const uint64_t *ranges, int count,
                bool *ret_is_void)
{
    struct remote_input *f = (struct remote_input *)source;
    struct reading_plan plan;
    TRY(reading_plan_make(first, ranges, count, f->options.batch, &plan));
    pthread_mutex_lock(&f->shared.ring.lock);
    struct batch_ring *ring = &f->shared.ring;
    uint64_t n = ring->freed;
    while (ring->first + n < f->shared.end &&
           reading_plan_keeps(&f->shared.plan, &plan, ring->first + n))
        n++;
    *ret_is_void = n < ring->taken;
    if (ring->first + n < f->shared.end) {
        f->shared.place++;
        (void)batch_ring_cut(ring, n);
        f->shared.end = batch_ring_next(ring);
    }
    f->shared.plan = plan;
    pthread_mutex_unlock(&f->shared.ring.lock);
    waker_ring(&f->waker);
    return OK;
}

static void close_source(struct batch_source *source)
{
    struct remote_input *f = (struct remote_input *)source;
    if (f->is_running) {
        atomic_store(&f->is_stopping, true);
        waker_ring(&f->waker);
        pthread_join(f->thread, NULL);
    }
    waker_close(&f->waker);
    if (f->loop) loop_close(f->loop);
    batch_ring_free(&f->shared.ring);
    block_drop(&f->arriving);
    arena_free(&f->arena);
    free(f->text);
    free(f);
}

static const struct source_calls calls = {.begin = begin,
                                          .next = next,
                                          .ready = ready,
                                          .seek = seek,
                                          .close = close_source,
                                          .plan = plan};

/* ---- life ---- */

static err check_start(struct remote_input *f)
{
    const uint64_t limit_ms = f->task.limits.start_ms;
    const uint64_t now_ms = clock_ms(), waited_ms = now_ms - f->waiting.since_ms;
    if (f->shared.ring.failure) return fail(f->shared.ring.failure, "%s", f->shared.ring.failed);
    if (waited_ms >= limit_ms)
        return fail(ERR_TIMEOUT,
                    "worker/0 at %s, which reads the data, did not come within %llu s "
                    "(--start_timeout): %s",
                    address_of(f), (unsigned long long)limit_ms / 1000, f->shared.trouble);
    if (!log_wait_is_due(f->waiting.since_ms, f->waiting.noted_ms, now_ms)) return OK;
    f->waiting.noted_ms = now_ms;
    log_line(log_wait_level(waited_ms),
             "waiting for worker/0 at %s, which reads the data: %s, %llu s of %llu s",
             address_of(f), f->shared.trouble[0] ? f->shared.trouble : "no answer yet",
             (unsigned long long)waited_ms / 1000, (unsigned long long)limit_ms / 1000);
    return OK;
}

static err open_parts(struct remote_input *f, const struct task_options *options)
{
    f->task = *options;
    f->me = feed_greeter(options);
    f->me.fingerprint = NULL; /* it may depend on values measured of the data */
    TRY(loop_open(&f->loop));
    loop_set_keys(f->loop, loop_keys(options->loop));
    f->waiting.since_ms = f->waiting.noted_ms = clock_ms();
    while (!f->chief.is_told) { /* ends: check_start has a limit */
        connect_if_due(f);
        loop_poll(f->loop, POLL_MS);
        TRY(check_start(f));
    }
    f->waiting.since_ms = 0;
    f->source.rows = f->data.rows;
    f->source.columns = f->data.columns;
    f->source.column_count = f->data.column_count;
    return OK;
}

err remote_input_open(const struct task_options *options, struct spec *spec,
                      struct remote_input **ret)
{
    struct remote_input *f = malloc(sizeof *f);
    if (!f) return fail(ERR_MEMORY, "no memory for batches");
    *f = (struct remote_input){
        .source = {.calls = &calls, .name = source_name, .use = ""},
        .spec = spec,
    };
    batch_ring_init(&f->shared.ring);
    const err e = open_parts(f, options);
    if (e) {
        close_source(&f->source);
        return e;
    }
    *ret = f;
    return OK;
}

void remote_input_close(struct remote_input *f)
{
    if (f) close_source(&f->source);
}

struct batch_source *remote_input_source(struct remote_input *f)
{
    return &f->source;
}

bool remote_input_await(struct remote_input *f, int count, int timeout_ms)
{
    pthread_mutex_lock(&f->shared.ring.lock);
    const bool is_there = batch_ring_wait(&f->shared.ring, want(f, count), (uint64_t)timeout_ms) ||
                          f->shared.ring.failure;
    pthread_mutex_unlock(&f->shared.ring.lock);
    if (is_there) f->waiting.since_ms = 0;
    return is_there;
}

err remote_input_note_late(struct remote_input *f)
{
    const uint64_t now_ms = clock_ms();
    char trouble[ADDRESS_MAX];
    if (!f->waiting.since_ms) f->waiting.since_ms = f->waiting.noted_ms = now_ms;
    const uint64_t waited_s = (now_ms - f->waiting.since_ms) / 1000;
    if (now_ms - f->waiting.since_ms >= BATCH_WAIT_S_MAX * UINT64_C(1000))
        return fail(ERR_TIMEOUT, "%s: no batch for %d s", source_name, (int)BATCH_WAIT_S_MAX);
    if (log_wait_is_due(f->waiting.since_ms, f->waiting.noted_ms, now_ms)) {
        f->waiting.noted_ms = now_ms;
        pthread_mutex_lock(&f->shared.ring.lock);
        snprintf(trouble, sizeof trouble, "%s", f->shared.is_here ? "it reads" : f->shared.trouble);
        pthread_mutex_unlock(&f->shared.ring.lock);
        log_line(log_wait_level(now_ms - f->waiting.since_ms),
                 "waiting for a batch of worker/0 at %s: %s, %llu s", address_of(f), trouble,
                 (unsigned long long)waited_s);
    }
    return fail(ERR_PEER, "no batch yet");
}
