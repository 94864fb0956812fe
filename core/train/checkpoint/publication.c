/* publication.c - see publication.h. */
#include "core/train/checkpoint/publication.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/crc32c.h"
#include "core/base/fields/fields.h"
#include "core/base/files/file_system.h"
#include "core/base/files/replace.h"
#include "core/base/log.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/checkpoints_inside.h"

#define DELTA_NAME ".delta-"

enum {
    JSON_BYTES_MAX = 1 << 20,
    INDEX_BYTES_MAX = 1 << 28,
    CHECKSUM_DIGITS = 8,
    DELTA_NAME_MAX = PUBLISHED_NAME_MAX + 32,
};
#define COUNT_MAX 1e15 /* of steps, of bytes */

err published_index(const char *prefix, uint32_t *ret)
{
    char *path = NULL;
    uint8_t *bytes = NULL;
    size_t count = 0;
    TRY(bundle_index_path(prefix, &path));
    const err e = bundle_file_load(path, INDEX_BYTES_MAX, &bytes, &count);
    if (!e) *ret = crc32c(bytes, count);
    free(bytes);
    free(path);
    return e;
}

/* ---- the file ---- */

struct published_entry {
    const char *name, *index; /* index: eight hexadecimal digits */
    int64_t step, bytes;
    double time_s;
};

static const struct field entry_fields[] = {
    {.name = "name", .type = FIELD_STRING, .offset = offsetof(struct published_entry, name)},
    {.name = "step",
     .type = FIELD_INT,
     .offset = offsetof(struct published_entry, step),
     .max = COUNT_MAX},
    {.name = "bytes",
     .type = FIELD_INT,
     .offset = offsetof(struct published_entry, bytes),
     .max = COUNT_MAX},
    {.name = "time", .type = FIELD_FLOAT, .offset = offsetof(struct published_entry, time_s)},
    {.name = "index", .type = FIELD_STRING, .offset = offsetof(struct published_entry, index)},
    {0},
};
static const struct object entry_object = {
    .name = "published", .fields = entry_fields, .size = sizeof(struct published_entry)};

struct publication_list {
    struct published_entry checkpoint;
    struct objects deltas; /* of struct published_entry */
};

static const struct field list_fields[] = {
    {.name = "checkpoint",
     .type = FIELD_OBJECT,
     .offset = offsetof(struct publication_list, checkpoint),
     .object = &entry_object},
    {.name = "deltas",
     .type = FIELD_OBJECTS,
     .offset = offsetof(struct publication_list, deltas),
     .count_max = DELTAS_MAX,
     .object = &entry_object},
    {0},
};
static const struct object list_object = {
    .name = "published", .fields = list_fields, .size = sizeof(struct publication_list)};

static json_t *entry_json(const struct published *p)
{
    char index[CHECKSUM_DIGITS + 1];
    snprintf(index, sizeof index, "%08" PRIx32, p->index);
    const struct published_entry entry = {p->name, index, p->step, p->bytes, p->time_s};
    return fields_write(&entry_object, &entry);
}

static err write_file(const struct publication *p, const char *folder)
{
    char path[CHECKPOINT_PATH_MAX];
    TRY(folder_join(folder, PUBLICATION_NAME, path));
    json_t *list = json_array();
    for (int i = 0; i < p->count; i++) json_array_append_new(list, entry_json(&p->deltas[i]));
    json_t *json = json_pack("{so so}", "checkpoint", entry_json(&p->full), "deltas", list);
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    const err e = text ? file_replace(path, text, strlen(text))
                       : fail(ERR_MEMORY, "no memory for %s", PUBLICATION_NAME);
    free(text);
    json_decref(json);
    return e;
}

/* Whether it is the name of a file in this folder, without any path */
static bool is_plain(const char *name)
{
    return *name && strlen(name) < PUBLISHED_NAME_MAX && !strchr(name, '/') && name[0] != '.';
}

static err read_entry(const struct published_entry *entry, struct published *ret)
{
    char *end;
    *ret = (struct published){.step = entry->step, .bytes = entry->bytes, .time_s = entry->time_s};
    if (!is_plain(entry->name))
        return fail(ERR_INPUT, "\"%.64s\" is no name of a file in this folder", entry->name);
    snprintf(ret->name, sizeof ret->name, "%s", entry->name);
    ret->index = (uint32_t)strtoul(entry->index, &end, 16);
    if (strlen(entry->index) == CHECKSUM_DIGITS && !*end) return OK;
    return fail(ERR_INPUT, "%s: \"%.64s\" is no checksum of an index", ret->name, entry->index);
}

