/* label_words.c - see label_words.h. */
#include "core/data/stats/label_words.h"

#include <stdlib.h>
#include <string.h>

#include "core/data/formats/label.h"
#include "core/data/labels.h"
#include "core/data/stats/each_row.h"
#include "core/data/stats/words.h"

/* NULL: the source has no label_form. */
static struct label_form *any_form_of(const struct source_spec *source)
{
    if (!source->format.kind) return NULL;
    const size_t offset = ((const struct format *)source->format.kind->descriptor)->label_form;
    return offset ? (struct label_form *)((char *)source->format.attributes + offset) : NULL;
}

/* NULL: labels of the source are not words. */
static struct label_form *form_of(const struct source_spec *source)
{
    struct label_form *form = any_form_of(source);
    return form && form->labels.count == 0 && label_has_classes(form) ? form : NULL;
}

const struct strings *label_words_of(const struct source_spec *source)
{
    static const struct strings none;
    const struct label_form *form = form_of(source);
    return form ? &form->classes : &none;
}

const struct strings *label_words_named(const struct source_spec *source, const char *label)
{
    const struct objects *labels = labels_listed(source);
    for (int i = 0; i < labels->count; i++) {
        const struct label_spec *spec = (const struct label_spec *)labels->at + i;
        if (strcmp(spec->name, label) == 0) return &spec->classes;
    }
    return label_words_of(source);
}

const char *label_positive_of(const struct source_spec *source)
{
    const struct label_form *form = any_form_of(source);
    return form ? form->positive : NULL;
}

bool label_words_are_wanting(const struct data_spec *data)
{
    const struct label_form *form = form_of(&data->train);
    return form && form->classes.count == 0;
}

/* ---- of the training data ---- */

static const struct cell *label_of(const struct row_reader *reader, const struct row *row)
{
    return reader->label_cell >= 0 ? &row->cells[reader->label_cell] : row->label_text;
}

static err add_row(void *context, const struct row_reader *reader, const struct row *row)
{
    char buffer[LABEL_TEXT_MAX];
    struct word_counts *words = context;
    struct cell text;
    const struct cell *label = label_of(reader, row);
    if (!label)
        return fail(ERR_INPUT, "%s: the words of its labels are listed in \"classes\"",
                    reader->name);
    if (!label_text(label, buffer, &text)) return OK;
    TRY(words_add(words, text.text, text.length));
    if (words->forgotten == 0 && words->too_long == 0) return OK;
    return fail(ERR_INPUT, "%s: %s %lld: labels are at most %d words of %d bytes", reader->name,
                reader->numbered, (long long)row->number, LABEL_CLASSES_MAX, WORD_BYTES_MAX);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static err give_sorted(const struct word_counts *words, struct label_form *form,
                       struct arena *arena)
{
    const struct word_count **list;
    TRY(words_list(words, &list));
    const char **sorted = arena_array(arena, (size_t)words->count, sizeof *sorted);
    for (int64_t i = 0; i < words->count; i++) sorted[i] = arena_string(arena, list[i]->word.text);
    qsort(sorted, (size_t)words->count, sizeof *sorted, compare);
    form->classes = (struct strings){sorted, (int)words->count};
    free(list);
    return OK;
}

err label_words_measure(struct data_spec *data, const struct format_context *context,
                        struct arena *arena)
{
    struct arena own = {0};
    struct word_counts words = {.max = LABEL_CLASSES_MAX};
    const struct row_visitor visitor = {.row = add_row, .context = &words, .is_ahead = true};
    const char *name;
    struct format_context later = *context;
    later.later_columns = &data->columns;
    err e = each_row(&data->train, &later, &visitor, &own, &name);
    if (!e) e = give_sorted(&words, form_of(&data->train), arena);
    words_free(&words);
    arena_free(&own);
    return e;
}

/* ---- of a list ---- */

void label_words_give(struct data_spec *data, const struct strings *words)
{
    form_of(&data->train)->classes = *words;
}

static err settle(const struct source_spec *source, struct arena *arena)
{
    const struct label_form *any = any_form_of(source);
    struct label_form *form = form_of(source);
    if (any && any->positive && any->classes.count > 0)
        return fail(ERR_INPUT, "expected \"classes\" or \"positive\", got both");
    if (form && form->classes.count == 0)
        return fail(ERR_INPUT, "its labels are words and those of data.train are not: list them in "
                               "\"classes\"");
    return form ? label_sort_classes(form, arena) : OK;
}

err label_words_settle(struct data_spec *data, struct arena *arena)
{
    struct label_form *eval = form_of(&data->eval);
    if (eval && eval->classes.count == 0) eval->classes = *label_words_of(&data->train);
    err e = settle(&data->train, arena);
    if (e) return fail_prefix(e, "data.train");
    e = settle(&data->eval, arena);
    return e ? fail_prefix(e, "data.eval") : OK;
}
