/* read.c - files of numbers: JSON lines (--metrics_file) and TensorBoard's event files. */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/plot/curves.h"
#include "core/base/crc32c.h"
#include "core/base/files/local.h"
#include "core/base/proto.h"

enum { FILE_BYTES_MAX = 256 << 20, FILES_MAX = 1024, TAG_BYTES_MAX = 256 };

/* Of messages of TensorFlow. */
enum { EVENT_STEP = 2, EVENT_SUMMARY = 5, SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };

static const char events_word[] = "tfevents", lines_name[] = "metrics.jsonl";

/* ---- JSON lines ---- */

static err add_line(struct curves *c, const json_t *json)
{
    const json_t *step = json_object_get(json, "step"), *value;
    const char *name;
    if (!json_is_integer(step) || json_integer_value(step) < 0)
        return fail(ERR_INPUT, "expected an object with a step");
    json_object_foreach((json_t *)json, name, value)
    {
        if (json_is_number(value))
            TRY(curves_add(c, name, (double)json_integer_value(step), json_number_value(value)));
    }
    return OK;
}

static err read_lines(struct curves *c, const char *path, struct view file)
{
    for (int64_t number = 1; file.at < file.end; number++) {
        const uint8_t *end = memchr(file.at, '\n', view_bytes(file));
        if (!end) return OK; /* still being written */
        json_error_t error;
        json_t *json = json_loadb((const char *)file.at, (size_t)(end - file.at), 0, &error);
        err e = json ? add_line(c, json) : fail(ERR_INPUT, "not JSON: %s", error.text);
        json_decref(json);
        if (e) return fail_prefix(e, "%s: line %lld", path, (long long)number);
        file.at = end + 1;
    }
    return OK;
}

/* ---- event files ---- */

static double float_of(uint64_t value)
{
    const uint32_t bits = (uint32_t)value;
    float number;
    memcpy(&number, &bits, sizeof number);
    return (double)number;
}

/* A value of a summary, where it is a number: histograms and texts are others. */
static err add_value(struct curves *c, double step, struct view value)
{
    char tag[TAG_BYTES_MAX] = "";
    bool is_number = false;
    double number = 0;
    struct proto_field field;
    while (view_bytes(value)) {
        if (!proto_next(&value, &field)) return fail(ERR_INPUT, "a damaged summary");
        if (field.number == VALUE_TAG && field.wire == WIRE_BYTES)
            snprintf(tag, sizeof tag, "%.*s", (int)(view_bytes(field.bytes) % TAG_BYTES_MAX),
                     (const char *)field.bytes.at);
        if (field.number == VALUE_SIMPLE && field.wire == WIRE_FIXED32) {
            number = float_of(field.value);
            is_number = true;
        }
    }
    if (!is_number || !*tag) return OK;
    return curves_add(c, c->folder ? arena_format(&c->arena, "%s%s", c->folder, tag) : tag, step,
                      number);
}

static err add_summary(struct curves *c, double step, struct view summary)
{
    struct proto_field field;
    while (view_bytes(summary)) {
        if (!proto_next(&summary, &field)) return fail(ERR_INPUT, "a damaged summary");
        if (field.number == SUMMARY_VALUE && field.wire == WIRE_BYTES)
            TRY(add_value(c, step, field.bytes));
    }
    return OK;
}

/* Its step may stand behind its summary. */
static err add_event(struct curves *c, struct view event)
{
    struct view summary = {0};
    uint64_t step = 0;
    struct proto_field field;
    while (view_bytes(event)) {
        if (!proto_next(&event, &field)) return fail(ERR_INPUT, "a damaged event");
        if (field.number == EVENT_STEP && field.wire == WIRE_VARINT) step = field.value;
        if (field.number == EVENT_SUMMARY && field.wire == WIRE_BYTES) summary = field.bytes;
    }
    return add_summary(c, (double)(int64_t)step, summary);
}

static bool checksum_is(struct view data, uint32_t stored)
{
    return crc32c_mask(crc32c(data.at, view_bytes(data))) == stored;
}

