/* read_files.c - see read_files.h. */
#include "cmd/read_files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/files/file_id.h"
#include "core/base/files/file_system.h"
#include "core/data/columns/column.h"
#include "core/data/files.h"
#include "core/train/checkpoint/checkpoints.h"

static err lost(const struct written_file *out, const char *what)
{
    return fail(ERR_INPUT, "--%s=%s: %s and would be lost: name another file", out->flag, out->path,
                what);
}

err output_check(const struct written_file *out, const char *what, const char *other)
{
    struct file_id id;
    if (!other || path_is_url(out->path) || path_is_url(other)) return OK;
    return file_id_find(other, &id) && file_id_is_at(out->path, &id) ? lost(out, what) : OK;
}

static err check_in(const struct written_file *out, const char *what, const char *directory,
                    const char *path)
{
    char *joined = path_join(directory, path);
    const err e = output_check(out, what, joined);
    free(joined);
    return e;
}

struct file_reading {
    const struct written_file *out;
    const struct spec *spec;
    struct arena arena; /* of names that are found */
};

static const char of_data[] = "is a file of the data", of_column[] = "is a file of a column";

/* What is meant by a path, a pattern, a file of names */
static err check_found(struct file_reading *r, const char *given)
{
    const struct format_context context = {.directory = r->spec->directory, .only_here = true};
    const struct strings one = {&given, 1};
    struct strings files = {0};
    if (files_find(&one, &context, &r->arena, &files)) return OK; /* it is not there */
    for (int i = 0; i < files.count; i++)
        TRY(check_in(r->out, of_data, r->spec->directory, files.at[i]));
    return OK;
}

/* One by one: of several, one may not be there. */
static err check_given(struct file_reading *r, const struct strings *given)
{
    err e = OK;
    for (int i = 0; i < given->count && !e; i++) {
        const bool is_list = given->at[i][0] == '@';
        char *path = path_join(r->spec->directory, given->at[i] + is_list);
        const bool is_here = path && !path_is_url(path);
        if (is_here && is_list) e = output_check(r->out, of_data, path);
        if (is_here && !e) e = check_found(r, given->at[i]);
        free(path);
    }
    return e;
}

static err check_source(struct file_reading *r, const struct source_spec *source)
{
    const struct kind *kind = source->format.kind;
    const char *attributes = source->format.attributes;
    err e = OK;
    for (const struct field *f = kind ? kind->object->fields : NULL; f && f->name && !e; f++)
        if (f->type == FIELD_FILES)
            e = check_given(r, (const struct strings *)(const void *)(attributes + f->offset));
    return e;
}

/* Words and boundaries: of the fields of a column those are paths that may differ between tasks. */
static err check_columns(const struct written_file *out, const struct spec *spec)
{
    const struct objects *columns = &spec->data.columns;
    const struct column_spec *all = columns->at;
    for (int i = 0; i < columns->count; i++) {
        const struct variant *column = &all[i].column;
        for (const struct field *f = column->kind->object->fields; f && f->name; f++) {
            if (f->type != FIELD_STRING || !f->may_differ) continue;
            const char *path = *(const char *const *)((char *)column->attributes + f->offset);
            if (path) TRY(check_in(out, of_column, spec->directory, path));
        }
    }
    return OK;
}

/* Which lie where the process is. */
static err check_vocabularies(const struct written_file *out, json_t *vocabularies)
{
    const char *column;
    json_t *path;
    json_object_foreach(vocabularies, column, path)
    {
        TRY(output_check(out, of_column, json_string_value(path)));
    }
    return OK;
}

err output_check_data(const struct written_file *out, const struct spec *spec)
{
    struct file_reading r = {out, spec, {0}};
    struct file_id id;
    if (path_is_url(out->path) || !file_id_find(out->path, &id)) return OK;
    err e = check_source(&r, &spec->data.train);
    if (!e) e = check_source(&r, &spec->data.eval);
    arena_free(&r.arena);
    if (!e) e = check_columns(out, spec);
    return e ? e : check_vocabularies(out, spec->train.warm_start.vocabularies);
}

struct folder_place {
    char folder[PATH_MAX]; /* absolute, without links */
    char name[NAME_MAX + 1];
};

/* Where a file is, behind links, or would be. */
static bool find_place(const char *path, struct folder_place *ret)
{
    char whole[PATH_MAX];
    if (strlen(path) >= sizeof whole) return false;
    if (!realpath(path, whole)) strcpy(whole, path);
    char *slash = strrchr(whole, '/');
    const char *name = slash ? slash + 1 : whole;
    if (strlen(name) > NAME_MAX) return false;
    strcpy(ret->name, name);
    if (slash) slash[slash == whole] = '\0';
    return realpath(slash ? whole : ".", ret->folder);
}

/* What is neither there nor called as a checkpoint is a folder that is yet to be made. */
static bool is_in_folder(const char *checkpoint)
{
    char index[PATH_MAX];
    struct file_id id;
    snprintf(index, sizeof index, "%s.index", checkpoint);
    return checkpoint_step(checkpoint) >= 0 || file_id_find(checkpoint, &id) ||
           file_id_find(index, &id);
}

static bool find_folder(const char *checkpoint, struct folder_place *ret)
{
    struct stat found;
    if (stat(checkpoint, &found) == 0 && S_ISDIR(found.st_mode))
        return realpath(checkpoint, ret->folder);
    return is_in_folder(checkpoint) && find_place(checkpoint, ret);
}

err output_check_folder(const struct written_file *out, const char *checkpoint)
{
    struct folder_place written, kept;
    if (!checkpoint || path_is_url(checkpoint) || path_is_url(out->path)) return OK;
    if (!find_place(out->path, &written) || !find_folder(checkpoint, &kept)) return OK;
    const bool is_kept = strcmp(written.folder, kept.folder) == 0 && checkpoints_keep(written.name);
    return is_kept ? lost(out, "belongs to the checkpoints") : OK;
}
