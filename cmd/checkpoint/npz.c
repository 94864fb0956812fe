/* npz.c - see npz.h. Layouts: PKWARE's APPNOTE 4.3 and numpy's NEP 1, version 1.0. */
#include "cmd/checkpoint/npz.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "cmd/out_file.h"

enum {
    NPY_ALIGN = 64, /* of the elements in the member */
    NAME_BYTES_MAX = 60000,
    MEMBERS_MAX = 1 << 24,
    CRC_PIECE_BYTES = 1 << 30, /* zlib's crc32() takes 32-bit lengths */
    VERSION_ZIP64 = 45,
    DATE_1980 = 1 << 5 | 1, /* zip's earliest date, constant so that output is reproducible */
    UNIX_BY_ZIP64 = 3 << 8 | VERSION_ZIP64,
    MODE_BITS = 0644,
};
static const uint32_t IN_ZIP64 = 0xffffffff; /* marks that the value is in the zip64 field */

struct npz_member {
    char *name; /* with .npy; owned */
    uint32_t crc;
    uint64_t bytes, offset;
};

struct npz {
    struct out_file out;
    struct npz_member *members;
    size_t count, capacity;
    uint64_t offset; /* written so far */
};

/* ---- bytes ---- */

/* A record of a zip: little-endian fields, one after another. */
struct zip_record {
    uint8_t at[128];
    size_t length;
};

static void put(struct zip_record *r, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) r->at[r->length++] = (uint8_t)(value >> 8 * i);
}

static err write_bytes(struct npz *z, const void *bytes, size_t count)
{
    if (count > 0 && fwrite(bytes, 1, count, z->out.file) != count)
        return fail(ERR_IO, "%s: %s", z->out.temporary, strerror(errno));
    z->offset += count;
    return OK;
}

static uint32_t crc_of(uint32_t crc, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    while (count > 0) {
        const size_t piece = count < CRC_PIECE_BYTES ? count : CRC_PIECE_BYTES;
        crc = (uint32_t)crc32(crc, at, (uInt)piece);
        at += piece;
        count -= piece;
    }
    return crc;
}

/* ---- the .npy member ---- */

/* A tuple as Python writes it: (), (3,), (3, 4). */
static int print_shape(const struct npz_array *array, char *text, size_t size)
{
    int length = snprintf(text, size, "(");
    for (int i = 0; i < array->rank; i++)
        length += snprintf(text + length, size - (size_t)length, "%lld%s", (long long)array->dim[i],
                           i + 1 < array->rank ? ", "
                           : array->rank == 1  ? ","
                                               : "");
    return length + snprintf(text + length, size - (size_t)length, ")");
}

/* Magic, version, length of what follows, and a Python dictionary, padded with blanks. */
struct npy_header npy_header(const struct npz_array *array)
{
    struct npy_header header, *h = &header;
    static const char magic[] = "\x93NUMPY\x01"; /* and the 0 that ends it: version 1.0 */
    const size_t begin = sizeof magic + 2;
    char *text = h->at + begin;
    memset(h->at, ' ', sizeof h->at);
    memcpy(h->at, magic, sizeof magic);
    int length = snprintf(text, NPY_HEADER_MAX - begin,
                          "{'descr': '%s', 'fortran_order': False, 'shape': ", array->type);
    length += print_shape(array, text + length, NPY_HEADER_MAX - begin - (size_t)length);
    length += snprintf(text + length, NPY_HEADER_MAX - begin - (size_t)length, ", }");
    text[length] = ' ';
    h->length = (begin + (size_t)length + NPY_ALIGN) / NPY_ALIGN * NPY_ALIGN;
    h->at[h->length - 1] = '\n';
    h->at[begin - 2] = (char)((h->length - begin) & 0xff);
    h->at[begin - 1] = (char)((h->length - begin) >> 8);
    return header;
}

/* ---- the zip ---- */

static void put_method_and_time(struct zip_record *r)
{
    put(r, 0, 2); /* flags */
    put(r, 0, 2); /* stored */
    put(r, 0, 2); /* midnight */
    put(r, DATE_1980, 2);
}

static err write_local(struct npz *z, const struct npz_member *m)
{
    struct zip_record r = {.length = 0};
    put(&r, 0x04034b50, 4);
    put(&r, VERSION_ZIP64, 2);
    put_method_and_time(&r);
    put(&r, m->crc, 4);
    put(&r, IN_ZIP64, 4);
    put(&r, IN_ZIP64, 4);
    put(&r, strlen(m->name), 2);
    put(&r, 20, 2); /* bytes of the zip64 field */
    TRY(write_bytes(z, r.at, r.length));
    TRY(write_bytes(z, m->name, strlen(m->name)));
    r.length = 0;
    put(&r, 1, 2); /* zip64 */
    put(&r, 16, 2);
    put(&r, m->bytes, 8);
    put(&r, m->bytes, 8);
    return write_bytes(z, r.at, r.length);
}

