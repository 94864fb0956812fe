/* rows.c - `dtrain checkpoint rows CKPT TABLE OUT`: one table for an index of nearest neighbours, a
 * spreadsheet, or TensorBoard's projector. Rows stream: no more of them than a stretch is in
 * memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/checkpoint/checkpoint.h"
#include "cmd/checkpoint/npz.h"
#include "core/base/files/file_system.h"
#include "core/base/files/url.h"
#include "core/train/checkpoint/stored_table.h"

enum { OUT_PATH_MAX = 4096, SHOWN_IN_PROJECTOR = 100000 };

/* ---- files that have their names at the end ---- */

struct out {
    char path[OUT_PATH_MAX], temporary[OUT_PATH_MAX];
    FILE *file;
};

static err out_open(struct out *o, const char *beginning, const char *ending)
{
    const int length = snprintf(o->path, sizeof o->path, "%s%s", beginning, ending);
    const int both = snprintf(o->temporary, sizeof o->temporary, "%s%s.partial-%d", beginning,
                              ending, (int)getpid());
    if (length >= OUT_PATH_MAX || both >= OUT_PATH_MAX)
        return fail(ERR_INPUT, "%.64s...: too long a path", beginning);
    o->file = fopen(o->temporary, "wxe");
    return o->file ? OK : fail(ERR_IO, "%s: %s", o->path, strerror(errno));
}

static err out_publish(struct out *o)
{
    const bool is_written = !ferror(o->file) && fflush(o->file) == 0 && fsync(fileno(o->file)) == 0;
    if (!is_written) return fail(ERR_IO, "%s: %s", o->path, strerror(errno));
    if (rename(o->temporary, o->path)) return fail(ERR_IO, "%s: %s", o->path, strerror(errno));
    o->temporary[0] = '\0';
    return OK;
}

static void out_close(struct out *o)
{
    if (!o->file) return;
    fclose(o->file);
    if (o->temporary[0]) unlink(o->temporary);
}

/* ---- words ---- */

struct vocabulary {
    char **words; /* [count], owned */
    int64_t count;
};

static void vocabulary_free(struct vocabulary *v)
{
    for (int64_t i = 0; i < v->count; i++) free(v->words[i]);
    free(v->words);
}

static err add_word(struct vocabulary *v, const char *text, size_t length)
{
    if ((v->count & (v->count - 1)) == 0) {
        char **words = realloc(v->words, (size_t)(v->count ? 2 * v->count : 1) * sizeof *words);
        if (!words) return fail(ERR_MEMORY, "no memory for words");
        v->words = words;
    }
    v->words[v->count] = strndup(text, length);
    return v->words[v->count] ? v->count++, OK : fail(ERR_MEMORY, "no memory for words");
}

/* As a vocabulary column reads it: trimmed, empty lines are passed over. */
static err read_vocabulary(const char *path, struct vocabulary *v)
{
    static const char blanks[] = " \t\r\n";
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    err e = OK;
    if (!file) return fail(ERR_INPUT, "--vocabulary: %s: %s", path, strerror(errno));
    for (ssize_t length; !e && (length = getline(&line, &room, file)) > 0;) {
        const char *from = line + strspn(line, blanks);
        while (length > 0 && strchr(blanks, line[length - 1])) length--;
        if (line + length > from) e = add_word(v, from, (size_t)(line + length - from));
    }
    if (!e && ferror(file)) e = fail(ERR_INPUT, "--vocabulary: %s: %s", path, strerror(errno));
    free(line);
    fclose(file);
    return e;
}

/* ---- the three forms ---- */

enum form { FORM_NPY, FORM_TEXT, FORM_PROJECTOR };

struct writing {
    const struct stored_table *table;
    enum form form;
    char separator; /* of text */
    struct vocabulary vocabulary;
    struct out rows, ids; /* TEXT: ids stand in rows */
};

static void put_word(struct writing *w, FILE *file, const char *word)
{
    const bool is_quoted = w->separator == ',' && strpbrk(word, ",\"");
    if (is_quoted) putc('"', file);
    for (const char *at = word; *at; at++) {
        if (is_quoted && *at == '"') putc('"', file);
        putc(*at == '\t' ? ' ' : *at, file);
    }
    if (is_quoted) putc('"', file);
}

static void put_id(struct writing *w, FILE *file, int64_t id)
{
    if (id < w->vocabulary.count)
        put_word(w, file, w->vocabulary.words[id]);
    else
        fprintf(file, "%" PRId64, id);
}

static void put_line(struct writing *w, int64_t id, const float *row)
{
    FILE *ids = w->form == FORM_PROJECTOR ? w->ids.file : w->rows.file;
    put_id(w, ids, id);
    putc(w->form == FORM_PROJECTOR ? '\n' : w->separator, ids);
    for (int64_t i = 0; i < w->table->width; i++)
        fprintf(w->rows.file, "%.9g%c", (double)row[i],
                i + 1 < w->table->width ? w->separator : '\n');
}