static void name_delta(const struct publication *p, int index, char ret[DELTA_NAME_MAX])
{
    snprintf(ret, DELTA_NAME_MAX, "%s" DELTA_NAME "%05d", p->full.name, index + 1);
}

/* Deltas must be in ascending order of steps: older values must not replace newer ones. */
static err check_order(const struct publication *p, int index)
{
    char name[DELTA_NAME_MAX];
    const struct published *delta = &p->deltas[index], *before = index ? delta - 1 : &p->full;
    name_delta(p, index, name);
    if (strcmp(delta->name, name) != 0)
        return fail(ERR_INPUT, "%s: expected %s, which follows %s", delta->name, name,
                    before->name);
    if (delta->step >= before->step) return OK;
    return fail(ERR_INPUT, "%s: step %lld, and %s before it is of step %lld", delta->name,
                (long long)delta->step, before->name, (long long)before->step);
}

static err read_json(json_t *json, struct arena *arena, struct publication *ret)
{
    struct publication_list list;
    TRY(fields_parse(&list_object, json, "", arena, &list));
    const struct published_entry *entries = list.deltas.at;
    TRY(read_entry(&list.checkpoint, &ret->full));
    for (; ret->count < list.deltas.count; ret->count++) {
        TRY(read_entry(&entries[ret->count], &ret->deltas[ret->count]));
        TRY(check_order(ret, ret->count));
    }
    return OK;
}

static err read_text(const uint8_t *text, size_t bytes, struct publication *ret)
{
    struct arena arena = {0};
    json_error_t error;
    json_t *json = json_loadb((const char *)text, bytes, JSON_REJECT_DUPLICATES, &error);
    const err e = json ? read_json(json, &arena, ret)
                       : fail(ERR_INPUT, "line %d: %s", error.line, error.text);
    json_decref(json);
    arena_free(&arena);
    return e;
}

err publication_read(const char *folder, struct publication *ret)
{
    char path[CHECKPOINT_PATH_MAX];
    uint8_t *text = NULL;
    size_t bytes = 0;
    *ret = (struct publication){0};
    TRY(folder_join(folder, PUBLICATION_NAME, path));
    errno = 0;
    err e = bundle_file_load(path, JSON_BYTES_MAX, &text, &bytes);
    if (e == ERR_INPUT && (errno == ENOENT || errno == ENOTDIR)) return OK;
    if (e) return e;
    e = read_text(text, bytes, ret);
    free(text);
    if (e) *ret = (struct publication){0};
    return e ? fail_prefix(e, "%s", path) : OK;
}

/* ---- writing ---- */

void publication_forget(struct publication *p)
{
    *p = (struct publication){0};
}

bool publication_wants_full(const struct publication *p)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->count; i++) bytes += p->deltas[i].bytes;
    return !p->full.name[0] || p->count == DELTAS_MAX || bytes > p->full.bytes + DELTAS_BYTES_FREE;
}

static err describe(const char *prefix, const struct publishing *is, struct published *ret)
{
    const char *name = strrchr(prefix, '/');
    name = name ? name + 1 : prefix;
    *ret = (struct published){.step = (int64_t)is->step, .time_s = is->time_s};
    if (!is_plain(name)) return fail(ERR_INPUT, "%s: too long a name", prefix);
    snprintf(ret->name, sizeof ret->name, "%s", name);
    for (int i = 0; i < is->shards; i++) {
        char *path = NULL;
        struct file_state state = {0};
        TRY(bundle_data_path(prefix, i, is->shards, &path));
        const err e = file_look(path, &state);
        free(path);
        if (e) return e;
        ret->bytes += (int64_t)state.bytes;
    }
    return published_index(prefix, &ret->index);
}

static void remove_delta(void *context, const char *name)
{
    const struct checkpoints *c = context;
    char path[CHECKPOINT_PATH_MAX];
    const char *rest = NULL;
    if (checkpoint_name_step(name, &rest) < 0 || strncmp(rest, DELTA_NAME, strlen(DELTA_NAME)) != 0)
        return;
    if (!folder_join(c->directory, name, path)) folder_unlink(path);
}