static err write_central(struct npz *z, const struct npz_member *m)
{
    struct zip_record r = {.length = 0};
    put(&r, 0x02014b50, 4);
    put(&r, UNIX_BY_ZIP64, 2);
    put(&r, VERSION_ZIP64, 2);
    put_method_and_time(&r);
    put(&r, m->crc, 4);
    put(&r, IN_ZIP64, 4);
    put(&r, IN_ZIP64, 4);
    put(&r, strlen(m->name), 2);
    put(&r, 28, 2);                                    /* bytes of the zip64 field */
    put(&r, 0, 2);                                     /* comment */
    put(&r, 0, 2);                                     /* disk */
    put(&r, 0, 2);                                     /* internal attributes */
    put(&r, (uint64_t)(0100000 | MODE_BITS) << 16, 4); /* a regular file */
    put(&r, IN_ZIP64, 4);
    TRY(write_bytes(z, r.at, r.length));
    TRY(write_bytes(z, m->name, strlen(m->name)));
    r.length = 0;
    put(&r, 1, 2); /* zip64 */
    put(&r, 24, 2);
    put(&r, m->bytes, 8);
    put(&r, m->bytes, 8);
    put(&r, m->offset, 8);
    return write_bytes(z, r.at, r.length);
}

/* zip64's end record, its locator, and the old end record, all of whose values refer to zip64. */
static err write_end(struct npz *z, uint64_t central)
{
    struct zip_record r = {.length = 0};
    const uint64_t end = z->offset;
    put(&r, 0x06064b50, 4);
    put(&r, 44, 8); /* bytes of this record that follow */
    put(&r, UNIX_BY_ZIP64, 2);
    put(&r, VERSION_ZIP64, 2);
    put(&r, 0, 4); /* this disk */
    put(&r, 0, 4); /* disk of the central directory */
    put(&r, z->count, 8);
    put(&r, z->count, 8);
    put(&r, end - central, 8);
    put(&r, central, 8);
    put(&r, 0x07064b50, 4); /* locator */
    put(&r, 0, 4);
    put(&r, end, 8);
    put(&r, 1, 4); /* disks */
    put(&r, 0x06054b50, 4);
    put(&r, 0, 4);          /* disks */
    put(&r, 0xffffffff, 4); /* members, twice */
    put(&r, IN_ZIP64, 4);
    put(&r, IN_ZIP64, 4);
    put(&r, 0, 2); /* comment */
    return write_bytes(z, r.at, r.length);
}

/* ---- the archive ---- */

err npz_create(const char *path, struct npz **ret)
{
    struct npz *z = calloc(1, sizeof *z);
    if (!z) return fail(ERR_MEMORY, "no memory for %s", path);
    const err e = out_file_open(&z->out, path);
    if (e)
        npz_abandon(z);
    else
        *ret = z;
    return e;
}

/* Called before the member's bytes are written: notes its offset for the central directory. */
static err new_member(struct npz *z, const char *name, struct npz_member **ret)
{
    if (z->count == z->capacity) {
        const size_t capacity = z->capacity ? 2 * z->capacity : 64;
        struct npz_member *members = realloc(z->members, capacity * sizeof *members);
        if (!members) return fail(ERR_MEMORY, "no memory for %zu arrays", capacity);
        z->members = members;
        z->capacity = capacity;
    }
    struct npz_member m = {.offset = z->offset};
    if (asprintf(&m.name, "%s.npy", name) < 0)
        return fail(ERR_MEMORY, "no memory for the name %s", name);
    z->members[z->count] = m;
    *ret = &z->members[z->count++];
    return OK;
}

/* The checksum precedes the bytes; computed first, since they are all in memory. */
err npz_add(struct npz *z, const struct npz_array *array)
{
    const struct npy_header header = npy_header(array);
    struct npz_member *m = NULL;
    if (strlen(array->name) > NAME_BYTES_MAX || z->count == MEMBERS_MAX)
        return fail(ERR_INPUT, "%.64s...: a name too long, or too many arrays", array->name);
    TRY(new_member(z, array->name, &m));
    m->bytes = header.length + array->bytes;
    m->crc = crc_of(crc_of(0, header.at, header.length), array->elements, array->bytes);
    TRY(write_local(z, m));
    TRY(write_bytes(z, header.at, header.length));
    return write_bytes(z, array->elements, array->bytes);
}

err npz_finish(struct npz *z)
{
    const uint64_t central = z->offset;
    err e = OK;
    for (size_t i = 0; !e && i < z->count; i++) e = write_central(z, &z->members[i]);
    if (!e) e = write_end(z, central);
    if (!e) e = out_file_publish(&z->out);
    npz_abandon(z);
    return e;
}

void npz_abandon(struct npz *z)
{
    if (!z) return;
    out_file_close(&z->out);
    for (size_t i = 0; i < z->count; i++) free(z->members[i].name);
    free(z->members);
    free(z);
}
