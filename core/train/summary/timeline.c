/* timeline.c - see timeline.h. */
#include "core/train/summary/timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/files/replace.h"

enum {
    NAME_MAX_BYTES = 48,
    NS_PER_US = 1000,
    ROWS_OF_TOWERS = 1 << 20 /* behind those of peers */
};

/* The name of a kind of span, and on which tasks it occurs. */
static const struct {
    const char *category, *name;
    enum { OF_TASK, OF_NODE, OF_PEER } subject;
    bool has_row; /* drawn in the row of the peer; otherwise in the task's own row */
} kinds[SPAN_KINDS] = {
    [SPAN_STEP] = {"step", "step", OF_TASK, false},
    [SPAN_HOOKS] = {"hooks", "hooks", OF_TASK, false},
    [SPAN_DATA] = {"data", "wait for the batch", OF_TASK, false},
    [SPAN_AWAIT] = {"wait", "wait for values of", OF_PEER, false},
    [SPAN_FORWARD] = {"forward", "", OF_NODE, false},
    [SPAN_LOSS] = {"forward", "loss", OF_TASK, false},
    [SPAN_BACKWARD] = {"backward", "", OF_NODE, false},
    [SPAN_CLIP] = {"backward", "clip", OF_TASK, false},
    [SPAN_PUSH] = {"push", "push to", OF_PEER, true},
    [SPAN_WAIT] = {"wait", "wait for", OF_PEER, true},
    [SPAN_PART] = {"part", "part to", OF_PEER, true},
    [SPAN_BACK] = {"part", "values from", OF_PEER, true},
    [SPAN_TAKE] = {"part", "part from", OF_PEER, true},
    [SPAN_RECEIVE] = {"receive", "receive from", OF_PEER, true},
    [SPAN_APPLY] = {"apply", "apply", OF_PEER, false},
    [SPAN_ADVANCE] = {"apply", "advance", OF_TASK, false},
    [SPAN_REFRESH] = {"refresh", "copy values for", OF_PEER, false},
    [SPAN_SNAPSHOT] = {"checkpoint", "snapshot", OF_TASK, false},
    [SPAN_HOLD] = {"checkpoint", "hold", OF_TASK, false},
};

/* An interval on the chief's clock. */
struct clock_stretch {
    int64_t begin_ns, end_ns;
};

static struct clock_stretch stretch_of(const struct timeline_part *part, const struct span *span)
{
    return (struct clock_stretch){(int64_t)span->begin_ns + part->shift_ns,
                                  (int64_t)span->end_ns + part->shift_ns};
}

/* ---- what is shown ---- */

/* The interval of the workers' steps, and the widest that errors of their clocks allow. */
struct clock_window {
    struct clock_stretch steps, widest;
};

static void widen(struct clock_stretch *window, const struct clock_stretch *s, int64_t error_ns)
{
    if (s->begin_ns - error_ns < window->begin_ns) window->begin_ns = s->begin_ns - error_ns;
    if (s->end_ns + error_ns > window->end_ns) window->end_ns = s->end_ns + error_ns;
}

/* From the first step of any worker to the last end of one. */
static struct clock_window window_of(const struct timeline *t)
{
    const struct clock_stretch none = {INT64_MAX, INT64_MIN};
    struct clock_window window = {none, none};
    for (int i = 0; i < t->part_count; i++) {
        const struct timeline_part *part = &t->parts[i];
        for (int k = 0; !part->missing && k < part->span_count; k++) {
            if (part->spans[k].kind != SPAN_STEP) continue;
            const struct clock_stretch s = stretch_of(part, &part->spans[k]);
            widen(&window.steps, &s, 0);
            widen(&window.widest, &s, (int64_t)part->error_ns);
        }
    }
    return window.steps.begin_ns <= window.steps.end_ns ? window : (struct clock_window){0};
}

/* A ps hears late that the last step is over, and records until then: that is cut off. */
static bool is_shown(const struct clock_window *window, const struct timeline_part *part,
                     const struct clock_stretch *s)
{
    const int64_t error_ns = (int64_t)part->error_ns;
    return s->begin_ns >= window->widest.begin_ns - error_ns &&
           s->end_ns <= window->widest.end_ns + error_ns;
}

/* ---- JSON ---- */

