/* evidence.c - see evidence.h. */
#include "cmd/why/evidence.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/clock.h"
#include "core/base/files/file_system.h"
#include "core/base/files/local.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/train/checkpoint/bundle/bundle.h"
#include "core/train/checkpoint/checkpoints.h"

enum {
    LINE_BYTES_MAX = 8192,   /* the rest of a line is ignored */
    LINE_REST_MAX = 1 << 20, /* of such a rest, while nothing of a run was found: more is no text */
    PASSED_BYTES_MAX = 64 << 20, /* of a file: such rests, and all before the first line of a run */
    RESULT_BYTES_MAX = 64 << 20,
    FILES_MAX = 4096, /* of a folder */
    PATH_BYTES = 4096,
    CLOCK_WITHIN = 64, /* bytes of a line */
};

const struct line_row line_rows[LINES] = {
#define LINE(ID, WORDS, LEVEL, MEANING) [LINE_##ID] = {WORDS, LEVEL, MEANING},
#include "cmd/why/lines.def"
#undef LINE
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* line 0: the whole file. The text is not trusted. */
static struct quote quote(const char *path, long line, const char *text)
{
    struct quote q;
    char name[EVIDENCE_WHERE_MAX - 24];
    printable_copy(q.text, sizeof q.text, text);
    printable_copy(name, sizeof name, base_name(path));
    if (line)
        snprintf(q.where, sizeof q.where, "%s, line %ld", name, line);
    else
        snprintf(q.where, sizeof q.where, "%s", name);
    return q;
}

/* ---- results ---- */

static double number_at(json_t *json, const char *key)
{
    return json_number_value(json_object_get(json, key));
}

static err take_result(const char *path, json_t *json, struct result_seen *r)
{
    json_t *rows = json_object_get(json, "rows");
    if (r->is_there) return fail(ERR_INPUT, "%s: a second result: one run at a time", path);
    r->is_there = true;
    r->verdict = quote(path, 0, json_string_value(json_object_get(json, "verdict")));
    r->code = (int)json_integer_value(json_object_get(json, "code"));
    r->step = number_at(json, "step");
    r->trained = number_at(json, "trained");
    r->seconds = number_at(json, "seconds");
    r->wall_seconds = number_at(json, "wall_seconds");
    r->rows_twice = number_at(rows, "twice");
    r->rows_lost = number_at(rows, "lost");
    if (!json_object_get(json, "tasks")) return OK;
    return job_status_add(&r->tasks, json, clock_ms()) ? fail_prefix(ERR_INPUT, "%s", path) : OK;
}

static bool is_result(json_t *json)
{
    return json_is_string(json_object_get(json, "verdict")) &&
           json_is_integer(json_object_get(json, "code"));
}

/* ---- metrics ---- */

static void take_metrics(struct metrics_seen *m, const char *path, long line, json_t *json)
{
    const double step = number_at(json, "step"), seconds = number_at(json, "seconds");
    json_t *found = json_object_get(json, "loss");
    const double loss = json_is_number(found) ? json_number_value(found) : (double)NAN;
    if (!m->lines++) {
        m->first_step = step;
        m->first_loss = m->best_loss = loss;
        snprintf(m->path, sizeof m->path, "%s", quote(path, 0, "").where);
    } else if (step <= m->last_step) {
        m->begun_again++;
        m->steps_again += m->last_step - step;
    } else if (seconds - m->seconds > m->gap_s) {
        m->gap_s = seconds - m->seconds;
        m->gap_steps = step - m->last_step;
        m->gap = quote(path, line, "");
    }
    if (!(m->best_loss <= loss) && !isnan(loss)) m->best_loss = loss;
    m->last_loss = loss;
    m->last_step = step;
    m->seconds = seconds;
}

/* Each worker writes a file: keeps the one with the largest gap or most repeated steps, but losses
 * of the first, the chief's. */
static void add_metrics(struct metrics_seen *to, const struct metrics_seen *more)
{
    const struct metrics_seen before = *to;
    if (before.lines && before.gap_s >= more->gap_s && before.steps_again >= more->steps_again)
        return;
    if (more->lines) *to = *more;
    if (!before.lines || !more->lines) return;
    to->first_loss = before.first_loss;
    to->best_loss = before.best_loss;
    to->last_loss = before.last_loss;
}

static bool is_metrics(json_t *json)
{
    return json_is_integer(json_object_get(json, "step")) &&
           json_is_number(json_object_get(json, "seconds")) &&
           json_object_get(json, "learning_rate");
}

/* ---- logs ---- */

struct log_reading {
    struct logs_seen *logs;
    const char *path;
    bool has_end;
    struct quote last;
};

/* "..., 10 s of 12 s (--start_timeout)" */
static double waited_seconds(const char *text)
{
    const char *of = strstr(text, " s of ");
    if (!of) return 0;
    while (of > text && (of[-1] == '.' || (of[-1] >= '0' && of[-1] <= '9'))) of--;
    return strtod(of, NULL);
}

static bool is_line(enum line_kind kind, const char *text)
{
    if (!strstr(text, line_rows[kind].words)) return false;
    return kind != LINE_CHECKPOINT_FAILED || strstr(text, " failed: ");
}

static void note(struct log_reading *r, enum line_kind kind, const char *text, long line)
{
    struct logs_seen *l = r->logs;
    const double waited_s = kind == LINE_WAITED ? waited_seconds(text) : 0;
    const bool is_worse = kind == LINE_WAITED && waited_s > l->waited_s;
    if (is_worse) l->waited_s = waited_s;
    if (!l->counts[kind]++ || is_worse) l->first[kind] = quote(r->path, line, text);
}

/* Whether it is a line of report_end(), of a worker that is done, or the chief's last one */
static bool says_end(const char *text)
{
    int used = 0;
    const char *step = strstr(text, "step ");
    if (strstr(text, "(exit code ") || strstr(text, "done, ") || strstr(text, "the job is done"))
        return true;
    return step && sscanf(step, "step %*u,%n", &used) == 0 && used > 0 &&
           strstr(step, " examples/s");
}

static void take_line(struct log_reading *r, const char *text, bool is_error, bool is_warning,
                      long line)
{
    struct logs_seen *l = r->logs;
    l->warnings += is_warning;
    if (is_error && !l->errors++) l->error = quote(r->path, line, text);
    for (int kind = 0; kind < LINES; kind++)
        if (is_line((enum line_kind)kind, text)) note(r, (enum line_kind)kind, text, line);
    r->has_end = r->has_end || says_end(text);
    l->has_failed = l->has_failed || strstr(text, "(exit code ");
    r->last = quote(r->path, line, text);
}

static void take_text(struct log_reading *r, const char *text, long line)
{
    take_line(r, text, strstr(text, "ERROR: ") != NULL, strstr(text, "WARNING: ") != NULL, line);
}

static void take_json(struct log_reading *r, json_t *json, long line)
{
    const char *text = json_string_value(json_object_get(json, "text")),
               *level = json_string_value(json_object_get(json, "level"));
    if (text && level)
        take_line(r, text, strcmp(level, "error") == 0, strcmp(level, "warning") == 0, line);
}

/* is_whole: it was read to its end; only then a log without a line of the end counts as cut off. */
static void end_log(struct log_reading *r, bool is_whole)
{
    struct logs_seen *l = r->logs;
    l->files++;
    l->has_end = l->has_end || r->has_end;
    if (is_whole && !r->has_end && !l->cut.where[0]) l->cut = r->last;
}

/* "22:00:45.595 dtrain", "worker/0: 12:00:00.000 ...", "2026-11-23T12:26:00.695+01:00 ..." */
static bool is_log(const char *text)
{
    for (const char *c = text; *c && c - text <= CLOCK_WITHIN; c++) {
        int used = 0;
        if (c[1] && c[2] == ':' && sscanf(c, "%*2u:%*2u:%*2u.%*3u%n", &used) == 0 && used >= 12)
            return true;
    }
    return false;
}

/* ---- files ---- */

enum line_shape { SHAPE_NONE, SHAPE_LOG, SHAPE_JSON_LOG, SHAPE_METRICS };

static enum line_shape shape_of(const char *line, json_t *json)
{
    if (json_is_object(json) && is_metrics(json)) return SHAPE_METRICS;
    if (json_is_object(json) && json_object_get(json, "level") && json_object_get(json, "task"))
        return SHAPE_JSON_LOG;
    return is_log(line) ? SHAPE_LOG : SHAPE_NONE;
}

struct line_reading {
    FILE *file;
    long line; /* from 1 */
    long passed;
    char text[LINE_BYTES_MAX]; /* longer lines are cut; a NUL becomes a blank */
};

/* false: no more lines, or too many useless bytes */
static bool next_line(struct line_reading *l, bool found_some)
{
    size_t bytes = 0;
    long rest = 0;
    int c = getc_unlocked(l->file);
    const bool is_one = c != EOF;
    for (; c != EOF && c != '\n'; c = getc_unlocked(l->file)) {
        if (bytes + 1 < sizeof l->text)
            l->text[bytes++] = (char)(c ? c : ' ');
        else if (++rest > PASSED_BYTES_MAX - l->passed || (!found_some && rest > LINE_REST_MAX))
            return false;
    }
    l->text[bytes] = '\0';
    l->passed += rest + (found_some ? 0 : (long)bytes);
    l->line += is_one;
    return is_one && l->passed <= PASSED_BYTES_MAX;
}

/* Finds the kind of file by its lines; a log may begin with a table, or output of other programs.
 */
static err read_lines(FILE *file, const char *path, struct evidence *e, enum line_shape *ret)
{
    struct log_reading reading = {.logs = &e->logs, .path = path};
    struct metrics_seen metrics = {0};
    struct line_reading l = {.file = file};
    *ret = SHAPE_NONE;
    while (next_line(&l, *ret != SHAPE_NONE)) {
        json_t *json = *l.text == '{' ? json_loads(l.text, 0, NULL) : NULL;
        const enum line_shape shape = shape_of(l.text, json);
        if (*ret == SHAPE_NONE) *ret = shape;
        if (shape == SHAPE_METRICS) take_metrics(&metrics, path, l.line, json);
        if (shape == SHAPE_JSON_LOG) take_json(&reading, json, l.line);
        if (*ret == SHAPE_LOG && !json) take_text(&reading, l.text, l.line);
        json_decref(json);
    }
    if (ferror(file)) return fail(ERR_IO, "%s: %s", path, strerror(errno));
    const bool is_whole = feof(file);
    if (*ret == SHAPE_LOG || *ret == SHAPE_JSON_LOG) end_log(&reading, is_whole);
    if (*ret != SHAPE_NONE && !is_whole) e->unread = quote(path, l.line, "");
    add_metrics(&e->metrics, &metrics);
    return OK;
}

/* NULL: no JSON, or too large for a result */
static json_t *load_json(FILE *file)
{
    struct stat state;
    const bool is_small = !fstat(fileno(file), &state) && state.st_size <= RESULT_BYTES_MAX;
    return is_small ? json_loadf(file, 0, NULL) : NULL;
}

static err read_file(const char *path, struct evidence *e, bool *ret_is_one)
{
    FILE *file;
    enum line_shape shape = SHAPE_NONE;
    TRY(local_open_text(path, &file));
    json_t *json = load_json(file);
    *ret_is_one = json && is_result(json);
    rewind(file);
    const err failed =
        *ret_is_one ? take_result(path, json, &e->result) : read_lines(file, path, e, &shape);
    json_decref(json);
    fclose(file);
    *ret_is_one = *ret_is_one || shape != SHAPE_NONE;
    return failed;
}

/* ---- folders ---- */

/* A folder without checkpoints is no error. */
static err take_checkpoints(const char *folder, struct checkpoints_seen *c)
{
    char **prefixes;
    struct bundle *bundle;
    int count;
    const err e = checkpoint_list(folder, &prefixes, &count);
    if (e) return e == ERR_IO ? e : OK;
    c->is_there = true;
    c->count += count;
    c->step = -1;
    for (int i = count - 1; i >= 0 && c->step < 0; i--) {
        if (bundle_open(prefixes[i], &bundle)) {
            c->trouble = quote(folder, 0, error_text());
            continue;
        }
        bundle_close(bundle);
        c->step = (double)checkpoint_step(prefixes[i]);
    }
    free(prefixes);
    return OK;
}

/* Files of checkpoints and of TensorBoard are not text. */
static bool may_be_text(const char *name)
{
    return name[0] != '.' && strncmp(name, "model.ckpt", strlen("model.ckpt")) != 0 &&
           strcmp(name, "checkpoint") != 0 && !strstr(name, "tfevents");
}

static err read_folder(const char *folder, struct evidence *e, bool *ret_is_one)
{
    struct dirent **found;
    const int count = scandir(folder, &found, NULL, alphasort);
    if (count < 0) return fail(ERR_IO, "%s: %s", folder, strerror(errno));
    err failed = take_checkpoints(folder, &e->checkpoints);
    *ret_is_one = e->checkpoints.is_there;
    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES];
        struct stat state;
        bool is_one = false;
        snprintf(path, sizeof path, "%s/%s", folder, found[i]->d_name);
        if (!failed && i < FILES_MAX && may_be_text(found[i]->d_name) && stat(path, &state) == 0 &&
            S_ISREG(state.st_mode))
            failed = read_file(path, e, &is_one);
        *ret_is_one = *ret_is_one || is_one;
        free(found[i]);
    }
    free(found);
    return failed;
}

err evidence_read(const char *path, struct evidence *e)
{
    struct stat state;
    bool is_one = false;
    if (path_is_url(path)) {
        TRY(take_checkpoints(path, &e->checkpoints));
        is_one = e->checkpoints.is_there;
    } else {
        if (stat(path, &state)) return fail(ERR_INPUT, "%s: %s", path, strerror(errno));
        TRY(S_ISDIR(state.st_mode) ? read_folder(path, e, &is_one) : read_file(path, e, &is_one));
    }
    if (is_one) return OK;
    return fail(ERR_INPUT,
                "%s: nothing in it that a run leaves: a --result, a --metrics_file, a log, or "
                "checkpoints",
                path);
}

void evidence_free(struct evidence *e)
{
    job_status_free(&e->result.tasks);
}
