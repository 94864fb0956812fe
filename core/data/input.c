/* input.c - an input file as a stream of bytes, plain or packed: see input.h. */
#include "core/data/input.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/data/packing/unpacker.h"

enum { PASSED_BYTES = 16 << 10 /* unpacked at once when seeking forward */ };

struct input {
    char *path; /* joined with the directory */
    struct file *file;
    struct unpacker *unpacker; /* NULL: not packed */
    uint64_t file_bytes;
    uint64_t read_bytes; /* from the file */
    uint64_t offset;     /* unpacked bytes returned */
    uint64_t pause;      /* see input_pause_at */
};

/* For packed files only the unpacking thread calls this, if there is one. */
static err read_file(void *from, void *to, size_t max, size_t *ret_bytes)
{
    struct input *in = from;
    const uint64_t until = in->unpacker || in->read_bytes >= in->pause ? 0 : in->pause;
    size_t got = 0;
    TRY(file_read_at(in->file, in->read_bytes, until, to, max, &got));
    if (got == 0 && in->read_bytes < in->file_bytes)
        return fail(ERR_INPUT, "%s: had %llu bytes when it was opened and ends after %llu",
                    in->file->name, (unsigned long long)in->file_bytes,
                    (unsigned long long)in->read_bytes);
    in->read_bytes += (uint64_t)got;
    *ret_bytes = got;
    return OK;
}

static err begin_packed(struct input *in, const struct packing *packing)
{
    const struct packed_bytes packed = {read_file, in, in->file->name, !path_is_url(in->path)};
    return unpacker_open(packing, &packed, &in->unpacker);
}

static err start(struct input *in)
{
    uint8_t head[PACKING_HEAD_BYTES];
    TRY(file_open_or_pipe(in->path, &in->file));
    in->file_bytes = in->file->state.bytes;
    const struct packing *packing = packing_of(head, input_head(in, head, sizeof head));
    return packing ? begin_packed(in, packing) : OK;
}

err input_fail_absent(const struct format_context *context)
{
    const char *from = context->directory;
    const bool is_here = !from || !from[0] || strcmp(from, ".") == 0;
    return fail(ERR_INPUT, "%s (relative paths begin at %s; --data_dir names another folder)",
                error_text(), is_here ? "the current folder" : from);
}

err input_open_any(const struct format_context *context, const char *path, struct input **ret)
{
    struct input *in = calloc(1, sizeof *in);
    if (!in) return fail(ERR_MEMORY, "no memory to read %s", path);
    in->path = path_join(context->directory, path);
    err e = in->path ? start(in) : fail(ERR_MEMORY, "no memory to read %s", path);
    if (e == ERR_INPUT && !in->file && !path_is_url(in->path) && path_is_relative(path) &&
        !file_is_there(in->path))
        e = input_fail_absent(context);
    if (e) {
        input_close(in);
        return e;
    }
    *ret = in;
    return OK;
}

err input_open(const struct format_context *context, const char *path, struct input **ret)
{
    struct input *in;
    TRY(input_open_any(context, path, &in));
    const err e = in->file_bytes ? OK : fail(ERR_INPUT, "%s: the file is empty", in->file->name);
    if (e)
        input_close(in);
    else
        *ret = in;
    return e;
}

bool input_is_empty(const struct format_context *context, const char *path)
{
    struct input *in = NULL;
    char byte;
    size_t got = 1;
    if (input_open_any(context, path, &in)) return false;
    const bool is_so = in->file_bytes == 0 || (input_some(in, &byte, 1, &got) == OK && got == 0);
    input_close(in);
    return is_so;
}

void input_close(struct input *in)
{
    if (!in) return;
    unpacker_close(in->unpacker);
    file_close(in->file);
    free(in->path);
    free(in);
}

const char *input_path(const struct input *in)
{
    return in->file->name;
}

bool input_is_packed(const struct input *in)
{
    return in->unpacker;
}

size_t input_head(const struct input *in, void *to, size_t max)
{
    size_t got = 0;
    return file_read_at(in->file, 0, max, to, max, &got) ? 0 : got;
}