/* As a string with its quotes. */
static void put_string(FILE *f, const char *text)
{
    putc('"', f);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < 0x20)
            fprintf(f, "\\u%04x", *c);
        else
            fprintf(f, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    }
    putc('"', f);
}

/* Chrome's unit, microseconds, with a fraction. */
static void put_us(FILE *f, int64_t ns)
{
    const uint64_t size = ns < 0 ? (uint64_t)-ns : (uint64_t)ns;
    fprintf(f, "%s%" PRIu64 ".%03" PRIu64, ns < 0 ? "-" : "", size / NS_PER_US, size % NS_PER_US);
}

static void task_name_of(const struct timeline_part *part, char ret[NAME_MAX_BYTES])
{
    snprintf(ret, NAME_MAX_BYTES, "%s/%d", part->is_ps ? "ps" : "worker", part->task);
}

/* The task at the other end: the peers of a ps are workers. */
static void peer_name_of(const struct timeline_part *part, uint32_t peer, char ret[NAME_MAX_BYTES])
{
    snprintf(ret, NAME_MAX_BYTES, "%s/%" PRIu32, part->is_ps ? "worker" : "ps", peer);
}

/* The list of events knows whether it has one. */
struct events_file {
    FILE *file;
    const struct timeline *timeline;
    bool has_event;
};

static void begin_event(struct events_file *e, const char *phase, int process, uint32_t thread)
{
    fprintf(e->file, "%s\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%" PRIu32, e->has_event ? "," : "",
            phase, process, thread);
    e->has_event = true;
}

static void put_row_name(struct events_file *e, const char *what, int process, uint32_t thread,
                         const char *name)
{
    begin_event(e, "M", process, thread);
    fprintf(e->file, ",\"name\":\"%s\",\"args\":{\"name\":\"%s\"}}", what, name);
}

static uint32_t row_of(const struct span *span)
{
    const int tower = span_tower(span);
    if (tower) return ROWS_OF_TOWERS + (uint32_t)tower;
    return kinds[span->kind].has_row ? 1 + span->subject : 0;
}

static void put_tower_names(struct events_file *e, const struct timeline_part *part, int process)
{
    char name[NAME_MAX_BYTES];
    int most = 0;
    for (int k = 0; k < part->span_count; k++)
        if (span_tower(&part->spans[k]) > most) most = span_tower(&part->spans[k]);
    for (int tower = 1; tower <= most; tower++) {
        snprintf(name, sizeof name, "tower %d", tower);
        put_row_name(e, "thread_name", process, ROWS_OF_TOWERS + (uint32_t)tower, name);
    }
}

static void put_row_names(struct events_file *e, const struct timeline_part *part, int process)
{
    char name[NAME_MAX_BYTES];
    task_name_of(part, name);
    put_row_name(e, "process_name", process, 0, name);
    begin_event(e, "M", process, 0);
    fprintf(e->file, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%d}}", process);
    put_row_name(e, "thread_name", process, 0, part->is_ps ? "updates" : "steps");
    uint32_t named = 0; /* peers whose rows have been named */
    for (int k = 0; k < part->span_count; k++) {
        if (!kinds[part->spans[k].kind].has_row) continue;
        for (; named <= part->spans[k].subject; named++) {
            peer_name_of(part, named, name);
            put_row_name(e, "thread_name", process, 1 + named, name);
        }
    }
    put_tower_names(e, part, process);
}

/* Its name, and what is worth knowing of it. */
static void put_subject(FILE *f, const struct timeline *t, const struct timeline_part *part,
                        const struct span *span)
{
    char peer[NAME_MAX_BYTES], name[2 * NAME_MAX_BYTES];
    const bool is_node = kinds[span->kind].subject == OF_NODE;
    if (is_node && span->subject < (uint32_t)t->graph->node_count) {
        put_string(f, t->graph->nodes[span->subject].name);
        return;
    }
    peer_name_of(part, span->subject, peer);
    if (span->kind == SPAN_STEP)
        snprintf(name, sizeof name, "step %" PRIu64, span->step);
    else if (span->kind == SPAN_APPLY && span->count > 1)
        snprintf(name, sizeof name, "apply %d gradients", span->count);
    else if (kinds[span->kind].subject == OF_PEER)
        snprintf(name, sizeof name, "%s %s", kinds[span->kind].name, peer);
    else
        snprintf(name, sizeof name, "%s", kinds[span->kind].name);
    put_string(f, name);
}

