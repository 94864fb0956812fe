/* merge.c - merges several bundles into one. All that can fail for lack of memory or disk space is
 * done before the first rename; if a rename fails, the earlier ones are undone. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/train/checkpoint/bundle/bundle_inside.h"
#include "core/base/files/file_id.h"
#include "core/base/files/file_system.h"
#include "core/base/files/replace.h"
#include "core/base/files/url.h"
#include "core/base/log.h"

/* A data file and its new name. */
struct file_move {
    char *from, *to;
    struct file_id id; /* of a local file, once it is renamed */
};

/* The merge under way; everything in it but shards and prefix is owned. */
struct merge {
    const char *const *shards;
    int shard_count;
    const char *prefix;
    char *index_path;
    struct index index;
    struct file_move *moves;
    int move_count;
};

static void merge_drop(struct merge *m)
{
    for (int i = 0; i < m->move_count; i++) {
        free(m->moves[i].from);
        free(m->moves[i].to);
    }
    free(m->moves);
    free(m->index_path);
    index_drop(&m->index);
}

/* A shard must not have the name of the result: it would be removed. */
static err check_shard(const struct merge *m, const char *index_path)
{
    struct file_id shard;
    if (path_is_url(index_path)) return OK;
    if (!file_id_find(index_path, &shard)) return OK; /* opening tells */
    if (!file_id_is_at(m->index_path, &shard)) return OK;
    return fail(ERR_INPUT, "%s: a checkpoint cannot be joined into itself", index_path);
}

static err add_moves(struct merge *m, const char *shard, int files)
{
    struct file_move *moves =
        reallocarray(m->moves, (size_t)m->move_count + (size_t)files, sizeof *moves);
    if (!moves) return fail(ERR_MEMORY, "no memory to join checkpoints");
    m->moves = moves;
    for (int i = 0; i < files; i++) {
        struct file_move *move = &m->moves[m->move_count++];
        *move = (struct file_move){0};
        TRY(bundle_data_path(shard, i, files, &move->from));
    }
    return OK;
}

/* Numbers of data files are shifted by that of the shard's first. */
static err add_records(struct index *to, const struct index *from)
{
    for (int i = 0; i < from->count; i++) {
        const uint8_t *key = (const uint8_t *)index_key(from, &from->records[i]);
        struct index_record r = from->records[i];
        r.shard += to->shards;
        const struct bundle_box *slices = r.slice_count ? from->slices + r.first_slice : NULL;
        TRY(index_add(to, (struct view){key, key + r.key_bytes}, &r, slices));
    }
    to->shards += from->shards;
    return OK;
}

/* Opens the shard as for reading, which checks that data files exist and are long enough. */
static err add_shard(struct merge *m, const char *shard)
{
    struct bundle *bundle = NULL;
    char *index_path = NULL;
    TRY(bundle_index_path(shard, &index_path));
    err e = check_shard(m, index_path);
    free(index_path);
    if (!e) e = bundle_open(shard, &bundle);
    if (!e) e = add_moves(m, shard, bundle->index.shards);
    if (!e) e = add_records(&m->index, &bundle->index);
    bundle_close(bundle);
    if (!e && m->index.shards > BUNDLE_SHARDS_MAX)
        return fail(ERR_INPUT, "%s: more than %d data files", m->prefix, (int)BUNDLE_SHARDS_MAX);
    return e;
}

static err name_results(struct merge *m)
{
    for (int i = 0; i < m->move_count; i++)
        TRY(bundle_data_path(m->prefix, i, m->move_count, &m->moves[i].to));
    return OK;
}

static err find_index(const char *path, bool *ret_is_there)
{
    struct file_state found;
    struct stat status;
    if (path_is_url(path)) return file_find(path, ret_is_there, &found);
    *ret_is_there = !stat(path, &status) && S_ISREG(status.st_mode);
    return OK;
}

/* This process may have been suspended for long: existing files of these names are another chief's,
 * and stay. */
static err find_other(const struct merge *m)
{
    bool is_there;
    TRY(find_index(m->index_path, &is_there));
    return is_there ? fail(ERR_PEER, "%s was made by another task meanwhile", m->index_path) : OK;
}

/* A file that has the name now may be another chief's. */
static void move_back(const struct file_move *move)
{
    const bool is_ours = path_is_url(move->to) || file_id_is_at(move->to, &move->id);
    if (is_ours) (void)bundle_rename(move->to, move->from);
}

/* A move back that fails leaves a file that no index names. */
static err give_up(const struct merge *m, int moved, err e)
{
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", error_text());
    const err other = find_other(m);
    if (other) return other;
    for (int i = moved - 1; i >= 0; i--) move_back(&m->moves[i]);
    return fail(e, "%s", why);
}

/* If the folder can be listed, a name without data files was chosen, so these are newer. Otherwise
 * they may be left from an interrupted attempt, and may be replaced. */
