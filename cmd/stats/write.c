/* write.c - vocabularies and boundaries in files that a spec can name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/stats/report.h"
#include "core/base/files/replace.h"

enum { FILE_NAME_MAX = 200, INDEX_MAX = 16 };

/* A line of a vocabulary is a word without the blanks around it. */
static bool is_writable(const struct word_count *word)
{
    const char *first = word->word.text, *last = word->word.text + word->word.length - 1;
    if (word->word.length == 0 || strchr(" \t", *first) || strchr(" \t\r", *last)) return false;
    return !memchr(word->word.text, '\n', word->word.length) &&
           !memchr(word->word.text, '\0', word->word.length);
}

static err print_words(const struct cell_stats *c, bool counts, FILE *out, int64_t *ret_left_out)
{
    const struct word_count **words;
    TRY(words_list(&c->words, &words));
    for (int64_t i = 0; i < c->words.count; i++) {
        if (is_writable(words[i]) && counts)
            fprintf(out, "%lld\t%s\n", (long long)words[i]->count, words[i]->word.text);
        else if (is_writable(words[i]))
            fprintf(out, "%s\n", words[i]->word.text);
        else
            ++*ret_left_out;
    }
    free(words);
    return OK;
}

/* Nine digits bring a float back exactly. */
static err print_boundaries(const struct cell_stats *c, int64_t buckets, FILE *out)
{
    double *fractions = malloc((size_t)buckets * sizeof *fractions);
    double *found = malloc((size_t)buckets * sizeof *found), last = c->min;
    err e = fractions && found ? OK : fail(ERR_MEMORY, "no memory for boundaries");
    for (int64_t i = 0; !e && i < buckets - 1; i++)
        fractions[i] = (double)(i + 1) / (double)buckets;
    if (!e) e = quantiles_find(&c->quantiles, fractions, (int)buckets - 1, found);
    for (int64_t i = 0; !e && i < buckets - 1; i++) {
        if (found[i] <= last) continue; /* what is less than the least has no bucket */
        fprintf(out, "%.17g\n", found[i]);
        last = found[i];
    }
    free(fractions);
    free(found);
    return e;
}

/* A cell may be called as no file can. */
static void plain_name(const struct cell_stats *c, char ret[FILE_NAME_MAX])
{
    snprintf(ret, FILE_NAME_MAX, "%s%.*s", strchr(".", *c->name) ? "_" : "",
             FILE_NAME_MAX - INDEX_MAX, c->name);
    for (char *at = ret; *at; at++)
        if (*at == '/' || (unsigned char)*at < ' ') *at = '_';
}

typedef char file_name[FILE_NAME_MAX];

static bool is_taken(file_name *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Where two cells would share a file, the later one says which it is. */
static err name_files(const struct stats *s, file_name **ret)
{
    file_name *names = calloc((size_t)s->count + 1, sizeof *names);
    if (!names) return fail(ERR_MEMORY, "no memory for names of files");
    for (int i = 0; i < s->count; i++) {
        plain_name(&s->cells[i], names[i]);
        const size_t length = strlen(names[i]);
        for (int more = i; is_taken(names, i, names[i]); more++) /* s->count times at most */
            snprintf(names[i] + length, FILE_NAME_MAX - length, "-%d", more);
    }
    *ret = names;
    return OK;
}

enum content { BOUNDARIES, WORDS, COUNTS };
static const char *const content_names[] = {
    [BOUNDARIES] = "boundaries", [WORDS] = "words", [COUNTS] = "counts"};

struct writing {
    const struct stats *stats;
    file_name *names; /* [cells] */
    const char *folder;
    int64_t buckets;
    FILE *report;
};

static err write_cell(const struct writing *w, int cell, enum content content)
{
    const struct cell_stats *c = &w->stats->cells[cell];
    const char *name = w->names[cell];
    char *path = NULL, *text = NULL;
    int64_t left_out = 0;
    size_t bytes;
    if (asprintf(&path, "%s/%s.%s.txt", w->folder, name, content_names[content]) < 0)
        return fail(ERR_MEMORY, "no memory for %s", name);
    FILE *out = open_memstream(&text, &bytes);
    if (!out) {
        free(path);
        return fail(ERR_MEMORY, "no memory for %s", name);
    }
    err e = content == BOUNDARIES ? print_boundaries(c, w->buckets, out)
                                  : print_words(c, content == COUNTS, out, &left_out);
    if (fclose(out) && !e) e = fail(ERR_MEMORY, "no memory for %s", name);
    if (!e && bytes > 0) e = file_replace(path, text, strlen(text));
    if (!e && bytes > 0) fprintf(w->report, "wrote %s\n", path);
    if (!e && left_out)
        fprintf(w->report, "%s: %lld words that no line can be are not in it\n", path,
                (long long)left_out);
    free(path);
    free(text);
    return e;
}

err stats_write(const struct stats *s, const char *folder, int64_t buckets, bool counts,
                FILE *report)
{
    struct writing w = {.stats = s, .folder = folder, .buckets = buckets, .report = report};
    if (mkdir(folder, 0777) && errno != EEXIST)
        return fail(ERR_IO, "--out=%s: %s", folder, strerror(errno));
    err e = name_files(s, &w.names);
    for (int i = 0; !e && i < s->count; i++) {
        const bool has_words = stats_has_words(&s->cells[i]);
        if (has_words) e = write_cell(&w, i, WORDS);
        if (!e && has_words && counts) e = write_cell(&w, i, COUNTS);
        if (!e && stats_has_boundaries(&s->cells[i])) e = write_cell(&w, i, BOUNDARIES);
    }
    free(w.names);
    return e;
}
