/* day.c - see day.h. */
#include "core/train/spec/day.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/log.h"
#include "core/data/parts.h"
#include "core/train/spec/spec_inside.h"

static const char file_name[] = "day.json";
enum { DIGEST_BYTES = 17 };

struct day {
    const char *files; /* 16 hex digits */
    int64_t step;      /* at which they were begun */
};

static const struct field fields[] = {
    {.name = "files",
     .type = FIELD_STRING,
     .offset = offsetof(struct day, files),
     .help = "digest of the names, sizes and heads of the files that are trained on"},
    {.name = "step",
     .type = FIELD_INT,
     .offset = offsetof(struct day, step),
     .max = STEPS_MAX,
     .help = "the global step at which they were begun"},
    {0},
};

static const struct object day_object = {"day", "which files a run is at", fields,
                                         sizeof(struct day)};

/* files NULL: there is none yet. */
static err read_day(const char *path, struct arena *arena, struct day *ret)
{
    json_t *json = NULL;
    *ret = (struct day){0};
    err e = spec_find_kept(path, &json);
    if (!e && json) e = fields_parse(&day_object, json, "", arena, ret);
    json_decref(json);
    return e ? fail_prefix(e, "%s", path) : OK;
}

static err write_day(const char *path, const struct day *day)
{
    return spec_write_kept(path, fields_write(&day_object, day));
}

static err digest_files(const struct spec *spec, char ret[DIGEST_BYTES])
{
    const struct format_context context = {.directory = spec->directory,
                                           .seed = (uint64_t)spec->seed};
    uint64_t digest;
    const err e = parts_digest(&spec->data.train, &context, &digest);
    if (e) return fail_prefix(e, "train.daily: data.train");
    snprintf(ret, DIGEST_BYTES, "%016" PRIx64, digest);
    return OK;
}

/* A checkpoint that is not behind the beginning has none of their rows. */
static err look(const struct spec *spec, const char *path, struct arena *arena, uint64_t step,
                bool *ret_begins)
{
    char digest[DIGEST_BYTES];
    struct day before;
    TRY(digest_files(spec, digest));
    TRY(read_day(path, arena, &before));
    *ret_begins =
        !before.files || strcmp(before.files, digest) != 0 || step <= (uint64_t)before.step;
    if (!*ret_begins) return OK;
    if (before.files && step > 0)
        log_line(LOG_INFO, "begins data.train at its first row: the checkpoint of step %llu has %s",
                 (unsigned long long)step,
                 strcmp(before.files, digest) ? "other files" : "none of its rows");
    return write_day(path, &(struct day){digest, (int64_t)step});
}

err day_begin(const struct spec *spec, const char *folder, uint64_t step, bool *ret_begins)
{
    struct arena arena = {0};
    const char *path = arena_format(&arena, "%s/%s", folder, file_name);
    const err e = look(spec, path, &arena, step, ret_begins);
    arena_free(&arena);
    return e;
}

err day_step(const char *folder, int64_t *ret)
{
    struct arena arena = {0};
    struct day day;
    const err e = read_day(arena_format(&arena, "%s/%s", folder, file_name), &arena, &day);
    *ret = !e && day.files ? day.step : -1;
    arena_free(&arena);
    return e;
}