/* Length, its checksum, the event, its checksum. */
static err read_events(struct curves *c, const char *path, struct view file)
{
    for (int64_t number = 0; file.at < file.end; number++) {
        const struct view begin = file;
        uint64_t length;
        uint32_t length_sum, event_sum;
        struct view event;
        if (!view_fixed64(&file, &length) || !view_fixed32(&file, &length_sum)) return OK;
        const bool is_length =
            checksum_is((struct view){begin.at, begin.at + sizeof length}, length_sum);
        if (is_length && (!view_cut(&file, length, &event) || !view_fixed32(&file, &event_sum)))
            return OK; /* still being written */
        err e = is_length && checksum_is(event, event_sum) ? add_event(c, event)
                                                           : fail(ERR_INPUT, "a wrong checksum");
        if (e) return fail_prefix(e, "%s: record %lld", path, (long long)number);
    }
    return OK;
}

/* ---- files ---- */

/* Opens a pipe only if the user named it: one found in a folder could block for ever. */
static err open_file(const char *path, bool is_named, FILE **ret)
{
    struct stat status;
    if (!is_named && !stat(path, &status) && !S_ISREG(status.st_mode))
        return fail(ERR_INPUT, "%s: expected a regular file", path);
    return local_open_text(path, ret);
}

static err load(const char *path, bool is_named, struct buffer *ret)
{
    static uint8_t piece[1 << 16];
    FILE *file;
    TRY(open_file(path, is_named, &file));
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;) {
        buffer_put(ret, piece, got);
        if (ret->is_short || ret->used > FILE_BYTES_MAX) break;
    }
    const int failed = ferror(file) ? errno : 0;
    fclose(file);
    if (failed) return fail(ERR_INPUT, "%s: %s", path, strerror(failed));
    if (ret->is_short) return fail(ERR_MEMORY, "%s: no memory to read it", path);
    if (ret->used <= FILE_BYTES_MAX) return OK;
    return fail(ERR_INPUT, "%s: more than %d bytes", path, (int)FILE_BYTES_MAX);
}

static err read_file(struct curves *c, const char *path, bool is_named)
{
    struct buffer buffer = {0};
    const char *slash = strrchr(path, '/');
    const bool has_events = strstr(slash ? slash : path, events_word);
    err e = load(path, is_named, &buffer);
    if (!e && has_events) e = read_events(c, path, buffer_view(&buffer));
    if (!e && !has_events) e = read_lines(c, path, buffer_view(&buffer));
    buffer_drop(&buffer);
    return e;
}

static int is_drawn(const struct dirent *entry)
{
    return strstr(entry->d_name, events_word) || strcmp(entry->d_name, lines_name) == 0;
}

/* Names of event files begin with their time, so that their order is that of the run. Where there
 * are lines, they say the same. */
static err read_folder(struct curves *c, const char *path)
{
    struct dirent **names;
    const int count = scandir(path, &names, is_drawn, alphasort);
    if (count < 0) return fail(ERR_INPUT, "%s: %s", path, strerror(errno));
    const bool has_lines = count > 0 && strcmp(names[count - 1]->d_name, lines_name) == 0;
    err e = OK;
    for (int i = has_lines ? count - 1 : 0; i < count && i < FILES_MAX && !e; i++)
        e = read_file(c, arena_format(&c->arena, "%s/%s", path, names[i]->d_name), false);
    for (int i = 0; i < count; i++) free(names[i]);
    free(names);
    return e;
}

/* Evaluations of the run, or of an evaluator beside it, have a folder of their own there. */
static err read_run(struct curves *c, const char *path)
{
    const char *folder = arena_format(&c->arena, "%s/eval", path);
    struct stat status;
    TRY(read_folder(c, path));
    if (stat(folder, &status) || !S_ISDIR(status.st_mode)) return OK;
    c->folder = "eval/";
    const err e = read_folder(c, folder);
    c->folder = NULL;
    return e;
}

static bool has_points(const struct curves *c, int run)
{
    for (int i = 0; i < c->panel_count; i++)
        if (c->panels[i]->curves[run].count) return true;
    return false;
}

err curves_read(struct curves *c, const char *path)
{
    struct stat status;
    if (c->run_count == CURVE_RUNS_MAX)
        return fail(ERR_INPUT, "more than %d runs", (int)CURVE_RUNS_MAX);
    if (stat(path, &status)) return fail(ERR_INPUT, "%s: %s", path, strerror(errno));
    c->runs[c->run_count++] = path;
    TRY(S_ISDIR(status.st_mode) ? read_run(c, path) : read_file(c, path, true));
    if (has_points(c, c->run_count - 1)) return OK;
    return fail(
        ERR_INPUT,
        "%s: nothing to draw: expected a file of --metrics_file, an event file, or a folder "
        "with metrics.jsonl or event files",
        path);
}
