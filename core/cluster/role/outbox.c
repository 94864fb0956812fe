/* outbox.c - shared by both roles: the queue of actions, verdicts, patience. */
#include <assert.h>
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/cluster/role/role.h"

enum { TICK_MS = 100 /* about */ };

const char *job_name(enum job job)
{
    return job == JOB_PS ? "ps" : "worker";
}

int term_chief(uint64_t term, int workers)
{
    return (int)(term % (uint64_t)workers);
}

uint64_t term_after(uint64_t term, int chief, int workers)
{
    do term++;
    while (term_chief(term, workers) != chief);
    return term;
}

const char *action_name(enum action_type type)
{
    static const char *const names[ACTION_TYPES] = {
#define ACTION(type, member, ...) [ACTION_##type] = #type,
#include "core/cluster/role/actions.def"
#undef ACTION
    };
    return names[type];
}

const char *task_name(enum job job, int task, char text[TASK_NAME_MAX])
{
    snprintf(text, TASK_NAME_MAX, "%s/%d", job_name(job), task);
    return text;
}

struct action *outbox_add(struct outbox *out, const struct action *action)
{
    if (out->count == out->capacity) {
        int capacity = out->capacity ? 2 * out->capacity : 64;
        struct action *at = realloc(out->at, (size_t)capacity * sizeof *at);
        if (!at) {
            log_line(LOG_ERROR, "no memory for %d actions", capacity);
            abort();
        }
        out->at = at;
        out->capacity = capacity;
    }
    struct action *added = &out->at[out->count++];
    *added = *action;
    return added;
}

void outbox_empty(struct outbox *out)
{
    out->count = 0;
    arena_free(&out->texts);
}

void outbox_free(struct outbox *out)
{
    free(out->at);
    arena_free(&out->texts);
    *out = (struct outbox){0};
}

const char *outbox_text(struct outbox *out, const char *text)
{
    char *kept = arena_string(&out->texts, text);
    if (strlen(kept) >= ACTION_TEXT_MAX) kept[ACTION_TEXT_MAX - 1] = '\0';
    return kept;
}

__attribute__((format(printf, 3, 0))) static void add_line(struct outbox *out, bool is_warning,
                                                           const char *format, va_list list)
{
    char text[ACTION_TEXT_MAX];
    vsnprintf(text, sizeof text, format, list);
    outbox_add_log(out, (struct action_log){outbox_text(out, text), is_warning});
}

void outbox_log(struct outbox *out, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add_line(out, false, format, list);
    va_end(list);
}

void outbox_warn(struct outbox *out, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add_line(out, true, format, list);
    va_end(list);
}

