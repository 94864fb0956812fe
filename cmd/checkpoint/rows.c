/* rows.c - `dtrain checkpoint rows CKPT TABLE OUT`: exports one table for a nearest-neighbour
 * index, a spreadsheet, or TensorBoard's projector. Rows are streamed in batches, not held in
 * memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/checkpoint/checkpoint.h"
#include "cmd/checkpoint/npz.h"
#include "cmd/out_file.h"
#include "core/base/clock.h"
#include "core/base/files/file_system.h"
#include "core/base/files/url.h"
#include "core/base/text.h"
#include "core/data/word_file.h"
#include "core/train/checkpoint/newest.h"
#include "core/train/summary/events.h"

enum { OUT_PATH_MAX = 4096, SHOWN_IN_PROJECTOR = 100000 };

/* ---- words ---- */

struct vocabulary {
    struct item *words; /* [count], in the arena of the call */
    int64_t count;
};

static err read_vocabulary(const char *path, struct arena *arena, struct vocabulary *v)
{
    const struct format_context context = {0};
    struct word_file file;
    struct item word;
    const err e = word_file_read(&context, path, arena, &file);
    if (e) return fail_prefix(e, "--vocabulary");
    v->words = arena_array(arena, file.lines, sizeof *v->words);
    while (word_file_next(&file, &word)) v->words[v->count++] = word;
    return OK;
}

/* ---- the three forms ---- */

enum form { FORM_NPY, FORM_TEXT, FORM_PROJECTOR };

struct rows_writing {
    const struct stored_table *table;
    enum form form;
    char separator; /* of text */
    struct vocabulary vocabulary;
    struct out_file rows, ids; /* FORM_TEXT has ids in `rows` */
};

static void put_word(struct rows_writing *w, FILE *file, const struct item *word)
{
    const bool is_quoted = w->separator == ',' && (memchr(word->text, ',', word->length) ||
                                                   memchr(word->text, '"', word->length));
    if (is_quoted) putc('"', file);
    for (size_t i = 0; i < word->length; i++) {
        if (is_quoted && word->text[i] == '"') putc('"', file);
        putc(word->text[i] == '\t' ? ' ' : word->text[i], file);
    }
    if (is_quoted) putc('"', file);
}

static void put_id(struct rows_writing *w, FILE *file, int64_t id)
{
    if (id < w->vocabulary.count)
        put_word(w, file, &w->vocabulary.words[id]);
    else
        fprintf(file, "%" PRId64, id);
}

static void put_line(struct rows_writing *w, int64_t id, const float *row)
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
    struct rows_writing *w = context;
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

static void begin_npy(struct rows_writing *w)
{
    const int64_t dim[] = {w->table->rows, w->table->width};
    put_npy_header(w->rows.file, "<f4", 2, dim);
    put_npy_header(w->ids.file, "<i8", 1, dim);
}

static void begin_text(struct rows_writing *w)
{
    fprintf(w->rows.file, "%s", w->vocabulary.count ? "word" : "id");
    for (int64_t i = 0; i < w->table->width; i++)
        fprintf(w->rows.file, "%cv%" PRId64, w->separator, i);
    putc('\n', w->rows.file);
}

/* Opens the file whose path is beginning, of so many bytes, and ending. */
static err open_beside(struct out_file *o, const char *beginning, size_t bytes, const char *ending)
{
    char path[OUT_PATH_MAX];
    const int length = snprintf(path, sizeof path, "%.*s%s", (int)bytes, beginning, ending);
    if (length >= OUT_PATH_MAX) return fail(ERR_INPUT, "%.64s...: too long a path", beginning);
    return out_file_open(o, path);
}

/* Makes an event file without events, once: TensorBoard ignores folders of a --logdir that have no
 * event file. */
static err make_run(const char *folder)
{
    struct events *events;
    TRY(events_open(folder, clock_unix_s(), ".projector", &events));
    const err e = events_flush(events);
    events_close(events);
    return e;
}

/* Writes projector_config.pbtxt, which TensorBoard looks for. */
static err write_projector(const struct rows_writing *w, const char *folder)
{
    struct out_file out = {0};
    err e = open_beside(&out, folder, strlen(folder), "/projector_config.pbtxt");
    if (!e && !file_is_there(out.path)) e = make_run(folder);
    if (!e) {
        fputs("embeddings {\n  tensor_name: \"", out.file);
        for (const char *at = w->table->name; *at; at++)
            fprintf(out.file, "%s%c", strchr("\"\\", *at) ? "\\" : "", *at);
        fputs("\"\n  tensor_path: \"vectors.tsv\"\n  metadata_path: \"metadata.tsv\"\n}\n",
              out.file);
        e = out_file_publish(&out);
    }
    out_file_close(&out);
    return e;
}

/* ---- all of it ---- */

static err open_out(struct rows_writing *w, const char *path)
{
    const size_t length = strlen(path);
    if (path_is_url(path)) return fail(ERR_INPUT, "%.64s: expected a path of this host", path);
    w->separator = text_ends_with(path, ".csv") ? ',' : '\t';
    if (text_ends_with(path, ".csv") || text_ends_with(path, ".tsv")) {
        w->form = FORM_TEXT;
        return open_beside(&w->rows, path, length, "");
    }
    if (text_ends_with(path, ".npy")) {
        w->form = FORM_NPY;
        if (w->vocabulary.count)
            return fail(ERR_INPUT, "%s has ids and no words: --vocabulary is for the other forms",
                        path);
        TRY(open_beside(&w->rows, path, length, ""));
        return open_beside(&w->ids, path, length - strlen(".npy"), ".ids.npy");
    }
    w->form = FORM_PROJECTOR;
    if (mkdir(path, 0777) && errno != EEXIST)
        return fail(ERR_IO, "%s: %s (or name a file that ends with .npy, .csv or .tsv)", path,
                    strerror(errno));
    TRY(open_beside(&w->rows, path, length, "/vectors.tsv"));
    return open_beside(&w->ids, path, length, "/metadata.tsv");
}

static err write_all(struct rows_writing *w, const char *path)
{
    TRY(open_out(w, path));
    if (w->form == FORM_NPY) begin_npy(w);
    if (w->form == FORM_TEXT) begin_text(w);
    TRY(stored_table_read(w->table, &(struct stored_rows_taker){w, take}));
    if (w->ids.file) TRY(out_file_publish(&w->ids));
    TRY(out_file_publish(&w->rows));
    return w->form == FORM_PROJECTOR ? write_projector(w, path) : OK;
}

static err write_table(struct bundle *bundle, struct newest *newest,
                       const struct checkpoint_call *call)
{
    struct stored_table table;
    char shown[PATH_BYTES_MAX];
    const char *path = call->words[2];
    TRY(stored_table_find(bundle, call->words[1], &table));
    TRY(newest_lay_over(newest, &table));
    struct rows_writing *w = calloc(1, sizeof *w);
    if (!w) return fail(ERR_MEMORY, "no memory for the rows");
    w->table = &table;
    err e = call->vocabulary ? read_vocabulary(call->vocabulary, call->arena, &w->vocabulary) : OK;
    if (!e) e = write_all(w, path);
    const bool is_projector = w->form == FORM_PROJECTOR;
    out_file_close(&w->rows);
    out_file_close(&w->ids);
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
    struct newest *newest = NULL;
    TRY(checkpoint_open(call->words[0], &bundle));
    err e = call->delta ? newest_open(bundle, &newest) : OK;
    if (!e) e = write_table(bundle, newest, call);
    newest_close(newest);
    bundle_close(bundle);
    return e;
}