static void put_arguments(FILE *f, const struct timeline *t, const struct timeline_part *part,
                          const struct span *span)
{
    char peer[NAME_MAX_BYTES];
    fprintf(f, "\"args\":{\"step\":%" PRIu64, span->step);
    if (span->bytes) fprintf(f, ",\"bytes\":%" PRIu64, span->bytes);
    if (span->kind == SPAN_APPLY) fprintf(f, ",\"gradients\":%d", span->count);
    if (kinds[span->kind].subject == OF_PEER) {
        peer_name_of(part, span->subject, peer);
        fprintf(f, ",\"%s\":\"%s\"", part->is_ps ? "worker" : "ps", peer);
    }
    if (kinds[span->kind].subject == OF_NODE && span->subject < (uint32_t)t->graph->node_count) {
        fputs(",\"op\":", f);
        put_string(f, t->graph->nodes[span->subject].op->object.name);
    }
    putc('}', f);
}

static void put_span(struct events_file *e, int process, const struct clock_stretch *s,
                     const struct span *span)
{
    const struct timeline_part *part = &e->timeline->parts[process - 1];
    begin_event(e, "X", process, row_of(span));
    fprintf(e->file, ",\"cat\":\"%s\",\"name\":", kinds[span->kind].category);
    put_subject(e->file, e->timeline, part, span);
    fputs(",\"ts\":", e->file);
    put_us(e->file, s->begin_ns);
    fputs(",\"dur\":", e->file);
    put_us(e->file, s->end_ns - s->begin_ns);
    putc(',', e->file);
    put_arguments(e->file, e->timeline, part, span);
    putc('}', e->file);
}

/* Time 0 of the file is the start of the first step. */
static void put_part(struct events_file *e, int index, const struct clock_window *window)
{
    const struct timeline_part *part = &e->timeline->parts[index];
    put_row_names(e, part, index + 1);
    for (int k = 0; k < part->span_count; k++) {
        struct clock_stretch s = stretch_of(part, &part->spans[k]);
        if (!is_shown(window, part, &s)) continue;
        s.begin_ns -= window->steps.begin_ns;
        s.end_ns -= window->steps.begin_ns;
        put_span(e, index + 1, &s, &part->spans[k]);
    }
}

/* Their caller ends both lists. */
static void put_tasks(FILE *f, const struct timeline *t)
{
    char name[NAME_MAX_BYTES];
    const char *comma = "";
    for (int i = 0; i < t->part_count; i++) {
        const struct timeline_part *part = &t->parts[i];
        if (part->missing) continue;
        task_name_of(part, name);
        fprintf(f, "%s\n{\"task\":\"%s\",\"shift_us\":", comma, name);
        put_us(f, part->shift_ns);
        fputs(",\"error_us\":", f);
        put_us(f, (int64_t)part->error_ns);
        fprintf(f, ",\"spans\":%d,\"dropped\":%" PRIu64 "}", part->span_count, part->dropped);
        comma = ",";
    }
}

static void put_missing(FILE *f, const struct timeline *t)
{
    char name[NAME_MAX_BYTES];
    const char *comma = "";
    for (int i = 0; i < t->part_count; i++) {
        const struct timeline_part *part = &t->parts[i];
        if (!part->missing) continue;
        task_name_of(part, name);
        fprintf(f, "%s\n{\"task\":\"%s\",\"why\":", comma, name);
        put_string(f, part->missing);
        putc('}', f);
        comma = ",";
    }
}

static void put_timeline(FILE *f, const struct timeline *t)
{
    const struct clock_window window = window_of(t);
    struct events_file events = {.file = f, .timeline = t};
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", f);
    for (int i = 0; i < t->part_count; i++)
        if (!t->parts[i].missing) put_part(&events, i, &window);
    fprintf(f, "],\n\"otherData\":{\"first_step\":%" PRIu64 ",\"steps\":%d,\"window_us\":",
            t->first_step, t->steps);
    put_us(f, window.steps.end_ns - window.steps.begin_ns);
    fputs(",\n\"clock\":\"times are of worker/0; error_us: by which those of a task may be wrong "
          "either way\",\n\"tasks\":[",
          f);
    put_tasks(f, t);
    fputs("],\n\"missing\":[", f);
    put_missing(f, t);
    fputs("]}}\n", f);
}

