/* trace.c - see trace.h: clocks, and the bodies of its messages. */
#include "core/cluster/runner/trace/trace.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/session/towers.h"

/* CLOCK_MONOTONIC counts from boot: times are below this (36 years), and sums of a few do not
 * overflow. */
static const uint64_t time_max_ns = UINT64_C(1) << 60;

/* ---- clocks ---- */

void clock_bounds_add(struct clock_bounds *b, const struct round_trip *trip)
{
    const bool is_sane = trip->sent_ns <= trip->back_ns && trip->heard_ns <= trip->answered_ns &&
                         trip->back_ns <= time_max_ns && trip->answered_ns <= time_max_ns;
    if (!is_sane) return;
    const int64_t high_ns = (int64_t)trip->heard_ns - (int64_t)trip->sent_ns;
    const int64_t low_ns = (int64_t)trip->answered_ns - (int64_t)trip->back_ns;
    if (!b->is_known || high_ns < b->high_ns) b->high_ns = high_ns;
    if (!b->is_known || low_ns > b->low_ns) b->low_ns = low_ns;
    b->is_known = true;
}

struct clock_bounds clock_bounds_chain(const struct clock_bounds *a, const struct clock_bounds *b)
{
    return (struct clock_bounds){a->low_ns + b->low_ns, a->high_ns + b->high_ns,
                                 a->is_known && b->is_known};
}

struct clock_bounds clock_bounds_turn(const struct clock_bounds *b)
{
    return (struct clock_bounds){-b->high_ns, -b->low_ns, b->is_known};
}

int64_t clock_bounds_middle_ns(const struct clock_bounds *b)
{
    return b->low_ns + (b->high_ns - b->low_ns) / 2;
}

/* If clocks drift, the bounds may cross: the error is then their distance. */
uint64_t clock_bounds_error_ns(const struct clock_bounds *b)
{
    const int64_t width_ns = b->high_ns - b->low_ns;
    return (uint64_t)(width_ns < 0 ? -width_ns : width_ns) / 2 + 1;
}

void trace_clock_pack(const struct round_trip *trip, uint64_t ret_numbers[TRACE_CLOCK_NUMBERS])
{
    ret_numbers[0] = htole64(trip->sent_ns);
    ret_numbers[1] = htole64(trip->heard_ns);
    ret_numbers[2] = htole64(trip->answered_ns);
}

bool trace_clock_unpack(const struct message *m, struct round_trip *ret)
{
    uint64_t numbers[TRACE_CLOCK_NUMBERS];
    if (!m->body || m->body_bytes != sizeof numbers) return false;
    memcpy(numbers, m->body, sizeof numbers);
    *ret = (struct round_trip){
        .sent_ns = le64toh(numbers[0]),
        .heard_ns = le64toh(numbers[1]),
        .answered_ns = le64toh(numbers[2]),
    };
    return true;
}

/* ---- parts: a head and so many spans, all of 64-bit numbers ---- */

enum { HEAD_LOW, HEAD_HIGH, HEAD_IS_KNOWN, HEAD_DROPPED, HEAD_NUMBERS };
enum { AT_BEGIN, AT_END, AT_STEP, AT_BYTES, AT_WHAT, AT_NUMBERS };
enum { KIND_SHIFT = 32, COUNT_SHIFT = 48 }; /* in AT_WHAT, above the subject */

size_t trace_part_bytes(int count)
{
    return (HEAD_NUMBERS + (size_t)count * AT_NUMBERS) * sizeof(uint64_t);
}

static void span_pack(const struct span *s, uint64_t numbers[AT_NUMBERS])
{
    numbers[AT_BEGIN] = htole64(s->begin_ns);
    numbers[AT_END] = htole64(s->end_ns);
    numbers[AT_STEP] = htole64(s->step);
    numbers[AT_BYTES] = htole64(s->bytes);
    numbers[AT_WHAT] =
        htole64(s->subject | (uint64_t)s->kind << KIND_SHIFT | (uint64_t)s->count << COUNT_SHIFT);
}

static struct span span_unpack(const uint64_t numbers[AT_NUMBERS])
{
    const uint64_t what = le64toh(numbers[AT_WHAT]);
    return (struct span){
        .begin_ns = le64toh(numbers[AT_BEGIN]),
        .end_ns = le64toh(numbers[AT_END]),
        .step = le64toh(numbers[AT_STEP]),
        .bytes = le64toh(numbers[AT_BYTES]),
        .subject = (uint32_t)what,
        .kind = (uint16_t)(what >> KIND_SHIFT),
        .count = (uint16_t)(what >> COUNT_SHIFT),
    };
}

