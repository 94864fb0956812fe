/* tally.c - see tally.h. */
#include "cmd/serve/tally.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/memory.h"

/* The one table: ID, family, type, labels, help of the family ("": as before). Rows of a family
 * stand together. */
#define TALLY(X)                                                                                   \
    X(REQUESTS_OK, "serve_requests_total", "counter", "answer=\"ok\"",                             \
      "requests to models, by how they were answered")                                             \
    X(REQUESTS_BAD, "serve_requests_total", "counter", "answer=\"refused\"", "")                   \
    X(REQUESTS_FAILED, "serve_requests_total", "counter", "answer=\"failed\"", "")                 \
    X(ROWS, "serve_rows_total", "counter", "", "rows that were answered")                          \
    X(BATCHES, "serve_batches_total", "counter", "", "batches that were computed")                 \
    X(BATCH_ROWS, "serve_batch_rows_total", "counter", "", "rows of these batches")                \
    X(BATCH_SECONDS, "serve_batch_seconds_total", "counter", "", "time that they took")            \
    X(WAIT_SECONDS, "serve_wait_seconds_total", "counter", "",                                     \
      "time that requests waited for a batch to begin, summed over requests and batches")          \
    X(SECONDS_1, "serve_request_seconds_bucket", "histogram", "le=\"0.001\"",                      \
      "from a whole request to its answer")                                                        \
    X(SECONDS_2, "serve_request_seconds_bucket", "histogram", "le=\"0.002\"", "")                  \
    X(SECONDS_5, "serve_request_seconds_bucket", "histogram", "le=\"0.005\"", "")                  \
    X(SECONDS_10, "serve_request_seconds_bucket", "histogram", "le=\"0.01\"", "")                  \
    X(SECONDS_50, "serve_request_seconds_bucket", "histogram", "le=\"0.05\"", "")                  \
    X(SECONDS_200, "serve_request_seconds_bucket", "histogram", "le=\"0.2\"", "")                  \
    X(SECONDS_1000, "serve_request_seconds_bucket", "histogram", "le=\"1\"", "")                   \
    X(SECONDS_ANY, "serve_request_seconds_bucket", "histogram", "le=\"+Inf\"", "")                 \
    X(SECONDS_SUM, "serve_request_seconds_sum", "histogram", "", "")                               \
    X(SECONDS_COUNT, "serve_request_seconds_count", "histogram", "", "")                           \
    X(VERSION, "serve_version", "gauge", "", "global step of the checkpoint that was taken last")  \
    X(VERSION_TIME, "serve_version_timestamp_seconds", "gauge", "",                                \
      "when it was taken, in seconds since 1970")                                                  \
    X(VERSIONS, "serve_versions_total", "counter", "", "checkpoints that were taken")              \
    X(VERSIONS_FAILED, "serve_versions_failed_total", "counter", "",                               \
      "checkpoints that could not be")                                                             \
    X(UPTIME, "uptime_seconds", "gauge", "", "since the server began")                             \
    X(MEMORY, "resident_memory_bytes", "gauge", "", "memory of the process that is resident")

enum {
#define ID(ID, ...) AT_##ID,
    TALLY(ID)
#undef ID
        ROWS_OF_TABLE
};

static const struct row_of_tally {
    const char *family, *type, *labels, *help;
} rows_of_tally[ROWS_OF_TABLE] = {
#define ROW(ID, family, type, labels, help) {family, type, labels, help},
    TALLY(ROW)
#undef ROW
};

struct tally {
    pthread_mutex_t lock;
    uint64_t began_ns;
    double at[ROWS_OF_TABLE];
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
        t->at[AT_SECONDS_1 + i] += seconds <= most[i];
    t->at[AT_SECONDS_ANY]++;
    t->at[AT_SECONDS_SUM] += seconds;
    t->at[AT_SECONDS_COUNT]++;
}

void tally_note_request(struct tally *t, int status, int64_t rows, uint64_t ns)
{
    pthread_mutex_lock(&t->lock);
    t->at[status < 400 ? AT_REQUESTS_OK : status < 500 ? AT_REQUESTS_BAD : AT_REQUESTS_FAILED]++;
    if (status < 400) t->at[AT_ROWS] += (double)rows;
    note_seconds(t, (double)ns * 1e-9);
    pthread_mutex_unlock(&t->lock);
}

void tally_note_wait(struct tally *t, uint64_t ns)
{
    pthread_mutex_lock(&t->lock);
    t->at[AT_WAIT_SECONDS] += (double)ns * 1e-9;
    pthread_mutex_unlock(&t->lock);
}

void tally_note_batch(struct tally *t, int64_t rows, uint64_t ns)
{
    pthread_mutex_lock(&t->lock);
    t->at[AT_BATCHES]++;
    t->at[AT_BATCH_ROWS] += (double)rows;
    t->at[AT_BATCH_SECONDS] += (double)ns * 1e-9;
    pthread_mutex_unlock(&t->lock);
}

void tally_note_version(struct tally *t, int64_t number, err failure)
{
    pthread_mutex_lock(&t->lock);
    t->at[failure ? AT_VERSIONS_FAILED : AT_VERSIONS]++;
    if (!failure) {
        t->at[AT_VERSION] = (double)number;
        t->at[AT_VERSION_TIME] = clock_unix_s();
    }
    pthread_mutex_unlock(&t->lock);
}

/* ---- telling ---- */

/* Of a histogram without _bucket, _sum and _count */
static int family_length(const struct row_of_tally *row)
{
    const char *last = strrchr(row->family, '_');
    return (int)(strcmp(row->type, "histogram") ? strlen(row->family)
                                                : (size_t)(last - row->family));
}

void tally_write(struct tally *t, FILE *out)
{
    double at[ROWS_OF_TABLE];
    pthread_mutex_lock(&t->lock);
    memcpy(at, t->at, sizeof at);
    at[AT_UPTIME] = (double)(clock_ns() - t->began_ns) * 1e-9;
    pthread_mutex_unlock(&t->lock);
    at[AT_MEMORY] = memory_resident();
    for (int i = 0; i < ROWS_OF_TABLE; i++) {
        const struct row_of_tally *row = &rows_of_tally[i];
        const int length = family_length(row);
        if (*row->help)
            fprintf(out, "# HELP dtrain_%.*s %s\n# TYPE dtrain_%.*s %s\n", length, row->family,
                    row->help, length, row->family, row->type);
        fprintf(out, "dtrain_%s%s%s%s %.15g\n", row->family, *row->labels ? "{" : "", row->labels,
                *row->labels ? "}" : "", at[i]);
    }
}

void tally_help(FILE *out)
{
    for (int i = 0; i < ROWS_OF_TABLE; i++) {
        const struct row_of_tally *row = &rows_of_tally[i];
        if (*row->help)
            fprintf(out, "  dtrain_%.*s (%s)\n      %s\n", family_length(row), row->family,
                    row->type, row->help);
    }
}