void outbox_breach(struct outbox *out, bool is_of_number, const char *format, ...)
{
    char text[ACTION_TEXT_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    outbox_add_breach(out, (struct action_breach){outbox_text(out, text), is_of_number});
}

void outbox_end(struct outbox *out, int code, const char *text)
{
    outbox_add_end(out, (struct action_end){code, outbox_text(out, text)});
}

void message_say(struct message *m, const char *text, struct outbox *out)
{
    if (!text[0]) return;
    m->body = outbox_text(out, text);
    m->body_bytes = (uint32_t)strlen(m->body);
}

void message_say_membership(struct message *m, const struct membership *membership,
                            struct outbox *out)
{
    uint64_t *numbers = arena_array(&out->texts, MEMBERSHIP_NUMBERS, sizeof *numbers);
    membership_pack(membership, numbers);
    m->body = numbers;
    m->body_bytes = MEMBERSHIP_NUMBERS * sizeof *numbers;
}

void message_say_verdict(struct message *m, int code, const char *name, const char *text,
                         struct outbox *out)
{
    char said[ACTION_TEXT_MAX];
    bool is_named = name[0] && text[0];
    snprintf(said, sizeof said, "%.*s%s%.*s", TASK_NAME_MAX, is_named ? name : "",
             is_named ? ": " : "", ACTION_TEXT_MAX - TASK_NAME_MAX - 3, text);
    m->verdict.exit_code = (uint32_t)code;
    message_say(m, said, out);
}

void message_text(const struct message *m, char ret_text[ACTION_TEXT_MAX])
{
    int length = m->body_bytes < ACTION_TEXT_MAX ? (int)m->body_bytes : ACTION_TEXT_MAX - 1;
    snprintf(ret_text, ACTION_TEXT_MAX, "%.*s", length, m->body ? (const char *)m->body : "");
}

void ledger_numbers(const struct ledger *l, int64_t ret[LEDGER_NUMBERS])
{
    ret[0] = (int64_t)l->received;
    ret[1] = (int64_t)l->taken;
    ret[2] = (int64_t)l->taken_step;
}

struct ledger ledger_of(const int64_t numbers[LEDGER_NUMBERS])
{
    return (struct ledger){(uint64_t)numbers[0], (uint64_t)numbers[1], (uint64_t)numbers[2]};
}

void ledger_pack(const struct ledger *ledgers, int count, uint64_t ret_numbers[])
{
    int64_t numbers[LEDGER_NUMBERS];
    for (int i = 0; i < count; i++) {
        ledger_numbers(&ledgers[i], numbers);
        for (int k = 0; k < LEDGER_NUMBERS; k++) *ret_numbers++ = htole64((uint64_t)numbers[k]);
    }
}

static bool is_ledger(const struct ledger *l)
{
    return l->received <= MESSAGE_COUNT_MAX && l->taken <= l->received &&
           l->taken_step <= MESSAGE_COUNT_MAX;
}

bool ledger_unpack(const struct message *m, int count, struct ledger ret[])
{
    int64_t numbers[LEDGER_NUMBERS];
    if (!m->body || m->body_bytes != (size_t)count * sizeof numbers) return false;
    for (int i = 0; i < count; i++) {
        memcpy(numbers, (const char *)m->body + (size_t)i * sizeof numbers, sizeof numbers);
        for (int k = 0; k < LEDGER_NUMBERS; k++)
            numbers[k] = (int64_t)le64toh((uint64_t)numbers[k]);
        ret[i] = ledger_of(numbers);
        if (!is_ledger(&ret[i])) return false;
    }
    return true;
}

static void raise(uint64_t *most, uint64_t a, uint64_t b)
{
    if (a > b && a - b > *most) *most = a - b;
}

void torn_pushes_note(struct torn_pushes *torn, int count, const struct ledger *first,
                      const struct ledger *other)
{
    for (int i = 0; i < count; i++) {
        raise(&torn[i].lacking, first[i].taken, other[i].taken);
        raise(&torn[i].more, other[i].taken, first[i].taken);
    }
}

int state_after(const uint16_t follows[], int from, int to)
{
    assert(from == to || follows[from] & MAY(to));
    return to;
}

void patience_begin(struct patience *p, uint64_t clock_ms)
{
    p->now_ms = p->told_ms = clock_ms;
    patience_renew(p);
}

void patience_tick(struct patience *p, uint64_t clock_ms)
{
    const uint64_t passed_ms = clock_ms - p->told_ms;
    p->told_ms = clock_ms;
    p->now_ms += passed_ms > STANDSTILL_MS ? TICK_MS : passed_ms;
}

void patience_renew(struct patience *p)
{
    p->since_ms = p->noted_ms = p->now_ms;
}

static void note(const struct patience *p, const struct awaited *a, struct outbox *out)
{
    const unsigned long long waited_ms = p->now_ms - p->since_ms, limit_s = a->limit_ms / 1000;
    const bool is_warning = log_wait_level(waited_ms) == LOG_WARNING && !a->is_usual;
    (is_warning ? outbox_warn : outbox_log)(out, "waiting for %s, %llu s of %llu s", a->what,
                                            waited_ms / 1000, limit_s);
}

bool patience_is_over(struct patience *p, const struct awaited *a, struct outbox *out,
                      char ret_text[ACTION_TEXT_MAX])
{
    unsigned long long waited_ms = p->now_ms - p->since_ms;
    if (waited_ms >= a->limit_ms) {
        snprintf(ret_text, ACTION_TEXT_MAX, "waited %llu s for %s", waited_ms / 1000, a->what);
        return true;
    }
    if (log_wait_is_due(p->since_ms, p->noted_ms, p->now_ms)) {
        p->noted_ms = p->now_ms;
        note(p, a, out);
    }
    return false;
}