void trace_part_pack(const struct trace *trace, const struct clock_bounds *clock, void *ret_body)
{
    uint64_t *numbers = ret_body;
    numbers[HEAD_LOW] = htole64((uint64_t)clock->low_ns);
    numbers[HEAD_HIGH] = htole64((uint64_t)clock->high_ns);
    numbers[HEAD_IS_KNOWN] = htole64(clock->is_known);
    numbers[HEAD_DROPPED] = htole64(trace->dropped);
    for (int i = 0; i < trace->count; i++)
        span_pack(&trace->spans[i], numbers + HEAD_NUMBERS + (size_t)i * AT_NUMBERS);
}

/* Exclusive upper bound of a kind's subjects; 0: it has none. */
static uint32_t subjects_of(enum span_kind kind, const struct trace_limits *limits)
{
    switch (kind) {
    case SPAN_FORWARD:
    case SPAN_BACKWARD:
        return (uint32_t)limits->nodes;
    case SPAN_PUSH:
    case SPAN_WAIT:
    case SPAN_AWAIT:
    case SPAN_PART:
    case SPAN_BACK:
        return (uint32_t)limits->ps_count;
    case SPAN_RECEIVE:
    case SPAN_TAKE:
    case SPAN_APPLY:
    case SPAN_REFRESH:
        return (uint32_t)limits->workers;
    default:
        return 1;
    }
}

static bool is_valid(const struct span *s, const struct trace_limits *limits)
{
    return s->kind < SPAN_KINDS && s->begin_ns <= s->end_ns && s->end_ns <= time_max_ns &&
           s->subject < subjects_of(s->kind, limits) && span_tower(s) < TOWERS_MAX;
}

static bool is_far(int64_t ns)
{
    return ns > (int64_t)time_max_ns || ns < -(int64_t)time_max_ns;
}

static err read_head(const struct message *m, struct trace_part *ret)
{
    uint64_t head[HEAD_NUMBERS];
    memcpy(head, m->body, sizeof head);
    *ret = (struct trace_part){
        .dropped = le64toh(head[HEAD_DROPPED]),
        .clock = {.low_ns = (int64_t)le64toh(head[HEAD_LOW]),
                  .high_ns = (int64_t)le64toh(head[HEAD_HIGH]),
                  .is_known = head[HEAD_IS_KNOWN] != 0},
    };
    if (is_far(ret->clock.low_ns) || is_far(ret->clock.high_ns))
        return fail(ERR_PROTOCOL, "it sent a clock that cannot be");
    return OK;
}

static err read_spans(const struct message *m, const struct trace_limits *limits,
                      struct trace_part *part)
{
    const char *at = (const char *)m->body + trace_part_bytes(0);
    for (int i = 0; i < part->count; i++) {
        uint64_t numbers[AT_NUMBERS];
        memcpy(numbers, at + (size_t)i * sizeof numbers, sizeof numbers);
        part->spans[i] = span_unpack(numbers);
        if (!is_valid(&part->spans[i], limits))
            return fail(ERR_PROTOCOL, "it sent a span that cannot be");
    }
    return OK;
}

err trace_part_unpack(const struct message *m, const struct trace_limits *limits, int max,
                      struct trace_part *ret)
{
    const size_t span_bytes = AT_NUMBERS * sizeof(uint64_t), head_bytes = trace_part_bytes(0);
    if (!m->body || m->body_bytes < head_bytes || (m->body_bytes - head_bytes) % span_bytes ||
        m->body_bytes > trace_part_bytes(TRACE_SPANS_MAX))
        return fail(ERR_PROTOCOL, "it sent %u bytes, which are no spans", m->body_bytes);
    struct trace_part part;
    TRY(read_head(m, &part));
    const int sent = (int)((m->body_bytes - head_bytes) / span_bytes);
    part.count = sent < max ? sent : max;
    part.dropped += (uint64_t)(sent - part.count);
    part.spans = calloc((size_t)part.count + 1, sizeof *part.spans);
    if (!part.spans) return fail(ERR_MEMORY, "no memory for %d spans", part.count);
    const err e = read_spans(m, limits, &part);
    if (e)
        free(part.spans);
    else
        *ret = part;
    return e;
}
