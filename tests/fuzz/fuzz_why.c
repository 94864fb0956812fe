/* What a run has left, as dtrain why reads it: a result, lines of metrics, a log, or what looks
 * like one of these.
 */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/why/causes.h"

static char path[4096];

static void remove_file(void)
{
    unlink(path);
}

static void make_file(struct view input)
{
    const char *base = getenv("TMPDIR");
    if (!path[0]) {
        snprintf(path, sizeof path, "%s/dtrain-fuzz-XXXXXX", base ? base : "/tmp");
        const int fd = mkstemp(path);
        if (fd < 0) exit(2);
        close(fd);
        atexit(remove_file);
    }
    FILE *file = fopen(path, "wb");
    if (!file) exit(2);
    fwrite(input.at, 1, view_bytes(input), file);
    fclose(file);
}

static void hold(const struct quote *quote)
{
    fuzz_holds(memchr(quote->text, '\0', sizeof quote->text) != NULL, "a quote has an end");
    fuzz_holds(memchr(quote->where, '\0', sizeof quote->where) != NULL, "a place has an end");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct evidence evidence;
    static struct finding found[CAUSES_MAX];
    memset(&evidence, 0, sizeof evidence);
    make_file((struct view){bytes, bytes + count});
    if (fuzz_went_well(evidence_read(path, &evidence))) {
        const int causes = causes_find(&evidence, found);
        fuzz_holds(causes >= 0 && causes <= CAUSES_MAX, "there are no more causes");
        hold(&evidence.result.verdict);
        hold(&evidence.metrics.gap);
        for (int i = 0; i < LINES; i++) hold(&evidence.logs.first[i]);
    }
    evidence_free(&evidence);
    return 0;
}