/* Removes deltas last, when the file no longer lists them: a reader of one of them continues with
 * the new checkpoint. */
err publication_begin(struct publication *p, const struct checkpoints *c, const char *prefix,
                      const struct publishing *is)
{
    publication_forget(p);
    err e = checkpoints_still_own(c);
    if (!e) e = describe(prefix, is, &p->full);
    if (!e) e = write_file(p, c->directory);
    if (e) {
        publication_forget(p);
        return e;
    }
    if (folder_visit(c->directory, remove_delta, (void *)c))
        log_line(LOG_WARNING, "%s", error_text());
    return OK;
}

static err delta_prefix(const struct publication *p, const struct checkpoints *c,
                        char ret[CHECKPOINT_PATH_MAX])
{
    char name[DELTA_NAME_MAX];
    name_delta(p, p->count, name);
    return folder_join(c->directory, name, ret);
}

/* Shards of another folder may be on another file system, to which they cannot be renamed: joins
 * them there, and links or copies the result. The caller empties the temporary folder. */
static err bring(const struct checkpoints *c, const char *folder, int shards, const char *prefix)
{
    char joined[CHECKPOINT_PATH_MAX], beside[CHECKPOINT_PATH_MAX];
    folder_split(folder, beside);
    if (strcmp(beside, c->directory) == 0) return checkpoints_merge(folder, shards, prefix);
    TRY(folder_join(folder, "part-all", joined));
    TRY(checkpoints_merge(folder, shards, joined));
    return bundle_link(joined, prefix, NULL);
}

/* Somebody may have removed the full checkpoint, perhaps with the whole folder. */
static err find_full(const struct publication *p, const struct checkpoints *c)
{
    char path[CHECKPOINT_PATH_MAX];
    bool is_there;
    TRY(folder_join(c->directory, p->full.name, path));
    TRY(folder_find_index(path, &is_there));
    return is_there ? OK : fail(ERR_INPUT, "%s, which it follows, is gone", path);
}

/* Joining may have taken long, and a chief that was suspended meanwhile may find no token at all:
 * whatever others have published since is newer. */
static err find_unchanged(const struct publication *p, const struct checkpoints *c)
{
    struct publication now;
    TRY(checkpoints_still_own(c));
    TRY(publication_read(c->directory, &now));
    const bool is_next = now.count == p->count + 1; /* a failed write may have listed it already */
    const bool is_ours = now.full.index == p->full.index && (now.count == p->count || is_next) &&
                         strcmp(now.full.name, p->full.name) == 0;
    if (is_ours || !now.full.name[0]) return OK;
    return fail(ERR_PEER, "another chief has published in %s meanwhile", c->directory);
}

/* Joins the shards to the next delta and writes the list. Existing files of its name are in no
 * list: a chief was killed before it wrote that. */
static err join(struct publication *p, const struct checkpoints *c, const char *folder,
                const struct publishing *is, const char *prefix)
{
    struct published *next = &p->deltas[p->count];
    TRY(checkpoints_still_own(c));
    TRY(find_full(p, c));
    TRY(bundle_remove(prefix));
    TRY(bring(c, folder, is->shards, prefix));
    TRY(describe(prefix, is, next));
    TRY(find_unchanged(p, c));
    p->count++;
    const err e = write_file(p, c->directory);
    if (e) p->count--;
    return e;
}

err publication_add(struct publication *p, const struct checkpoints *c, const char *folder,
                    const struct publishing *is, char ret_prefix[CHECKPOINT_PATH_MAX])
{
    char why[ERROR_TEXT_MAX];
    err e = OK;
    ret_prefix[0] = '\0';
    if (!p->full.name[0] || p->count == DELTAS_MAX)
        e = fail(ERR_INPUT, "there is no checkpoint that a delta could follow");
    if (!e) e = delta_prefix(p, c, ret_prefix);
    if (!e) e = join(p, c, folder, is, ret_prefix);
    snprintf(why, sizeof why, "%s", e ? error_text() : "");
    if (e && e != ERR_PEER && ret_prefix[0] && bundle_remove(ret_prefix))
        log_line(LOG_WARNING, "%s", error_text());
    folder_remove_named(folder, CHECKPOINT_PART);
    return e ? fail(e, "%s", why) : OK;
}
