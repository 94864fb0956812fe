/* trace.c - see trace.h. */
#include "core/base/trace.h"

#include <stdlib.h>

err trace_open(struct trace *trace, int capacity)
{
    *trace = (struct trace){.spans = calloc((size_t)capacity, sizeof *trace->spans)};
    if (!trace->spans) return fail(ERR_MEMORY, "no memory for a trace of %d spans", capacity);
    trace->capacity = capacity;
    return OK;
}

void trace_close(struct trace *trace)
{
    free(trace->spans);
    *trace = (struct trace){0};
}

void trace_clear(struct trace *trace)
{
    trace->count = 0;
    trace->dropped = 0;
}

void trace_add(struct trace *trace, const struct span *span)
{
    if (trace->count == trace->capacity)
        trace->dropped++;
    else
        trace->spans[trace->count++] = *span;
}
