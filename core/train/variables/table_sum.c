/* table_sum.c - sums the rows that several workers push: see table.h. */
#include <assert.h>
#include <string.h>

#include "core/train/variables/layout.h"
#include "core/train/variables/table.h"

/* The lowest row among the next ones of all lists; INT64_MAX: all lists are done */
static int64_t lowest(const struct row_gradients *of, int count, const int64_t *next)
{
    int64_t row = INT64_MAX;
    for (int i = 0; i < count; i++)
        if (next[i] < of[i].count && of[i].rows[next[i]] < row) row = of[i].rows[next[i]];
    return row;
}

static void add(float *restrict sum, const float *restrict x, bool is_first, int64_t n)
{
    if (is_first)
        memcpy(sum, x, (size_t)n * sizeof *sum);
    else
        for (int64_t i = 0; i < n; i++) sum[i] += x[i];
}

int64_t table_sum(const struct row_gradients *of, int count, int64_t width, float scale,
                  int64_t *ret_rows, float *ret_gradients)
{
    int64_t next[WORKERS_MAX] = {0}, distinct = 0, row;
    assert(count <= WORKERS_MAX);
    while ((row = lowest(of, count, next)) < INT64_MAX) {
        float *sum = ret_gradients + distinct * width;
        bool is_first = true;
        for (int i = 0; i < count; i++) {
            if (next[i] == of[i].count || of[i].rows[next[i]] != row) continue;
            add(sum, of[i].gradients + next[i]++ * width, is_first, width);
            is_first = false;
        }
        for (int64_t i = 0; i < width; i++) sum[i] *= scale;
        ret_rows[distinct++] = row;
    }
    return distinct;
}

void table_sum_times(const struct row_gradients *of, int count, int64_t *ret)
{
    int64_t next[WORKERS_MAX] = {0}, distinct = 0, row;
    assert(count <= WORKERS_MAX);
    while ((row = lowest(of, count, next)) < INT64_MAX) {
        int64_t sum = 0;
        for (int i = 0; i < count; i++)
            if (next[i] < of[i].count && of[i].rows[next[i]] == row)
                sum += row_times(of[i].times, next[i]++);
        ret[distinct++] = sum;
    }
}