static err take_over(const struct file_move *move)
{
    char *folder = strdup(move->to), *slash = folder ? strrchr(folder, '/') : NULL;
    if (!folder) return fail(ERR_MEMORY, "no memory to look at %s", move->to);
    if (slash) slash[slash == folder] = '\0';
    const bool is_listed = !access(slash ? folder : ".", R_OK);
    free(folder);
    if (is_listed) return fail(ERR_PEER, "%s was made by another task meanwhile", move->to);
    return bundle_rename(move->from, move->to);
}

static err move_one(const struct merge *m, struct file_move *move)
{
    bool is_taken;
    if (path_is_url(move->from)) return bundle_rename(move->from, move->to);
    if (!file_id_find(move->from, &move->id))
        return fail(ERR_IO, "%s: %s", move->from, strerror(errno));
    const err e = bundle_rename_new(move->from, move->to, &is_taken);
    if (!is_taken) return e;
    TRY(find_other(m));
    return take_over(move);
}

/* Only renames: the data are on this file system already, and synced. Behind a URL a server may
 * have to copy them. */
static err move_data(struct merge *m)
{
    for (int i = 0; i < m->move_count; i++) {
        const err e = move_one(m, &m->moves[i]);
        if (e) return give_up(m, i, e);
    }
    return OK;
}

/* Removes the files whose names begin with `begin`; returns the first error after trying all. */
static err remove_beginning(int folder, DIR *list, const char *path, const char *begin)
{
    err e = OK;
    const struct dirent *file;
    while ((file = readdir(list))) {
        if (strncmp(file->d_name, begin, strlen(begin)) != 0) continue;
        if (unlinkat(folder, file->d_name, 0) && errno != ENOENT && !e)
            e = fail(ERR_IO, "%s/%s: %s", path, file->d_name, strerror(errno));
    }
    return e;
}

struct data_removal {
    const char *folder, *begin;
};

static err remove_fitting(void *context, const char *name)
{
    const struct data_removal *r = context;
    char *path = NULL;
    if (strncmp(name, r->begin, strlen(r->begin)) != 0) return OK;
    if (asprintf(&path, "%s/%s", r->folder, name) < 0)
        return fail(ERR_MEMORY, "no memory to remove %s", name);
    const err e = file_remove(path);
    free(path);
    return e;
}

static err remove_data(const char *folder, const char *begin)
{
    if (path_is_url(folder))
        return files_visit(folder, remove_fitting, &(struct data_removal){folder, begin});
    DIR *list = opendir(folder);
    if (!list && errno == ENOENT) return OK;
    if (!list) return fail(ERR_IO, "%s: %s", folder, strerror(errno));
    const err e = remove_beginning(dirfd(list), list, folder, begin);
    closedir(list);
    return e;
}

static err remove_all_data(const char *prefix)
{
    char *begin = NULL, *folder = NULL;
    const char *slash = strrchr(prefix, '/');
    const char *name = slash ? slash + 1 : prefix;
    folder = slash == prefix ? strdup("/") : slash ? strndup(prefix, slash - prefix) : strdup(".");
    if (asprintf(&begin, "%s.data-", name) < 0) begin = NULL;
    const err e = folder && begin ? remove_data(folder, begin)
                                  : fail(ERR_MEMORY, "no memory to remove %s", prefix);
    free(folder);
    free(begin);
    return e;
}

/* Data files first, then the index: an index never refers to other data than its own, nor to data
 * files whose directory entries a power failure could still lose. An existing index is not
 * replaced: it belongs to other data. */
static err publish(struct merge *m, struct output *index)
{
    bool is_taken;
    TRY(find_other(m));
    TRY(move_data(m));
    err e = file_sync_folder(m->index_path);
    if (!e) e = output_publish_new(index, &is_taken);
    if (e) return give_up(m, m->move_count, e);
    e = file_sync_folder(m->index_path);
    if (!e) return OK;
    (void)bundle_unlink(m->index_path);
    return give_up(m, m->move_count, e);
}

static err merge(struct merge *m)
{
    struct output index = {0};
    for (int i = 0; i < m->shard_count; i++) TRY(add_shard(m, m->shards[i]));
    TRY(name_results(m));
    TRY(index_join(&m->index, m->prefix));
    /* beside the first shard, whose folder somebody removes if we die */
    TRY(index_save(&m->index, m->index_path, m->shards[0], &index));
    const err e = publish(m, &index);
    output_drop(&index);
    return e;
}

err bundle_merge(const char *const shards[], int count, const char *prefix)
{
    struct merge m = {.shards = shards, .shard_count = count, .prefix = prefix};
    if (count < 1) return fail(ERR_INPUT, "%s: no shards to join", prefix);
    TRY(bundle_index_path(prefix, &m.index_path));
    const err e = merge(&m);
    merge_drop(&m);
    return e;
}

err bundle_remove(const char *prefix)
{
    char *index_path = NULL;
    TRY(bundle_index_path(prefix, &index_path));
    const err e = bundle_unlink(index_path);
    /* a power failure must not restore an index whose data are gone; if syncing fails, the data are
     * removed anyway */
    if (!e) (void)file_sync_folder(index_path);
    free(index_path);
    return e ? e : remove_all_data(prefix);
}
