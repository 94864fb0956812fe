/* day.c - see day.h. */
#include "core/train/spec/day.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/log.h"
#include "core/data/parts.h"
#include "core/train/spec/spec_inside.h"

struct kept_day {
    const char *files; /* 16 hex digits */
    int64_t step;
};

static const struct field fields[] = {
    {.name = "files",
     .type = FIELD_STRING,
     .offset = offsetof(struct kept_day, files),
     .help = "digest of the names, sizes and heads of the files that are trained on"},
    {.name = "step",
     .type = FIELD_INT,
     .offset = offsetof(struct kept_day, step),
     .max = STEPS_MAX,
     .help = "the global step at which they were begun"},
    {0},
};

static const struct object day_object = {"day", "which files a run is at", fields,
                                         sizeof(struct kept_day)};

/* files NULL: there is none yet. */
static err read_day(const char *path, struct arena *arena, struct kept_day *ret)
{
    json_t *json = NULL;
    *ret = (struct kept_day){0};
    err e = spec_find_kept(path, &json);
    if (!e && json) e = fields_parse(&day_object, json, "", arena, ret);
    json_decref(json);
    return e ? fail_prefix(e, "%s", path) : OK;
}

static err digest_files(const struct spec *spec, char ret[DAY_DIGEST_BYTES])
{
    const struct format_context context = {.directory = spec->directory,
                                           .seed = (uint64_t)spec->seed};
    uint64_t digest;
    const err e = parts_digest(&spec->data.train, &context, &digest);
    if (e) return fail_prefix(e, "train.daily: data.train");
    snprintf(ret, DAY_DIGEST_BYTES, "%016" PRIx64, digest);
    return OK;
}

static void tell(const struct day *day)
{
    if (day->begins != DAY_GOES_ON)
        log_line(LOG_INFO, "begins data.train at its first row: the checkpoint of step %lld has %s",
                 (long long)day->step,
                 day->begins == DAY_BEGINS ? "other files" : "none of its rows");
}

/* At or before the step at which these files were begun, a checkpoint has none of their rows. */
static err look(const struct spec *spec, const char *path, struct arena *arena, struct day *ret)
{
    struct kept_day before;
    TRY(digest_files(spec, ret->files));
    TRY(read_day(path, arena, &before));
    if (!before.files || strcmp(before.files, ret->files) != 0)
        ret->begins = DAY_BEGINS;
    else
        ret->begins = ret->step <= before.step ? DAY_BEGINS_AGAIN : DAY_GOES_ON;
    if (before.files && ret->step > 0) tell(ret);
    return OK;
}

err day_look(const struct spec *spec, const char *folder, uint64_t step, struct day *ret)
{
    struct arena arena = {0};
    *ret = (struct day){.step = (int64_t)step};
    const err e = look(spec, arena_format(&arena, "%s/%s", folder, DAY_NAME), &arena, ret);
    arena_free(&arena);
    return e;
}

err day_keep(const char *folder, const struct day *day)
{
    struct arena arena = {0};
    const char *path = arena_format(&arena, "%s/%s", folder, DAY_NAME);
    const struct kept_day kept = {day->files, day->step};
    const err e = spec_write_kept(path, fields_write(&day_object, &kept));
    arena_free(&arena);
    return e;
}

err day_step(const char *folder, int64_t *ret)
{
    struct arena arena = {0};
    struct kept_day kept;
    const err e = read_day(arena_format(&arena, "%s/%s", folder, DAY_NAME), &arena, &kept);
    *ret = !e && kept.files ? kept.step : -1;
    arena_free(&arena);
    return e;
}