static err take(void *context, const int64_t *ids, int64_t count, const float *rows)
{
    struct writing *w = context;
    if (w->form == FORM_NPY) {
        fwrite(ids, sizeof *ids, (size_t)count, w->ids.file);
        fwrite(rows, sizeof *rows, (size_t)(count * w->table->width), w->rows.file);
    } else {
        for (int64_t i = 0; i < count; i++) put_line(w, ids[i], rows + i * w->table->width);
    }
    const bool has_failed = ferror(w->rows.file) || (w->ids.file && ferror(w->ids.file));
    return has_failed ? fail(ERR_IO, "%s: %s", w->rows.path, strerror(errno)) : OK;
}

static void put_npy_header(FILE *file, const char *type, int rank, const int64_t *dim)
{
    const struct npy_header header =
        npy_header(&(struct npz_array){.type = type, .rank = rank, .dim = dim});
    fwrite(header.at, 1, header.length, file);
}

static void begin_npy(struct writing *w)
{
    const int64_t dim[] = {w->table->rows, w->table->width};
    put_npy_header(w->rows.file, "<f4", 2, dim);
    put_npy_header(w->ids.file, "<i8", 1, dim);
}

static void begin_text(struct writing *w)
{
    fprintf(w->rows.file, "%s", w->vocabulary.count ? "word" : "id");
    for (int64_t i = 0; i < w->table->width; i++)
        fprintf(w->rows.file, "%cv%" PRId64, w->separator, i);
    putc('\n', w->rows.file);
}

/* What TensorBoard looks for in a folder of its --logdir. */
static err write_projector(const struct writing *w, const char *folder)
{
    struct out out = {0};
    err e = out_open(&out, folder, "/projector_config.pbtxt");
    if (!e) {
        fputs("embeddings {\n  tensor_name: \"", out.file);
        for (const char *at = w->table->name; *at; at++)
            fprintf(out.file, "%s%c", strchr("\"\\", *at) ? "\\" : "", *at);
        fputs("\"\n  tensor_path: \"vectors.tsv\"\n  metadata_path: \"metadata.tsv\"\n}\n",
              out.file);
        e = out_publish(&out);
    }
    out_close(&out);
    return e;
}

/* ---- all of it ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

static err open_out(struct writing *w, const char *path)
{
    char stem[OUT_PATH_MAX];
    if (path_is_url(path)) return fail(ERR_INPUT, "%.64s: expected a path of this host", path);
    w->separator = ends_with(path, ".csv") ? ',' : '\t';
    if (ends_with(path, ".csv") || ends_with(path, ".tsv")) {
        w->form = FORM_TEXT;
        return out_open(&w->rows, path, "");
    }
    if (ends_with(path, ".npy")) {
        w->form = FORM_NPY;
        if (w->vocabulary.count)
            return fail(ERR_INPUT, "%s has ids and no words: --vocabulary is for the other forms",
                        path);
        snprintf(stem, sizeof stem, "%.*s", (int)(strlen(path) - strlen(".npy")), path);
        TRY(out_open(&w->rows, path, ""));
        return out_open(&w->ids, stem, ".ids.npy");
    }
    w->form = FORM_PROJECTOR;
    if (mkdir(path, 0777) && errno != EEXIST)
        return fail(ERR_IO, "%s: %s (or name a file that ends with .npy, .csv or .tsv)", path,
                    strerror(errno));
    TRY(out_open(&w->rows, path, "/vectors.tsv"));
    return out_open(&w->ids, path, "/metadata.tsv");
}

static err write_all(struct writing *w, const char *path)
{
    TRY(open_out(w, path));
    if (w->form == FORM_NPY) begin_npy(w);
    if (w->form == FORM_TEXT) begin_text(w);
    TRY(stored_table_read(w->table, &(struct stored_rows_taker){w, take}));
    if (w->ids.file) TRY(out_publish(&w->ids));
    TRY(out_publish(&w->rows));
    return w->form == FORM_PROJECTOR ? write_projector(w, path) : OK;
}

static err write_table(struct bundle *bundle, const struct checkpoint_call *call)
{
    struct stored_table table;
    char shown[PATH_BYTES_MAX];
    const char *path = call->words[2];
    TRY(stored_table_find(bundle, call->words[1], &table));
    struct writing *w = calloc(1, sizeof *w);
    if (!w) return fail(ERR_MEMORY, "no memory for the rows");
    w->table = &table;
    err e = call->vocabulary ? read_vocabulary(call->vocabulary, &w->vocabulary) : OK;
    if (!e) e = write_all(w, path);
    const bool is_projector = w->form == FORM_PROJECTOR;
    out_close(&w->rows);
    out_close(&w->ids);
    vocabulary_free(&w->vocabulary);
    free(w);
    TRY(e);
    printf("%s: %" PRId64 " rows of %" PRId64 " numbers: %s of %s\n", path, table.rows, table.width,
           table.name, path_shown(bundle_prefix(bundle), shown));
    if (is_projector && table.rows > SHOWN_IN_PROJECTOR)
        printf("TensorBoard's projector draws the first %d rows\n", SHOWN_IN_PROJECTOR);
    return OK;
}

err checkpoint_rows(const struct checkpoint_call *call, int *ret_code)
{
    struct bundle *bundle;
    TRY(checkpoint_open(call->words[0], &bundle));
    err e = write_table(bundle, call);
    bundle_close(bundle);
    return e;
}
