/* bundle.c - see bundle.h. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/train/bundle.h"

enum { INDEX_BYTES_MAX = 1 << 16, NAME_MAX_BYTES = 256, ENTRIES_MAX = 256 };
enum { FIELD_OFFSET = 4, FIELD_SIZE = 5 };

struct reader {
    const unsigned char *at, *end;
};

static uint64_t varint(struct reader *r)
{
    uint64_t value = 0;
    for (int shift = 0; r->at < r->end && shift < 64; shift += 7) {
        unsigned char byte = *r->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) break;
    }
    return value;
}

/* Steps over one field of a protobuf message; returns its number, the value where it is a varint.
 */
static int next_field(struct reader *r, uint64_t *ret_value)
{
    uint64_t tag = varint(r);
    *ret_value = 0;
    switch (tag & 7) {
    case 0:
        *ret_value = varint(r);
        break;
    case 1:
        r->at += 8;
        break;
    case 2: {
        uint64_t length = varint(r);
        r->at += length;
        break;
    }
    case 5:
        r->at += 4;
        break;
    default:
        r->at = r->end;
    }
    return (int)(tag >> 3);
}

struct entry {
    uint64_t offset, size;
};

static struct entry read_entry(struct reader value)
{
    struct entry entry = {0};
    while (value.at < value.end) {
        uint64_t number;
        int field = next_field(&value, &number);
        if (field == FIELD_OFFSET) entry.offset = number;
        if (field == FIELD_SIZE) entry.size = number;
    }
    return entry;
}

/* Keys share prefixes with the key before them. */
static bool find_entry(struct reader index, const char *name, struct entry *ret)
{
    char key[NAME_MAX_BYTES] = "";
    for (int i = 0; i < ENTRIES_MAX && index.at < index.end; i++) {
        uint64_t shared = varint(&index), fresh = varint(&index), bytes = varint(&index);
        if (shared + fresh >= sizeof key || fresh + bytes > (uint64_t)(index.end - index.at))
            return false;
        memcpy(key + shared, index.at, fresh);
        key[shared + fresh] = '\0';
        index.at += fresh;
        const struct reader value = {index.at, index.at + bytes};
        index.at += bytes;
        if (strcmp(key, name) != 0) continue;
        *ret = read_entry(value);
        return true;
    }
    return false;
}

static err load(const char *prefix, const char *suffix, uint64_t offset, void *ret, size_t bytes,
                size_t *ret_read)
{
    char path[1024];
    snprintf(path, sizeof path, "%s%s", prefix, suffix);
    FILE *f = fopen(path, "rb");
    if (!f) return fail(ERR_IO, "cannot open %s", path);
    bool is_there = fseek(f, (long)offset, SEEK_SET) == 0;
    *ret_read = is_there ? fread(ret, 1, bytes, f) : 0;
    fclose(f);
    return OK;
}

err bundle_read(const char *prefix, const char *name, float *ret_values, int64_t count)
{
    static unsigned char index[INDEX_BYTES_MAX];
    size_t length, wanted = (size_t)count * sizeof(float);
    struct entry entry;
    TRY(load(prefix, ".index", 0, index, sizeof index, &length));
    if (!find_entry((struct reader){index, index + length}, name, &entry) || entry.size != wanted)
        return fail(ERR_INPUT, "%s has no %s of %zu bytes", prefix, name, wanted);
    TRY(load(prefix, ".data-00000-of-00001", entry.offset, ret_values, wanted, &length));
    return length == wanted ? OK : fail(ERR_INPUT, "%s is short", prefix);
}
