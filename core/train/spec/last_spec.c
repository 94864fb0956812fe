/* last_spec.c - see last_spec.h. */
#include "core/train/spec/last_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/files/file_system.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/checkpoints.h"
#include "core/train/spec/spec_inside.h"

enum { PATH_MAX_BYTES = 256, VALUE_MAX_BYTES = 80, DEPTH_MAX = 32 };

struct spec_changes {
    json_t *lines;
    int left_out;
    char path[PATH_MAX_BYTES];
    size_t used;
};

static void value_of(const json_t *value, char ret[VALUE_MAX_BYTES])
{
    char *text = value ? spec_value_text(value, 0) : NULL;
    const int wanted = snprintf(ret, VALUE_MAX_BYTES, "%s", text ? text : "(default)");
    const size_t cut = VALUE_MAX_BYTES - sizeof "...";
    if (wanted >= VALUE_MAX_BYTES) strcpy(ret + text_begin_of_character(ret, cut), "...");
    free(text);
}

static void add_line(struct spec_changes *c, const json_t *before, const json_t *now)
{
    char was[VALUE_MAX_BYTES], is[VALUE_MAX_BYTES], line[PATH_MAX_BYTES + 2 * VALUE_MAX_BYTES + 8];
    if (json_array_size(c->lines) >= LAST_SPEC_LINES_MAX) {
        c->left_out++;
        return;
    }
    value_of(before, was);
    value_of(now, is);
    snprintf(line, sizeof line, "%s: %s -> %s", c->path, was, is);
    json_array_append_new(c->lines, json_string(line));
}

static void compare(struct spec_changes *c, const json_t *before, const json_t *now, int depth);

/* The path of a key or an element, while it is compared. */
static void compare_at(struct spec_changes *c, const char *step, const json_t *before,
                       const json_t *now, int depth)
{
    const size_t used = c->used, room = sizeof c->path - used;
    const int wanted =
        snprintf(c->path + used, room, "%s%s", used && step[0] != '[' ? "." : "", step);
    const bool is_cut = (size_t)wanted >= room;
    c->used = is_cut ? text_begin_of_character(c->path, sizeof c->path - 2) : used + (size_t)wanted;
    c->path[c->used] = '\0';
    compare(c, before, now, depth + 1);
    c->used = used;
    c->path[used] = '\0';
}

static void compare_objects(struct spec_changes *c, const json_t *before, const json_t *now,
                            int depth)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)before, key, value)
        compare_at(c, key, value, json_object_get(now, key), depth);
    json_object_foreach((json_t *)now, key, value) if (!json_object_get(before, key))
        compare_at(c, key, NULL, value, depth);
}

static void compare_lists(struct spec_changes *c, const json_t *before, const json_t *now,
                          int depth)
{
    char step[24];
    for (size_t i = 0; i < json_array_size(now); i++) {
        snprintf(step, sizeof step, "[%zu]", i);
        compare_at(c, step, json_array_get(before, i), json_array_get(now, i), depth);
    }
}

/* 1 and 1.0 are the same number. */
static bool is_same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    return json_equal(a, b) || (!a && json_is_null(b)) || (!b && json_is_null(a));
}

static void compare(struct spec_changes *c, const json_t *before, const json_t *now, int depth)
{
    const bool are_objects = json_is_object(before) && json_is_object(now);
    const bool are_lists = json_is_array(before) && json_is_array(now) &&
                           json_array_size(before) == json_array_size(now) &&
                           json_is_object(json_array_get(now, 0));
    if (is_same(before, now)) return;
    if (are_objects && depth < DEPTH_MAX)
        compare_objects(c, before, now, depth);
    else if (are_lists && depth < DEPTH_MAX)
        compare_lists(c, before, now, depth);
    else
        add_line(c, before, now);
}

json_t *last_spec_changes(const json_t *before, const json_t *now)
{
    struct spec_changes c = {.lines = json_array()};
    if (!c.lines) return NULL;
    compare(&c, before, now, 0);
    if (c.left_out) {
        char more[48];
        snprintf(more, sizeof more, "and %d keys more", c.left_out);
        json_array_append_new(c.lines, json_string(more));
    }
    return c.lines;
}

static void tell(const json_t *before, const json_t *now, const char *folder)
{
    size_t i;
    json_t *line, *lines = last_spec_changes(before, now);
    if (json_array_size(lines))
        log_line(LOG_INFO, "the spec has changed since the last run in %s:", folder);
    json_array_foreach(lines, i, line) log_line(LOG_INFO, "    %s", json_string_value(line));
    json_decref(lines);
}

/* NULL: nothing is kept, or it cannot be read, which is no reason not to train. */
static json_t *read_last(const char *path)
{
    json_t *json = NULL;
    if (!file_is_there(path)) return NULL;
    if (spec_read_kept(path, &json)) log_line(LOG_WARNING, "%s: %s", path, error_text());
    return json;
}

static err keep_text(const char *folder, const char *path, const char *text)
{
    char prefix[CHECKPOINT_PATH_MAX];
    json_t *now = json_loads(text, 0, NULL), *before = read_last(path);
    const bool is_same = before && now && json_equal(before, now);
    if (before && now && checkpoint_find(folder, prefix) == OK) tell(before, now, folder);
    json_decref(before);
    json_decref(now);
    return is_same ? OK : output_replace(path, text, strlen(text));
}

err last_spec_keep(const struct spec *spec, const char *folder)
{
    char path[CHECKPOINT_PATH_MAX];
    TRY(folder_join(folder, LAST_SPEC_NAME, path));
    char *text = spec_text(spec);
    const err e = text ? keep_text(folder, path, text) : fail(ERR_MEMORY, "no memory for %s", path);
    free(text);
    return e;
}
