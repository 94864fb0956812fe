/* similar.c - `dtrain similar CKPT TABLE NAME...`: the rows of a table that are nearest to one by
 * the cosine of the angle between them. Rows stream: those asked for and the nearest are in memory.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/checkpoint/checkpoint.h"
#include "cmd/cmd.h"
#include "core/data/word_file.h"
#include "core/train/checkpoint/stored_table.h"

enum { NAMES_MAX = 64, COUNT_MAX = 1 << 16, SPEC_WORDS = 2 };

struct similar_flags {
    int64_t count;
    const char *vocabulary, *spec, *data_dir;
};

static const struct field flags[] = {
    FIELD_OF("count", INT, struct similar_flags, count, .fallback = "10", .min = 1,
             .max = COUNT_MAX, .help = "number of neighbours to print per name"),
    FIELD_OF(
        "vocabulary", STRING, struct similar_flags, vocabulary, .fallback = "null",
        .help =
            "vocabulary file, one word per line, id 0 first: name rows by words instead of ids"),
    FIELD_OF("spec", STRING, struct similar_flags, spec, .fallback = "null",
             .help = "name rows by the words of this spec's text instead"),
    FIELD_OF("data_dir", STRING, struct similar_flags, data_dir, .fallback = "null",
             .help = "folder that relative paths of the spec's data start from; default: the "
                     "folder of the spec"),
    {0},
};

struct near {
    int64_t id;
    double cosine;
};

struct asked_row {
    const char *name;
    int64_t id;
    float *row;    /* [width] */
    double length; /* of the row; 0: it was not found, or is 0 */
    bool is_there;
    struct near *best; /* [count], the nearest first */
    int64_t found;
};

struct similar {
    struct similar_flags flags;
    struct stored_table table;
    struct strings words; /* by id; none: ids are their names */
    struct asked_row asked[NAMES_MAX];
    int asked_count;
    struct arena *arena;
};

/* ---- names ---- */

static err read_words(struct similar *s)
{
    const struct format_context context = {0};
    struct word_file file;
    struct item word;
    const err e = word_file_read(&context, s->flags.vocabulary, s->arena, &file);
    if (e) return fail_prefix(e, "--vocabulary");
    s->words.at = arena_array(s->arena, file.lines + 1, sizeof *s->words.at);
    while (word_file_next(&file, &word))
        s->words.at[s->words.count++] = arena_format(s->arena, "%.*s", (int)word.length, word.text);
    return OK;
}

static err words_of_spec(struct similar *s)
{
    const struct spec_options options = {
        .path = s->flags.spec, .data_dir = s->flags.data_dir, .seed = -1, .trains_nothing = true};
    struct spec spec;
    struct meanings meanings;
    TRY(spec_load(&options, &spec));
    const err e = source_meanings(&spec.data.train, spec.directory, s->arena, &meanings);
    spec_free(&spec);
    if (!e) s->words = meanings.words;
    return e ? fail_prefix(e, "--spec") : OK;
}

static err name_rows(struct similar *s)
{
    if (s->flags.vocabulary && s->flags.spec)
        return fail(ERR_INPUT, "expected --vocabulary or --spec, not both");
    if (s->flags.vocabulary) return read_words(s);
    return s->flags.spec ? words_of_spec(s) : OK;
}

static err find_id(const struct similar *s, const char *name, int64_t *ret)
{
    char *end;
    *ret = text_find(s->words.at, s->words.count, name);
    if (*ret >= 0) return OK;
    if (s->words.count > 0)
        return fail(ERR_INPUT, "\"%.64s\" is not among the %d words", name, s->words.count);
    errno = 0;
    *ret = id_of_64_bits(strtoull(name, &end, 10));
    if (isdigit((unsigned char)*name) && !*end && !errno) return OK;
    return fail(ERR_INPUT,
                "\"%.64s\" is no id: words want --vocabulary=FILE, or --spec=SPEC.json of a text",
                name);
}

static void print_name(const struct similar *s, int64_t id)
{
    if (id >= 0 && id < s->words.count)
        fputs(s->words.at[id], stdout);
    else
        printf("%" PRId64, id);
}

/* ---- rows ---- */

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

static err take_asked(void *context, const int64_t *ids, int64_t count, const float *rows)
{
    struct similar *s = context;
    const int64_t width = s->table.width;
    for (int k = 0; k < s->asked_count; k++) {
        struct asked_row *a = &s->asked[k];
        for (int64_t i = 0; i < count; i++) {
            if (ids[i] != a->id) continue;
            memcpy(a->row, rows + i * width, (size_t)width * sizeof *rows);
            a->length = sqrt(dot(a->row, a->row, width));
            a->is_there = true;
        }
    }
    return OK;
}

