/* link.c - copies a bundle to another name: hard-links its data files if the file system can, else
 * copies them; behind URLs through this host. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/files/own.h"
#include "core/base/files/replace.h"
#include "core/train/checkpoint/bundle/bundle_inside.h"

enum { COPY_BYTES = 1 << 18 };

static err copy_bytes(int from, int to, const char *path)
{
    char *buffer = malloc(COPY_BYTES);
    if (!buffer) return fail(ERR_MEMORY, "no memory to copy %s", path);
    err e = OK;
    for (ssize_t got; !e && (got = read(from, buffer, COPY_BYTES)) != 0;)
        if (got < 0 || !own_write(to, buffer, (size_t)got))
            e = fail(ERR_IO, "%s: %s", path, strerror(errno));
    free(buffer);
    if (!e && fsync(to)) e = fail(ERR_IO, "%s: %s", path, strerror(errno));
    return e;
}

static err copy_file(const char *from, const char *to)
{
    const int in = own_open(from, O_RDONLY);
    if (in < 0) return fail(ERR_IO, "%s: %s", from, strerror(errno));
    const int out = own_make(to);
    const err e = out < 0 ? fail(ERR_IO, "%s: %s", to, strerror(errno)) : copy_bytes(in, out, to);
    close(in);
    if (out >= 0) close(out);
    return e;
}

/* The target of a copy: behind a URL, or a local file. */
struct copy_target {
    const char *path;
    struct file_writer *writer; /* NULL: `file` */
    int file;
};

static err append(struct copy_target *to, const char *bytes, size_t count)
{
    if (to->writer) return file_append(to->writer, bytes, count);
    return own_write(to->file, bytes, count) ? OK
                                             : fail(ERR_IO, "%s: %s", to->path, strerror(errno));
}

static err append_all(struct file *from, struct copy_target *to)
{
    char *buffer = malloc(COPY_BYTES);
    if (!buffer) return fail(ERR_MEMORY, "no memory to copy %s", from->name);
    const uint64_t end = from->state.bytes;
    err e = OK;
    for (uint64_t at = 0; !e && at < end;) {
        size_t got = 0;
        e = file_read_at(from, at, end, buffer, COPY_BYTES, &got);
        if (!e && !got) e = fail(ERR_INPUT, "%s: became shorter while it was copied", from->name);
        if (!e) e = append(to, buffer, got);
        at += got;
    }
    free(buffer);
    return e;
}

static err copy_to_url(struct file *from, const char *to)
{
    struct copy_target target = {.path = to};
    err e = file_create(to, &target.writer);
    if (!e) e = append_all(from, &target);
    if (!e) e = file_finish(target.writer);
    file_drop(target.writer);
    return e;
}

static err copy_to_host(struct file *from, const char *to)
{
    struct copy_target target = {.path = to, .file = own_make(to)};
    if (target.file < 0) return fail(ERR_IO, "%s: %s", to, strerror(errno));
    err e = append_all(from, &target);
    if (!e && fsync(target.file)) e = fail(ERR_IO, "%s: %s", to, strerror(errno));
    close(target.file);
    return e;
}

static err copy_by_url(const char *from, const char *to)
{
    struct file *in = NULL;
    TRY(file_open(from, &in));
    const err e = path_is_url(to) ? copy_to_url(in, to) : copy_to_host(in, to);
    file_close(in);
    return e;
}

/* Replaces an existing file, which an earlier incarnation left under this name. */
static err link_file(const char *from, const char *to)
{
    if (path_is_url(to) || path_is_url(from)) return copy_by_url(from, to);
    if (unlink(to) && errno != ENOENT) return fail(ERR_IO, "%s: %s", to, strerror(errno));
    return link(from, to) == 0 ? OK : copy_file(from, to);
}

static err link_data(const struct bundle *bundle, const char *to)
{
    const int shards = bundle->index.shards;
    for (int i = 0; i < shards; i++) {
        char *old = NULL, *new = NULL;
        err e = bundle_data_path(bundle->prefix, i, shards, &old);
        if (!e) e = bundle_data_path(to, i, shards, &new);
        if (!e) e = link_file(old, new);
        free(old);
        free(new);
        TRY(e);
    }
    return OK;
}

static err add_records(const struct index *from, bool (*is_wanted)(const char *name),
                       struct index *to)
{
    to->shards = from->shards;
    for (int i = 0; i < from->count; i++) {
        const struct index_record *r = &from->records[i];
        const uint8_t *key = (const uint8_t *)index_key(from, r);
        const struct bundle_box *slices = r->slice_count ? from->slices + r->first_slice : NULL;
        if (is_wanted && !index_is_slice(from, r) && !is_wanted((const char *)key)) continue;
        TRY(index_add(to, (struct view){key, key + r->key_bytes}, r, slices));
    }
    return OK;
}

/* The index comes last: without it there is no checkpoint. All names are synced before any list has
 * them. */
static err publish(const struct index *index, const char *to)
{
    struct output output = {0};
    char *path = NULL;
    TRY(bundle_index_path(to, &path));
    err e = index_save(index, path, path, &output);
    if (!e) e = file_sync_folder(path);
    if (!e) e = output_publish(&output);
    if (!e) e = file_sync_folder(path);
    output_drop(&output);
    free(path);
    return e;
}

err bundle_link(const char *from, const char *to, bool (*is_wanted)(const char *name))
{
    struct bundle *bundle = NULL;
    struct index index = {0};
    TRY(bundle_open(from, &bundle));
    err e = bundle_remove(to);
    if (!e) e = add_records(&bundle->index, is_wanted, &index);
    if (!e) e = index_join(&index, to);
    if (!e) e = link_data(bundle, to);
    if (!e) e = publish(&index, to);
    index_drop(&index);
    bundle_close(bundle);
    return e;
}
