/* A record of turns, of two ps. The first bytes say which ps is asked for, up to which step, and
 * how much is of ps/0; where a bit says so the first rows of a file are those of a right section.
 */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cluster/runner/record_inside.h"

enum { FILES = 2, WORKERS = 3, ROW_BYTES = RECORD_NUMBERS * sizeof(uint32_t) };

static char folder[4096], names[FILES][RECORD_PATH_MAX];

static void remove_files(void)
{
    for (int ps = 0; ps < FILES; ps++) unlink(names[ps]);
    rmdir(folder);
}

static void make_folder(void)
{
    const char *base = getenv("TMPDIR");
    char path[sizeof folder + 8];
    if (folder[0]) return;
    snprintf(folder, sizeof folder, "%s/dtrain-fuzz-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) exit(2);
    snprintf(path, sizeof path, "%s/turns", folder);
    for (int ps = 0; ps < FILES; ps++)
        if (record_path(path, ps, names[ps])) exit(2);
    atexit(remove_files);
}

static void put(FILE *file, uint32_t number)
{
    const uint32_t bytes = htole32(number);
    if (fwrite(&bytes, sizeof bytes, 1, file) != 1) exit(2);
}

static void put_section(FILE *file, int ps)
{
    const double one = 1;
    uint32_t factor[2];
    memcpy(factor, &one, sizeof one);
    const uint32_t rows[RECORD_HEAD_ROWS * RECORD_NUMBERS] = {(uint32_t)RECORD_SECTION << 24 |
                                                                  RECORD_VERSION,
                                                              (uint32_t)ps,
                                                              FILES,
                                                              WORKERS,
                                                              7,
                                                              0,
                                                              0,
                                                              0,
                                                              5,
                                                              0,
                                                              factor[0],
                                                              factor[1]};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) put(file, rows[i]);
}

static void write_file(int ps, bool has_section, struct view bytes)
{
    FILE *file = fopen(names[ps], "wb");
    if (!file) exit(2);
    if (has_section) put_section(file, ps);
    if (view_bytes(bytes) && fwrite(bytes.at, view_bytes(bytes), 1, file) != 1) exit(2);
    fclose(file);
}

static void hold(const struct replay *replay, int ps)
{
    const struct turns *turns = &replay->turns;
    fuzz_holds(replay->section.ps_count > ps, "who is asked for is one of them");
    fuzz_holds(turns->count >= 0 && (!turns->count || turns->at), "turns are there");
    for (int64_t i = 0; i < turns->count; i++)
        fuzz_holds(turns->at[i].kind == TURN_END || turns->at[i].worker < replay->section.workers,
                   "a turn is of a worker");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct view input = {bytes, bytes + count};
    const uint8_t how = fuzz_byte(&input), step = fuzz_byte(&input), rows = fuzz_byte(&input);
    const int ps = how % FILES;
    struct replay replay = {0};
    char path[sizeof folder + 8];
    make_folder();
    const struct view first = fuzz_bytes(&input, rows * ROW_BYTES);
    write_file(0, how & 2, first);
    write_file(1, how & 4, how & 8 ? first : input);
    snprintf(path, sizeof path, "%s/turns", folder);
    if (fuzz_went_well(replay_read(path, ps, step, &replay))) {
        hold(&replay, ps);
        replay_free(&replay);
    }
    return 0;
}
