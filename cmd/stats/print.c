/* print.c - what cells have as a table for people, and as JSON for programs. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/json_print.h"
#include "cmd/stats/report.h"
#include "core/base/printable.h"

enum { NAME_WIDTH_MAX = 32, WORD_SHOWN_MAX = 24, JSON_WORDS_MAX = 100 };

static const double OTHERS_SHARE_MAX = 0.1;

enum { QUANTILES = 3 };
static const double fractions[QUANTILES] = {0.25, 0.5, 0.75};

bool stats_has_words(const struct cell_stats *c)
{
    const bool has_others = c->numbers < c->values || c->ids > 0;
    const bool are_few = c->words.count <= NUMBERS_AS_WORDS_MAX && c->words.forgotten == 0;
    return !c->is_label && c->words.count > 0 && (has_others || are_few);
}

bool stats_has_boundaries(const struct cell_stats *c)
{
    return !c->is_label && c->numbers == c->values && c->numbers > 0;
}

/* ---- the table ---- */

static int name_width(const struct stats *s)
{
    size_t width = strlen("cell");
    for (int i = 0; i < s->count; i++) {
        const size_t length = strlen(s->cells[i].name);
        if (length > width) width = length;
    }
    return width < NAME_WIDTH_MAX ? (int)width : NAME_WIDTH_MAX;
}

static void print_numbers(const struct cell_stats *c, const double found[QUANTILES], FILE *out)
{
    const double all[] = {c->spread.mean, spread_deviation(&c->spread, c->numbers),
                          c->min,         found[0],
                          found[1],       found[2],
                          c->max};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (c->numbers)
            fprintf(out, " %10.5g", all[i]);
        else
            fprintf(out, " %10s", "-");
}

/* Quoted as in a file of cells where a comma would end it; on one line, whatever is in it. */
static void print_word(const char *word, FILE *out)
{
    char text[WORD_SHOWN_MAX];
    const bool is_whole = printable_copy(text, sizeof text, word), is_quoted = strchr(text, ',');
    if (is_quoted) putc('"', out);
    for (const char *c = text; *c; c++) {
        if (is_quoted && *c == '"') putc('"', out);
        if (*c == '\n')
            fputs("\\x0a", out);
        else
            putc(*c, out);
    }
    fprintf(out, "%s%s", is_whole ? "" : "...", is_quoted ? "\"" : "");
}

/* "Private 22696, ?  1836, ..." */
static err print_words(const struct cell_stats *c, FILE *out)
{
    const struct word_count **words;
    char distinct[32];
    TRY(words_list(&c->words, &words));
    snprintf(distinct, sizeof distinct, "%s%lld", c->words.forgotten ? "over " : "",
             (long long)c->words.count);
    fprintf(out, " %12s ", distinct);
    for (int64_t i = 0; i < c->words.count && i < STATS_WORDS_SHOWN; i++) {
        fputs(i ? ", " : " ", out);
        print_word(words[i]->word.text, out);
        fprintf(out, " %lld", (long long)words[i]->count);
    }
    free(words);
    return OK;
}

static err find_quantiles(const struct cell_stats *c, double ret[QUANTILES])
{
    return c->numbers ? quantiles_find(&c->quantiles, fractions, QUANTILES, ret) : OK;
}

static err print_cell(const struct cell_stats *c, int width, FILE *out)
{
    double found[QUANTILES] = {0};
    TRY(find_quantiles(c, found));
    fprintf(out, "%-*.*s %10lld %9lld %10lld", width, width, c->name, (long long)c->rows,
            (long long)c->missing, (long long)c->numbers);
    print_numbers(c, found, out);
    TRY(print_words(c, out));
    fprintf(out, "%s\n", c->is_label ? " (label)" : "");
    return OK;
}

/* Of a cell of numbers, whether it has a value that is none: most often one that is written
 * otherwise, or a word that stands for a missing value. A cell of words has nothing odd. */
static bool has_odd_values(const struct cell_stats *c)
{
    const int64_t others = c->values - c->numbers;
    return c->other && others <= (int64_t)(OTHERS_SHARE_MAX * (double)c->values);
}

