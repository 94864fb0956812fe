/* counting.c - see counting.h. */
#include "core/cluster/runner/counting.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/retries.h"
#include "core/base/throttled.h"

err counting_open(struct task *t)
{
    t->counting.board = t->options.board;
    if (!t->counting.board) {
        TRY(board_open(&t->counting.own_board));
        t->counting.board = t->counting.own_board;
    }
    const struct membership membership = cluster_membership(t->options.cluster);
    board_limit(t->counting.board, &membership);
    board_note_own(t->counting.board, t->job, t->index);
    return OK;
}

void counting_close(struct task *t)
{
    board_close(t->counting.own_board);
    t->counting.own_board = NULL;
}

/* ---- what every task counts ---- */

static enum counter sent_as(uint32_t type)
{
    switch (type) {
    case MESSAGE_PUSH:
    case MESSAGE_PART:
        return COUNTER_SENT_GRADIENTS;
    case MESSAGE_VALUES:
    case MESSAGE_AHEAD:
    case MESSAGE_INIT:
    case MESSAGE_AVERAGES:
        return COUNTER_SENT_VALUES;
    case MESSAGE_ROWS:
        return COUNTER_SENT_ROWS;
    case MESSAGE_SHARD:
        return COUNTER_SENT_CHECKPOINTS;
    case MESSAGE_BATCH:
        return COUNTER_SENT_DATA;
    default:
        return COUNTER_SENT_OTHER;
    }
}

static void count_bytes(const struct task *t, struct counters *c)
{
    enum { TO_CAME = COUNTER_CAME_GRADIENTS - COUNTER_SENT_GRADIENTS };
    for (int at = COUNTER_SENT_GRADIENTS; at <= COUNTER_CAME_OTHER; at++) c->at[at] = 0;
    for (uint32_t type = 0; type < MESSAGE_TYPES; type++) {
        const struct loop_bytes bytes = loop_bytes(t->options.loop, type);
        c->at[sent_as(type)] += (double)bytes.sent;
        c->at[sent_as(type) + TO_CAME] += (double)bytes.received;
    }
}

static void count_peers(const struct task *t, uint64_t now_ms, struct counters *c)
{
    const uint64_t since_ms = t->counting.peers_ms;
    c->at[COUNTER_PEERS] = t->peer_count;
    c->at[COUNTER_PEERS_STEADY] =
        since_ms && now_ms > since_ms ? (double)(now_ms - since_ms) / 1000 : 0;
    c->at[COUNTER_PEERS_UP] = c->at[COUNTER_QUEUED] = 0;
    for (int i = 0; i < t->peer_count; i++) {
        const struct peer *peer = &t->peers[i];
        if (!peer->is_up || !peer->link) continue;
        c->at[COUNTER_PEERS_UP]++;
        c->at[COUNTER_QUEUED] += (double)link_queued_bytes(peer->link);
    }
}

/* Reading its files takes some 100 us, so not each time. */
static void count_room(struct task *t, uint64_t now_ms)
{
    struct counters *c = &t->counting.counters;
    c->at[COUNTER_MEMORY] = memory_resident();
    if (t->counting.room_ms && now_ms - t->counting.room_ms < COUNTING_ROOM_MS) return;
    const struct memory_room room = memory_room("");
    const double held_up_s = throttled_s("");
    if (!t->counting.room_ms) t->counting.throttled_before_s = held_up_s;
    t->counting.room_ms = now_ms;
    c->at[COUNTER_THROTTLED] = fmax(held_up_s - t->counting.throttled_before_s, 0);
    c->at[COUNTER_MEMORY_LIMIT] = room.limit;
    c->at[COUNTER_MEMORY_LEFT] = room.left;
}

static void count_all(struct task *t, uint64_t now_ms)
{
    struct counters *c = &t->counting.counters;
    c->at[COUNTER_UPTIME] = (double)(now_ms - t->started_ms) / 1000;
    c->at[COUNTER_CLOCK] = clock_unix_s();
    c->at[COUNTER_RETRIES] = (double)retries_count();
    count_room(t, now_ms);
    count_peers(t, now_ms, c);
    count_bytes(t, c);
}

/* As of its last attempt at a step; the role's state may have changed since. */
static bool waits_for_data(const struct task *t, uint64_t now_ms)
{
    const uint64_t absent_ms = t->counting.absent_ms;
    return absent_ms && !t->has_ended && now_ms - absent_ms < COUNTING_FRESH_MS;
}

static void name_state(const struct task *t, uint64_t now_ms, char ret[STATUS_STATE_MAX])
{
    char state[ACTION_TEXT_MAX] = "";
    if (t->role->ops->state) t->role->ops->state(t->role, state);
    snprintf(ret, STATUS_STATE_MAX, "%s", waits_for_data(t, now_ms) ? "waits for data" : state);
    for (char *c = ret; *c; c++)
        if (!isprint((unsigned char)*c)) *c = '?';
}

/* Puts this task's counters on its board; after its end only its state, since others have got its
 * verdict. */
static struct task_status put_up(struct task *t, uint64_t now_ms)
{
    struct task_status status = {.is_ps = t->job == JOB_PS, .index = t->index, .heard_ms = now_ms};
    if (!t->has_ended) {
        count_all(t, now_ms);
        status.is_stepping = t->ops->count && t->ops->count(t, &t->counting.counters);
    }
    task_name(t->job, t->index, status.task);
    name_state(t, now_ms, status.state);
    status.counters = t->counting.counters;
    if (board_put(t->counting.board, t->job, t->index, &status))
        log_line(LOG_DEBUG, "%s", error_text());
    return status;
}

