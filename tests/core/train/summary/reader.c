/* reader.c - see reader.h. */
#include "tests/core/train/summary/reader.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/crc32c.h"

enum { FILE_BYTES_MAX = 64 << 20, HEADER_BYTES = 12, TRAILER_BYTES = 4 };

struct bytes file_load(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is not there", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long count = ftell(file);
    assert_in_range(count, 0, FILE_BYTES_MAX);
    rewind(file);
    uint8_t *at = malloc((size_t)count + 1);
    assert_non_null(at);
    assert_int_equal(fread(at, 1, (size_t)count, file), count);
    fclose(file);
    return (struct bytes){at, (size_t)count};
}

static uint64_t little_endian(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

static struct bytes take(struct bytes *rest, size_t count)
{
    assert_true(count <= rest->count);
    const struct bytes taken = {rest->at, count};
    rest->at += count;
    rest->count -= count;
    return taken;
}

static void check_checksum(struct bytes data, struct bytes *rest)
{
    const uint64_t stored = little_endian(take(rest, TRAILER_BYTES).at, TRAILER_BYTES);
    assert_int_equal(stored, crc32c_mask(crc32c(data.at, data.count)));
}

bool record_next(struct bytes *rest, struct bytes *ret)
{
    if (rest->count == 0) return false;
    const struct bytes length = take(rest, HEADER_BYTES - TRAILER_BYTES);
    check_checksum(length, rest);
    *ret = take(rest, little_endian(length.at, 8));
    check_checksum(*ret, rest);
    return true;
}

int record_count(struct bytes file)
{
    int count = 0;
    for (struct bytes record; record_next(&file, &record);) count++;
    return count;
}

struct bytes record_at(struct bytes file, int index)
{
    struct bytes record = {0};
    for (int i = 0; i <= index; i++)
        if (!record_next(&file, &record)) fail_msg("the file has %d records", i);
    return record;
}

static uint64_t take_varint(struct bytes *rest)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        const uint8_t byte = *take(rest, 1).at;
        value |= (uint64_t)(byte & 0x7f) << (shift & 63);
        if (byte < 0x80) return value;
    }
    fail_msg("a varint of more than ten bytes");
    return 0;
}

static double double_at(const uint8_t *at)
{
    const uint64_t bits = little_endian(at, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double float_at(const uint8_t *at)
{
    const uint32_t bits = (uint32_t)little_endian(at, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

bool part_next(struct bytes *rest, struct part *ret)
{
    if (rest->count == 0) return false;
    const uint64_t key = take_varint(rest);
    *ret = (struct part){.field = (int)(key >> 3)};
    assert_in_range(ret->field, 1, 1000);
    if ((key & 7) == 0)
        ret->integer = take_varint(rest);
    else if ((key & 7) == 1)
        ret->real = double_at(take(rest, 8).at);
    else if ((key & 7) == 2)
        ret->content = take(rest, take_varint(rest));
    else if ((key & 7) == 5)
        ret->real = float_at(take(rest, 4).at);
    else
        fail_msg("a field of kind %d", (int)(key & 7));
    return true;
}

int part_count(struct bytes message, int field)
{
    int count = 0;
    for (struct part part; part_next(&message, &part);) count += part.field == field;
    return count;
}

struct part part_at(struct bytes message, int field, int index)
{
    for (struct part part; part_next(&message, &part);)
        if (part.field == field && index-- == 0) return part;
    fail_msg("field %d is not there so often", field);
    return (struct part){0};
}

struct part part_of(struct bytes message, int field)
{
    assert_int_equal(part_count(message, field), 1);
    return part_at(message, field, 0);
}

bool bytes_are(struct bytes bytes, const char *text)
{
    return bytes.count == strlen(text) && memcmp(bytes.at, text, bytes.count) == 0;
}

bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.count == b.count && memcmp(a.at, b.at, a.count) == 0;
}

double bytes_double(struct bytes bytes, int index)
{
    assert_true(((size_t)index + 1) * 8 <= bytes.count);
    return double_at(bytes.at + (size_t)index * 8);
}

void scratch_make(char ret_path[64])
{
    strcpy(ret_path, "/tmp/dtrain-summary-XXXXXX");
    assert_non_null(mkdtemp(ret_path));
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    return remove(path);
}

void scratch_remove(const char *path)
{
    assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void scratch_find(const char *folder, const char *word, char ret_path[512])
{
    ret_path[0] = '\0';
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        if (!strstr(entry->d_name, word)) continue;
        assert_int_equal(ret_path[0], '\0');
        snprintf(ret_path, 512, "%s/%s", folder, entry->d_name);
    }
    closedir(directory);
}
