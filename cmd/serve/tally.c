/* tally.c - see tally.h. */
#include "cmd/serve/tally.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/memory.h"

struct tally {
    pthread_mutex_t lock;
    uint64_t began_ns;
    double fresh_s; /* unix time of the values that are served; 0: unknown */
    double at[SERVED_COUNTERS];
};

err tally_open(struct tally **ret)
{
    struct tally *t = calloc(1, sizeof *t);
    if (!t) return fail(ERR_MEMORY, "no memory for counters");
    pthread_mutex_init(&t->lock, NULL);
    t->began_ns = clock_ns();
    *ret = t;
    return OK;
}

void tally_close(struct tally *t)
{
    if (!t) return;
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- noting ---- */

static void note_seconds(struct tally *t, double seconds)
{
    static const double most[] = {0.001, 0.002, 0.005, 0.01, 0.05, 0.2, 1};
    for (int i = 0; i < (int)(sizeof most / sizeof *most); i++)
        t->at[SERVED_SECONDS_1 + i] += seconds <= most[i];
    t->at[SERVED_SECONDS_ANY]++;
    t->at[SERVED_SECONDS_SUM] += seconds;
    t->at[SERVED_SECONDS_COUNT]++;
}

void tally_note_request(struct tally *t, int status, int64_t rows, uint64_t ns)
{
    pthread_mutex_lock(&t->lock);
    t->at[status < 400   ? SERVED_REQUESTS_OK
          : status < 500 ? SERVED_REQUESTS_BAD
                         : SERVED_REQUESTS_FAILED]++;
    if (status < 400) t->at[SERVED_ROWS] += (double)rows;
    note_seconds(t, (double)ns * 1e-9);
    pthread_mutex_unlock(&t->lock);
}

void tally_note_wait(struct tally *t, uint64_t ns)
{
    pthread_mutex_lock(&t->lock);
    t->at[SERVED_WAIT_SECONDS] += (double)ns * 1e-9;
    pthread_mutex_unlock(&t->lock);
}

void tally_note_batch(struct tally *t, int64_t rows, uint64_t ns)
{
    pthread_mutex_lock(&t->lock);
    t->at[SERVED_BATCHES]++;
    t->at[SERVED_BATCH_ROWS] += (double)rows;
    t->at[SERVED_BATCH_SECONDS] += (double)ns * 1e-9;
    pthread_mutex_unlock(&t->lock);
}

void tally_note_version(struct tally *t, int64_t number, err failure)
{
    pthread_mutex_lock(&t->lock);
    t->at[failure ? SERVED_VERSIONS_FAILED : SERVED_VERSIONS]++;
    if (!failure) {
        t->at[SERVED_VERSION] = (double)number;
        t->at[SERVED_VERSION_TIME] = clock_unix_s();
        t->at[SERVED_STEP] = (double)number;
        t->fresh_s = 0;
    }
    pthread_mutex_unlock(&t->lock);
}

void tally_note_fresh(struct tally *t, int64_t step, double time_s)
{
    pthread_mutex_lock(&t->lock);
    t->at[SERVED_DELTAS] += (double)step > t->at[SERVED_STEP];
    t->at[SERVED_STEP] = (double)step;
    t->fresh_s = time_s;
    pthread_mutex_unlock(&t->lock);
}

void tally_note_lost(struct tally *t)
{
    pthread_mutex_lock(&t->lock);
    t->at[SERVED_DELTAS_LOST]++;
    pthread_mutex_unlock(&t->lock);
}

/* ---- reading ---- */

void tally_read(struct tally *t, double at[SERVED_COUNTERS])
{
    pthread_mutex_lock(&t->lock);
    memcpy(at, t->at, sizeof t->at);
    const double fresh_s = t->fresh_s, age_s = clock_unix_s() - fresh_s;
    at[SERVED_AGE] = fresh_s > 0 && age_s > 0 ? age_s : 0; /* clocks of hosts differ */
    at[SERVED_UPTIME] = (double)(clock_ns() - t->began_ns) * 1e-9;
    pthread_mutex_unlock(&t->lock);
    at[SERVED_MEMORY] = memory_resident();
}