err input_is_zlib(struct input *in)
{
    return in->unpacker ? OK : begin_packed(in, &packing_zlib);
}

static const struct foreign {
    const char *head;
    size_t bytes;
    const char *is, *wanted;
} foreigners[] = {
    {"BZh", 3, "packed by bzip2", "unpack it, or pack it by gzip or zstd"},
    {"\xfd"
     "7zXZ",
     5, "packed by xz", "unpack it, or pack it by gzip or zstd"},
    {"PK\3\4", 4, "a zip archive, or a spreadsheet", "unpack it; of a spreadsheet save a CSV file"},
    {"7z\xbc\xaf\x27\x1c", 6, "packed by 7-Zip", "unpack it, or pack it by gzip or zstd"},
    {"\x04\x22\x4d\x18", 4, "packed by lz4", "unpack it, or pack it by gzip or zstd"},
    {"\xff\x06\0\0sNaPpY", 10, "packed by snappy", "unpack it, or pack it by gzip or zstd"},
    {"\x1f\x9d", 2, "packed by compress", "unpack it, or pack it by gzip or zstd"},
    {"PAR1", 4, "a Parquet file", "write CSV, JSON lines or TFRecord from it"},
    {"ORC", 3, "an ORC file", "write CSV, JSON lines or TFRecord from it"},
    {"Obj\1", 4, "an Avro file", "write CSV, JSON lines or TFRecord from it"},
    {"\xff\xfe", 2, "text in UTF-16", "write it in UTF-8 (iconv -f UTF-16 -t UTF-8)"},
    {"\xfe\xff", 2, "text in UTF-16", "write it in UTF-8 (iconv -f UTF-16 -t UTF-8)"},
};

static err refuse(const struct input *in, const char *is, const char *wanted)
{
    return fail(ERR_INPUT, "%s: is %s, which is not read here: %s", in->file->name, is, wanted);
}

err input_is_known(const struct input *in)
{
    char head[16];
    const size_t got = in->unpacker ? 0 : input_head(in, head, sizeof head);
    for (size_t i = 0; i < sizeof foreigners / sizeof *foreigners; i++) {
        const struct foreign *f = &foreigners[i];
        if (got >= f->bytes && memcmp(head, f->head, f->bytes) == 0)
            return refuse(in, f->is, f->wanted);
    }
    return OK;
}

/* Without a byte order mark: characters, each followed by a NUL */
static bool is_utf16(const char *head, size_t bytes)
{
    return bytes >= 4 && head[0] > 0 && head[1] == 0 && head[2] > 0 && head[3] == 0;
}

err input_is_text(const struct input *in)
{
    char head[4];
    TRY(input_is_known(in));
    if (in->unpacker || !is_utf16(head, input_head(in, head, sizeof head))) return OK;
    return refuse(in, "text in UTF-16", "write it in UTF-8 (iconv -f UTF-16LE -t UTF-8)");
}

/* A text may have "ustar" there, too; a tar header also has NULs before it and a NUL or a blank
 * after it. */
static bool is_tar(const char *head, size_t bytes)
{
    enum { MARK_AT = 257, MARK_BYTES = 5 };
    if (bytes < INPUT_TOLD_BYTES || memcmp(head + MARK_AT, "ustar", MARK_BYTES) != 0) return false;
    const char behind = head[MARK_AT + MARK_BYTES];
    return memchr(head, '\0', MARK_AT) && (behind == '\0' || behind == ' ');
}

/* Files that are often found in place of data, mostly because of how they were downloaded. */
err input_is_table(const struct input *in, const char *head, size_t bytes)
{
    static const struct foreign documents[] = {
        {"<!doctype html", 14, "a page of HTML", "was the file fetched, or a page about it?"},
        {"<html", 5, "a page of HTML", "was the file fetched, or a page about it?"},
        {"<?xml", 5, "an XML document", "was the file fetched, or a server's error?"},
        {"%PDF-", 5, "a PDF document", "write CSV, JSON lines or TFRecord from it"},
        {"version https://git-lfs", 23, "a pointer of Git LFS", "fetch the file (git lfs pull)"},
    };
    if (is_tar(head, bytes)) return refuse(in, "a tar archive", "unpack it (tar -xf)");
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        const struct foreign *d = &documents[i];
        if (bytes >= d->bytes && strncasecmp(head, d->head, d->bytes) == 0)
            return refuse(in, d->is, d->wanted);
    }
    return OK;
}

