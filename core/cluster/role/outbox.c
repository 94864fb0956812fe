/* outbox.c - what roles have in common: the queue of actions, verdicts, patience. */
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/cluster/role/role.h"

enum { NOTE_MS = 10000, NAME_MAX_BYTES = 24 };

const char *job_name(enum job job)
{
    return job == JOB_PS ? "ps" : "worker";
}

struct action *outbox_add(struct outbox *out, enum action_type type)
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
    struct action *a = &out->at[out->count++];
    memset(a, 0, offsetof(struct action, text));
    a->type = type;
    a->text[0] = '\0';
    return a;
}

void outbox_free(struct outbox *out)
{
    free(out->at);
    *out = (struct outbox){0};
}

void outbox_log(struct outbox *out, const char *format, ...)
{
    struct action *a = outbox_add(out, ACTION_LOG);
    va_list list;
    va_start(list, format);
    vsnprintf(a->text, sizeof a->text, format, list);
    va_end(list);
}

void outbox_end(struct outbox *out, int code, const char *text)
{
    struct action *a = outbox_add(out, ACTION_END);
    a->code = code;
    snprintf(a->text, sizeof a->text, "%s", text);
}

void action_verdict(struct action *a, int code, const char *name, const char *text)
{
    bool is_named = name[0] && text[0];
    a->message.code = (uint32_t)code;
    snprintf(a->text, sizeof a->text, "%.*s%s%.*s", NAME_MAX_BYTES, is_named ? name : "",
             is_named ? ": " : "", ACTION_TEXT_MAX - NAME_MAX_BYTES - 3, text);
}

void message_text(const struct message *m, char ret_text[ACTION_TEXT_MAX])
{
    int length = m->body_bytes < ACTION_TEXT_MAX ? (int)m->body_bytes : ACTION_TEXT_MAX - 1;
    snprintf(ret_text, ACTION_TEXT_MAX, "%.*s", length, m->body ? (const char *)m->body : "");
}

void ledger_pack(const struct ledger *ledgers, int count, uint64_t ret_numbers[])
{
    for (int i = 0; i < count; i++) {
        const struct ledger *l = &ledgers[i];
        const uint64_t numbers[LEDGER_NUMBERS] = {l->received, l->taken, l->taken_step};
        for (int k = 0; k < LEDGER_NUMBERS; k++)
            ret_numbers[i * LEDGER_NUMBERS + k] = htole64(numbers[k]);
    }
}

bool ledger_unpack(const struct message *m, int count, struct ledger ret[])
{
    uint64_t numbers[LEDGER_NUMBERS];
    if (!m->body || m->body_bytes != (size_t)count * sizeof numbers) return false;
    for (int i = 0; i < count; i++) {
        memcpy(numbers, (const char *)m->body + (size_t)i * sizeof numbers, sizeof numbers);
        ret[i] = (struct ledger){le64toh(numbers[0]), le64toh(numbers[1]), le64toh(numbers[2])};
    }
    return true;
}

void patience_renew(struct patience *p)
{
    p->since_ms = p->noted_ms = p->now_ms;
}

bool patience_is_over(struct patience *p, const char *what, uint64_t limit_ms, struct outbox *out,
                      char ret_text[ACTION_TEXT_MAX])
{
    unsigned long long waited_ms = p->now_ms - p->since_ms;
    if (waited_ms >= limit_ms) {
        snprintf(ret_text, ACTION_TEXT_MAX, "waited %llu s for %s", waited_ms / 1000, what);
        return true;
    }
    if (p->now_ms - p->noted_ms >= NOTE_MS) {
        p->noted_ms = p->now_ms;
        outbox_log(out, "waiting for %s, %llu s of %llu s", what, waited_ms / 1000,
                   (unsigned long long)limit_ms / 1000);
    }
    return false;
}