void counting_tick(struct task *t, uint64_t now_ms)
{
    board_turn(t->counting.board, now_ms);
    if (t->counting.is_on && now_ms - t->counting.counted_ms < COUNTING_EVERY_MS) return;
    t->counting.is_on = true;
    t->counting.counted_ms = now_ms;
    log_tell_left_out();
    const struct task_status status = put_up(t, now_ms);
    if (t->ops->tell && !t->has_ended) t->ops->tell(t, &status);
}

void counting_complete(struct task *t)
{
    put_up(t, clock_ms());
}

/* ---- to others, and from them ---- */

void counting_tell(struct task *t, int i, bool of_worker, int index,
                   const struct task_status *status)
{
    unsigned char body[COUNTERS_BYTES + STATUS_STATE_MAX];
    const struct peer *peer = &t->peers[i];
    const size_t length = strlen(status->state);
    if (!peer->is_up || !peer->link || link_queued_bytes(peer->link) > COUNTING_QUEUE_MAX) return;
    counters_pack(&status->counters, body);
    memcpy(body + COUNTERS_BYTES, status->state, length);
    const struct message m = {
        .type = MESSAGE_COUNTERS,
        .job = t->job,
        .task = (uint32_t)t->index,
        .counters = {of_worker, (uint64_t)index},
        .body = body,
        .body_bytes = (uint32_t)(COUNTERS_BYTES + length),
    };
    if (link_send(peer->link, &m)) log_line(LOG_DEBUG, "%s", error_text());
}

static bool is_of_peer(const struct task *t, int peer, const struct message *m)
{
    const struct message_counters *c = &m->counters;
    const int workers = t->options.cluster->hosts[JOB_WORKER].count;
    if (c->of_worker == (t->peer_job == JOB_WORKER) && c->index == (uint64_t)peer) return true;
    return t->job == JOB_WORKER && peer == 0 && c->of_worker == 1 && c->index < (uint64_t)workers;
}

static bool read_state(const struct message *m, char ret[STATUS_STATE_MAX])
{
    const char *text = (const char *)m->body + COUNTERS_BYTES;
    const size_t length = m->body_bytes - COUNTERS_BYTES;
    if (length >= STATUS_STATE_MAX) return false;
    for (size_t i = 0; i < length; i++)
        if (!isprint((unsigned char)text[i])) return false;
    memcpy(ret, text, length);
    ret[length] = '\0';
    return true;
}

void counting_hear(struct task *t, int peer, const struct message *m)
{
    char name[TASK_NAME_MAX];
    struct task_status status = {
        .is_ps = !m->counters.of_worker, .index = (int)m->counters.index, .heard_ms = clock_ms()};
    task_name(t->peer_job, peer, name);
    if (!is_of_peer(t, peer, m) || m->body_bytes < COUNTERS_BYTES ||
        !counters_unpack(m->body, COUNTERS_BYTES, &status.counters) ||
        !read_state(m, status.state)) {
        log_limited(&t->lines.breaches, clock_ms(), LOG_WARNING,
                    "%s sent COUNTERS that are none, which are not looked at", name);
        return;
    }
    const enum job job = m->counters.of_worker ? JOB_WORKER : JOB_PS;
    if (job == t->job && (int)m->counters.index == t->index) return;
    task_name(job, (int)m->counters.index, status.task);
    if (board_put(t->counting.board, job, (int)m->counters.index, &status))
        log_line(LOG_DEBUG, "%s", error_text());
}

/* It will report soon: until then its status does not age, and its clock advances. */
static void renew(struct task_status *status)
{
    const uint64_t now_ms = clock_ms();
    status->counters.at[COUNTER_CLOCK] = task_status_clock_s(status, now_ms);
    status->heard_ms = now_ms;
}

static void put_state(const struct task *t, int worker, bool is_gone)
{
    int count;
    struct task_status *all = board_copy(t->counting.board, false, &count);
    for (int i = 0; i < count; i++) {
        struct task_status *status = &all[i];
        if (status->is_ps || status->index != worker || task_status_is_gone(status) == is_gone)
            continue;
        snprintf(status->state, sizeof status->state, "%s", is_gone ? task_status_gone : "");
        if (!is_gone) renew(status);
        status->counters.at[COUNTER_STEP_RATE] = status->counters.at[COUNTER_EXAMPLE_RATE] = 0;
        if (board_put(t->counting.board, JOB_WORKER, worker, status))
            log_line(LOG_DEBUG, "%s", error_text());
    }
    free(all);
}

void counting_note_left(struct task *t, int worker)
{
    put_state(t, worker, true);
}

void counting_note_back(struct task *t, int worker)
{
    put_state(t, worker, false);
}

/* ---- SIGUSR1 ---- */

void counting_report(const struct task *t)
{
    enum { LINE_LEAST = 240 };
    char line[LINE_LEAST + COUNTER_KEY_MAX + 64], key[COUNTER_KEY_MAX];
    size_t used = 0;
    for (int c = 0; c < COUNTERS; c++) {
        const double number = t->counting.counters.at[c];
        if (number == 0 || !counter_is_of((enum counter)c, t->job == JOB_PS, t->index == 0))
            continue;
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %.9g", used ? ", " : "",
                                 counter_key((enum counter)c, key), number);
        if (used < LINE_LEAST) continue;
        log_line(LOG_INFO, "%s", line);
        used = 0;
    }
    if (used) log_line(LOG_INFO, "%s", line);
}