uint64_t input_offset(const struct input *in)
{
    return in->offset;
}

uint64_t input_file_bytes(const struct input *in)
{
    return in->file_bytes;
}

err input_some(struct input *in, void *to, size_t max, size_t *ret_bytes)
{
    size_t got = 0;
    if (in->offset < in->pause && max > in->pause - in->offset) max = in->pause - in->offset;
    if (max > 0)
        TRY(in->unpacker ? unpacker_some(in->unpacker, to, max, &got)
                         : read_file(in, to, max, &got));
    in->offset += got;
    *ret_bytes = got;
    return OK;
}

void input_pause_at(struct input *in, uint64_t offset)
{
    in->pause = offset;
}

static err begin_again(struct input *in, uint64_t byte)
{
    if (in->unpacker) unpacker_pause(in->unpacker);
    in->read_bytes = in->offset = byte;
    return in->unpacker ? unpacker_again(in->unpacker) : OK;
}

err input_seek(struct input *in, uint64_t offset)
{
    char passed[PASSED_BYTES];
    size_t got = 1;
    in->pause = 0;
    if (!in->unpacker) return begin_again(in, offset);
    if (offset < in->offset) TRY(begin_again(in, 0));
    while (in->offset < offset && got > 0) {
        const uint64_t left = offset - in->offset;
        TRY(input_some(in, passed, left < sizeof passed ? (size_t)left : sizeof passed, &got));
    }
    if (in->offset == offset) return OK;
    return fail(ERR_INPUT, "%s: had more than %llu bytes, unpacked, and ends after %llu",
                in->file->name, (unsigned long long)offset, (unsigned long long)in->offset);
}

err input_state(const struct input *in, struct file_state *ret)
{
    return file_state(in->file, ret);
}

err input_exact(struct input *in, void *to, size_t bytes, const char *what)
{
    size_t done = 0, got = 0;
    do {
        TRY(input_some(in, (char *)to + done, bytes - done, &got));
        done += got;
    } while (done < bytes && got > 0);
    if (done == bytes) return OK;
    return fail(ERR_INPUT, "%s: offset %llu: expected %zu bytes of %s, the file ends after %zu",
                in->file->name, (unsigned long long)(in->offset - done), bytes, what, done);
}

/* Without this a header of 16 bytes could make the program allocate terabytes. */
err input_announce(const struct input *in, uint64_t bytes, const char *what)
{
    uint64_t all = in->file_bytes * (in->unpacker ? unpacker_ratio_max(in->unpacker) : 1);
    uint64_t left = all > in->offset ? all - in->offset : 0;
    if (bytes <= left) return OK;
    return fail(ERR_INPUT, "%s: offset %llu: expected %llu bytes of %s, %s %llu", in->file->name,
                (unsigned long long)in->offset, (unsigned long long)bytes, what,
                in->unpacker ? "a packed file of this size holds at most" : "the file has only",
                (unsigned long long)left);
}

/* For a packed file this also reads the trailer, so verifies the checksum. */
err input_end(struct input *in)
{
    char more;
    size_t got = 0;
    TRY(input_some(in, &more, 1, &got));
    if (got == 0) return OK;
    return fail(ERR_INPUT, "%s: offset %llu: expected the end of the file, there is more",
                in->file->name, (unsigned long long)(in->offset - 1));
}

err input_block(struct input *in, uint64_t bytes, const char *what, struct block *ret)
{
    TRY(input_announce(in, bytes, what));
    struct block block = {0};
    TRY(block_new(bytes, &block));
    err e = input_exact(in, block.at, bytes, what);
    if (!e) e = input_end(in);
    if (e)
        block_drop(&block);
    else
        *ret = block;
    return e;
}