static void insert(struct asked_row *a, int64_t most, struct near near)
{
    int64_t at = a->found;
    while (at > 0 && near.cosine > a->best[at - 1].cosine) at--;
    if (at == most) return;
    if (a->found < most) a->found++;
    memmove(a->best + at + 1, a->best + at, (size_t)(a->found - 1 - at) * sizeof near);
    a->best[at] = near;
}

static err take_near(void *context, const int64_t *ids, int64_t count, const float *rows)
{
    struct similar *s = context;
    const int64_t width = s->table.width;
    for (int64_t i = 0; i < count; i++) {
        const float *row = rows + i * width;
        const double length = sqrt(dot(row, row, width));
        for (int k = 0; k < s->asked_count && length > 0; k++) {
            struct asked_row *a = &s->asked[k];
            if (ids[i] == a->id) continue;
            const double cosine = dot(a->row, row, width) / (a->length * length);
            if (isfinite(cosine)) insert(a, s->flags.count, (struct near){ids[i], cosine});
        }
    }
    return OK;
}

static err check_asked(const struct similar *s)
{
    for (int k = 0; k < s->asked_count; k++) {
        const struct asked_row *a = &s->asked[k];
        if (!a->is_there)
            return fail(ERR_INPUT, "%s: it has no row of %s: rows are named by ids from 0 on",
                        s->table.name, a->name);
        if (!(a->length > 0) || !isfinite(a->length))
            return fail(ERR_INPUT, "%s: the row of %s has no direction", s->table.name, a->name);
    }
    return OK;
}

static void print_all(const struct similar *s)
{
    for (int k = 0; k < s->asked_count; k++) {
        const struct asked_row *a = &s->asked[k];
        printf("%s%s\n", k > 0 ? "\n" : "", a->name);
        for (int64_t i = 0; i < a->found; i++) {
            printf("  %.4f  ", a->best[i].cosine);
            print_name(s, a->best[i].id);
            putchar('\n');
        }
    }
}

static err look_for(struct similar *s, struct bundle *bundle, const char *const *words, int count)
{
    TRY(stored_table_find(bundle, words[1], &s->table));
    TRY(name_rows(s));
    s->asked_count = count - SPEC_WORDS;
    for (int k = 0; k < s->asked_count; k++) {
        struct asked_row *a = &s->asked[k];
        a->name = words[k + SPEC_WORDS];
        TRY(find_id(s, a->name, &a->id));
        a->row = arena_array(s->arena, (size_t)s->table.width, sizeof *a->row);
        a->best = arena_array(s->arena, (size_t)s->flags.count + 1, sizeof *a->best);
    }
    TRY(stored_table_read(&s->table, &(struct stored_rows_taker){s, take_asked}));
    TRY(check_asked(s));
    return stored_table_read(&s->table, &(struct stored_rows_taker){s, take_near});
}

static err similar(struct similar *s, int argc, char **argv)
{
    const struct object object = {"similar", "", flags, sizeof s->flags};
    const char *words[NAMES_MAX + SPEC_WORDS];
    struct bundle *bundle;
    int count;
    err e = flags_parse(&object, argc, argv, s->arena, &s->flags, words, NAMES_MAX + SPEC_WORDS,
                        &count);
    if (!e && count <= SPEC_WORDS)
        e = fail(ERR_INPUT, "expected dtrain similar CKPT TABLE NAME...");
    if (!e) e = checkpoint_open(words[0], &bundle);
    if (e) return fail_prefix(e, "similar");
    e = look_for(s, bundle, words, count);
    bundle_close(bundle);
    if (!e) print_all(s);
    return e;
}

static void print_similar_help(FILE *out)
{
    fputs("  dtrain similar [FLAGS] CKPT TABLE NAME...\n\n"
          "Prints, for each NAME (an id or a word), the nearest rows of the table by cosine\n"
          "similarity. CKPT is a folder (its newest checkpoint), a prefix or an .index file;\n"
          "`dtrain checkpoint show CKPT` lists the tables.\n\n",
          out);
    flags_help(out, &(struct object){.fields = flags});
}

static int cmd_similar(int argc, char **argv)
{
    struct arena arena = {0};
    struct similar *s = arena_new(&arena, sizeof *s);
    s->arena = &arena;
    const err e = similar(s, argc - 1, argv + 1);
    arena_free(&arena);
    return e ? report_error(e) : EXIT_DONE;
}

const struct command command_similar = {
    .name = "similar",
    .arguments = "CKPT TABLE NAME...",
    .summary = "nearest rows of a table",
    .run = cmd_similar,
    .topic = "find the nearest rows of a table",
    .print_help = print_similar_help,
};