static void print_others(const struct stats *s, FILE *out)
{
    for (int i = 0; i < s->count; i++) {
        const struct cell_stats *c = &s->cells[i];
        const int64_t others = c->values - c->numbers;
        if (!has_odd_values(c)) continue;
        fprintf(out, "%s: %lld of %lld values %s no number%s, %s%s\n", c->name, (long long)others,
                (long long)c->values, others == 1 ? "is" : "are", others == 1 ? "" : "s",
                others == 1 ? "" : "the first ", c->other);
    }
}

/* What is not exact, and by how much */
static void print_limits(const struct stats *s, FILE *out)
{
    for (int i = 0; i < s->count; i++) {
        const struct cell_stats *c = &s->cells[i];
        if (c->quantiles.error)
            fprintf(out, "%s: quantiles are off by at most %.3g %% of the numbers\n", c->name,
                    100 * (double)c->quantiles.error / (double)c->numbers);
        if (c->words.forgotten)
            fprintf(out,
                    "%s: more than %lld words: rare ones were forgotten; counts may be too small, "
                    "and words be absent, by at most %lld\n",
                    c->name, (long long)c->words.max, (long long)c->words.short_by);
        if (c->words.too_long)
            fprintf(out, "%s: %lld values of more than %d bytes are not counted as words\n",
                    c->name, (long long)c->words.too_long, (int)WORD_BYTES_MAX);
    }
}

err stats_print(const struct stats *s, FILE *out)
{
    const int width = name_width(s);
    fprintf(out, "%s: %lld rows\n", s->name, (long long)s->rows);
    fprintf(out, "%-*s %10s %9s %10s %10s %10s %10s %10s %10s %10s %10s %12s  %s\n", width, "cell",
            "rows", "missing", "numbers", "mean", "deviation", "min", "25 %", "50 %", "75 %", "max",
            "distinct", "most frequent");
    for (int i = 0; i < s->count; i++) TRY(print_cell(&s->cells[i], width, out));
    print_others(s, out);
    print_limits(s, out);
    return OK;
}

/* ---- JSON ---- */

/* A word that is no UTF-8 is none of JSON's. */
static err words_json(const struct cell_stats *c, json_t **ret)
{
    const struct word_count **words;
    TRY(words_list(&c->words, &words));
    *ret = json_array();
    for (int64_t i = 0; i < c->words.count && i < JSON_WORDS_MAX; i++) {
        json_t *word = json_stringn(words[i]->word.text, words[i]->word.length);
        if (!word) continue;
        json_array_append_new(*ret, json_pack("[oI]", word, (json_int_t)words[i]->count));
    }
    free(words);
    return OK;
}

static err numbers_json(const struct cell_stats *c, json_t **ret)
{
    double found[QUANTILES] = {0};
    TRY(find_quantiles(c, found));
    *ret = c->numbers ? json_pack("{sfsfsfsfs[fff]sf}", "mean", c->spread.mean, "deviation",
                                  spread_deviation(&c->spread, c->numbers), "min", c->min, "max",
                                  c->max, "quartiles", found[0], found[1], found[2], "rank_error",
                                  (double)c->quantiles.error / (double)c->numbers)
                      : json_object();
    return OK;
}

static err cell_json(const struct cell_stats *c, json_t *cells)
{
    json_t *words, *cell;
    TRY(numbers_json(c, &cell));
    TRY(words_json(c, &words));
    json_t *counts = json_pack(
        "{sssbsIsIsIsIsIsIsIsIso}", "name", c->name, "is_label", (int)c->is_label, "rows",
        (json_int_t)c->rows, "missing", (json_int_t)c->missing, "values", (json_int_t)c->values,
        "numbers", (json_int_t)c->numbers, "distinct", (json_int_t)c->words.count, "forgotten",
        (json_int_t)c->words.forgotten, "short_by", (json_int_t)c->words.short_by, "too_long",
        (json_int_t)c->words.too_long, "words", words);
    if (counts && has_odd_values(c))
        json_object_set_new(counts, "first_no_number", json_string(c->other));
    if (!counts || json_object_update(counts, cell))
        return fail(ERR_MEMORY, "no memory for the JSON");
    json_decref(cell);
    json_array_append_new(cells, counts);
    return OK;
}

err stats_print_json(const struct stats *s)
{
    json_t *cells = json_array();
    err e = OK;
    for (int i = 0; !e && i < s->count; i++) e = cell_json(&s->cells[i], cells);
    if (!e)
        return json_print(
            json_pack("{sssIso}", "data", s->name, "rows", (json_int_t)s->rows, "cells", cells));
    json_decref(cells);
    return e;
}
