/* bench_report.c - figures as lines, and kept for the file. */
#include <stdio.h>
#include <string.h>

#include "tests/cuda/bench/bench.h"

static double rate_of(const struct figure *f)
{
    const double per_us = f->amount / f->us;
    return strcmp(f->unit, "TFLOP/s") == 0 ? per_us * 1e-6 : per_us * 1e-3;
}

static void print(const struct figure *f, double ratio)
{
    printf("%-48s %10.2f us %9.2f %-7s", f->name, f->us, rate_of(f), f->unit);
    if (f->peer_us > 0)
        printf(" %5.2f of %s", ratio, f->peer);
    else
        printf("  no %s to compare with", f->peer);
    if (f->peer_us > 0 && f->goal > 0)
        printf(", goal %.2f: %s", f->goal, ratio >= f->goal ? "met" : "missed");
    printf("\n");
    fflush(stdout);
}

/* A figure without a peer, or without a goal, is neither met nor missed: null. */
void bench_report(struct bench *b, const struct figure *f)
{
    const double ratio = f->peer_us / f->us;
    const bool has_goal = f->peer_us > 0 && f->goal > 0;
    json_t *figure = json_pack("{ss ss sf sf ss ss so so so}", "group", f->group, "name", f->name,
                               "us", f->us, "rate", rate_of(f), "unit", f->unit, "peer", f->peer,
                               "ratio", f->peer_us > 0 ? json_real(ratio) : json_null(), "goal",
                               f->goal > 0 ? json_real(f->goal) : json_null(), "is_met",
                               has_goal ? json_boolean(ratio >= f->goal) : json_null());
    if (!figure || json_array_append_new(b->figures, figure) != 0) {
        (void)fail(ERR_MEMORY, "no memory for a figure");
        bench_give_up();
    }
    print(f, ratio);
}
