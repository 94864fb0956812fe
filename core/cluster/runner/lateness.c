/* lateness.c - see lateness.h. */
#include "core/cluster/runner/lateness.h"

#include <stdlib.h>

struct late_worker {
    uint64_t came_ns;
    double late_s; /* a sum in which earlier rounds count less and less */
};

static const double KEPT = 1 - 1.0 / 32; /* factor per round */

err lateness_open(struct lateness *l, int workers)
{
    *l = (struct lateness){workers, calloc((size_t)workers + 1, sizeof *l->at), -1, 0};
    return l->at ? OK : fail(ERR_MEMORY, "no memory for %d workers", workers);
}

void lateness_close(struct lateness *l)
{
    free(l->at);
    *l = (struct lateness){0};
}

void lateness_came(struct lateness *l, int worker, uint64_t now_ns)
{
    if (worker < l->workers) l->at[worker].came_ns = now_ns;
}

void lateness_round(struct lateness *l, const int *workers, int count)
{
    uint64_t last_ns = 0, before_ns = 0;
    int last = -1;
    if (count < 2) return;
    for (int i = 0; i < count; i++) {
        const uint64_t came_ns = l->at[workers[i]].came_ns;
        if (last < 0 || came_ns > last_ns) {
            before_ns = last_ns;
            last_ns = came_ns;
            last = workers[i];
        } else if (came_ns > before_ns) {
            before_ns = came_ns;
        }
    }
    const double late_s = (double)(last_ns - before_ns) / 1e9;
    for (int w = 0; w < l->workers; w++) l->at[w].late_s *= KEPT;
    l->at[last].late_s += late_s;
    if (l->latest < 0 || l->at[last].late_s > l->at[l->latest].late_s) l->latest = last;
    if (l->latest == last) l->waited_s += late_s;
}