err timeline_text(const struct timeline *t, char **ret, size_t *ret_bytes)
{
    *ret = NULL;
    FILE *f = open_memstream(ret, ret_bytes);
    if (!f) return fail(ERR_MEMORY, "no memory for a timeline");
    put_timeline(f, t);
    if (fclose(f) == 0) return OK;
    free(*ret);
    *ret = NULL;
    return fail(ERR_MEMORY, "no memory for a timeline");
}

err timeline_write(const struct timeline *t, const char *path)
{
    char *text;
    size_t bytes;
    err e = timeline_text(t, &text, &bytes);
    e = e ? fail_prefix(e, "%s", path) : file_replace(path, text, bytes);
    free(text);
    return e;
}

/* ---- shares ---- */

static double seconds_of(const struct span *span)
{
    return (double)(span->end_ns - span->begin_ns) * 1e-9;
}

/* How much of the next step was computed in this interval of the worker's clock */
static double speculated_in(const struct timeline_part *part, const struct span *step,
                            uint64_t begin_ns, uint64_t end_ns)
{
    double seconds = 0;
    for (int k = 0; k < part->span_count; k++) {
        const struct span *s = &part->spans[k];
        const bool is_ahead = s->kind == SPAN_FORWARD && s->step > step->step;
        if (is_ahead && s->begin_ns >= begin_ns && s->end_ns <= end_ns) seconds += seconds_of(s);
    }
    return seconds;
}

/* Time of the exchange with all ps within the step; pushes overlap. Parts leave before the first
 * push, while other gradients are computed, and after it the next step's forward pass may begin. */
static void add_exchange(const struct timeline_part *part, const struct span *step,
                         struct timeline_shares *shares)
{
    uint64_t begin_ns = step->end_ns, left_ns = step->begin_ns, answered_ns = step->begin_ns;
    uint64_t first_ns = step->end_ns;
    for (int k = 0; k < part->span_count; k++) {
        const struct span *s = &part->spans[k];
        if (s->kind != SPAN_PUSH && s->kind != SPAN_WAIT && s->kind != SPAN_PART) continue;
        if (s->begin_ns < step->begin_ns || s->end_ns > step->end_ns) continue;
        if (s->begin_ns < first_ns) first_ns = s->begin_ns;
        if (s->kind == SPAN_PART) continue;
        if (s->begin_ns < begin_ns) begin_ns = s->begin_ns;
        if (s->kind == SPAN_PUSH && s->end_ns > left_ns) left_ns = s->end_ns;
        if (s->end_ns > answered_ns) answered_ns = s->end_ns;
    }
    if (begin_ns > first_ns) shares->hidden += (double)(begin_ns - first_ns) * 1e-9;
    if (left_ns <= begin_ns) return;
    const double pushing = speculated_in(part, step, begin_ns, left_ns);
    shares->push += (double)(left_ns - begin_ns) * 1e-9 - pushing;
    shares->hidden += pushing;
    if (answered_ns <= left_ns) return;
    const double waiting = speculated_in(part, step, left_ns, answered_ns);
    shares->wait += (double)(answered_ns - left_ns) * 1e-9 - waiting;
    shares->hidden += waiting;
}

uint64_t timeline_lead(bool is_sync, int workers)
{
    return is_sync ? 1 : (uint64_t)workers;
}

struct timeline_shares timeline_shares(const struct timeline_part *part)
{
    struct timeline_shares shares = {0};
    for (int k = 0; !part->missing && k < part->span_count; k++) {
        const struct span *s = &part->spans[k];
        switch (s->kind) {
        case SPAN_STEP:
            shares.count++;
            shares.steps += seconds_of(s);
            add_exchange(part, s, &shares);
            break;
        case SPAN_FORWARD:
        case SPAN_LOSS:
        case SPAN_BACKWARD:
        case SPAN_CLIP:
            if (span_tower(s) == 0) shares.compute += seconds_of(s);
            break;
        case SPAN_AWAIT:
            shares.wait += seconds_of(s);
            break;
        case SPAN_DATA:
            shares.data += seconds_of(s);
            break;
        case SPAN_HOOKS:
            shares.hooks += seconds_of(s);
            break;
        default:
            break;
        }
    }
    return shares;
}
