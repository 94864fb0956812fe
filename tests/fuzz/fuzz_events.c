/* Files of numbers, as dtrain plot reads them: events, or lines. The first byte says which, and
 * whether the input is made to records, whose checksums hold.
 */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/plot/curves.h"
#include "core/base/crc32c.h"

enum { LINES, EVENTS, RECORDS, KINDS };

static char folder[4096], lines[4128], events[4128];

static void remove_folder(void)
{
    unlink(lines);
    unlink(events);
    rmdir(folder);
}

static void make_folder(void)
{
    const char *base = getenv("TMPDIR");
    if (folder[0]) return;
    snprintf(folder, sizeof folder, "%s/dtrain-fuzz-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) exit(2);
    snprintf(lines, sizeof lines, "%s/metrics.jsonl", folder);
    snprintf(events, sizeof events, "%s/events.out.tfevents.1", folder);
    atexit(remove_folder);
}

static void frame(struct view input, struct buffer *ret)
{
    while (view_bytes(input)) {
        const size_t length = fuzz_byte(&input);
        const struct view record = fuzz_bytes(&input, length);
        const uint64_t bytes = htole64(view_bytes(record));
        buffer_put(ret, &bytes, sizeof bytes);
        buffer_fixed32(ret, crc32c_mask(crc32c(&bytes, sizeof bytes)));
        buffer_put(ret, record.at, view_bytes(record));
        buffer_fixed32(ret, crc32c_mask(crc32c(record.at, view_bytes(record))));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct view input = {bytes, bytes + count};
    struct curves curves = {0};
    struct buffer framed = {0};
    const int kind = fuzz_byte(&input) % KINDS;
    const char *path = kind == LINES ? lines : events;
    make_folder();
    if (kind == RECORDS) frame(input, &framed);
    const struct view all = kind == RECORDS ? buffer_view(&framed) : input;
    FILE *file = fopen(path, "wb");
    if (!file) exit(2);
    fwrite(all.at, 1, view_bytes(all), file);
    fclose(file);
    fuzz_went_well(curves_read(&curves, path));
    curves_free(&curves);
    buffer_drop(&framed);
    return 0;
}
