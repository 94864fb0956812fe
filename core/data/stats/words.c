/* words.c - see words.h. */
#include "core/data/stats/words.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/word_place.h"

enum { SIZE_MIN = 64 };

static err no_memory(void)
{
    return fail(ERR_MEMORY, "no memory to count words");
}

static struct word_count *place_of(const struct word_counts *w, const char *text, size_t length)
{
    return word_place(w->places, w->size, sizeof *w->places, (struct word){text, length});
}

/* Moves words with a count above `above` to a table of `size` places; frees the others. */
static err move_all(struct word_counts *w, size_t size, int64_t above)
{
    struct word_counts moved = *w;
    moved.places = calloc(size, sizeof *moved.places);
    if (!moved.places) return no_memory();
    moved.size = size;
    moved.count = 0;
    for (size_t i = 0; i < w->size; i++) {
        const struct word_count *word = &w->places[i];
        if (word->word.text && word->count > above) {
            *place_of(&moved, word->word.text, word->word.length) = *word;
            moved.count++;
        } else {
            free((char *)word->word.text);
        }
    }
    free(w->places);
    *w = moved;
    return OK;
}

static int compare_counts(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median of the counts */
static err find_middle(const struct word_counts *w, int64_t *ret)
{
    int64_t *counts = malloc((size_t)w->count * sizeof *counts);
    int64_t count = 0;
    if (!counts) return no_memory();
    for (size_t i = 0; i < w->size; i++)
        if (w->places[i].word.text) counts[count++] = w->places[i].count;
    qsort(counts, (size_t)count, sizeof *counts, compare_counts);
    *ret = counts[count / 2];
    free(counts);
    return OK;
}

static err forget_rare(struct word_counts *w)
{
    const int64_t before = w->count;
    int64_t middle = 0;
    TRY(find_middle(w, &middle));
    TRY(move_all(w, w->size, middle));
    w->forgotten += before - w->count;
    w->short_by += middle;
    return OK;
}

static err make_room(struct word_counts *w)
{
    if (w->count == w->max) TRY(forget_rare(w));
    if (w->size == 0) return move_all(w, SIZE_MIN, 0);
    return 2 * (size_t)w->count < w->size ? OK : move_all(w, 2 * w->size, 0);
}

static err add_new(struct word_counts *w, const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (!copy) return no_memory();
    memcpy(copy, text, length);
    copy[length] = '\0';
    *place_of(w, text, length) = (struct word_count){{copy, length}, 1};
    w->count++;
    return OK;
}

err words_add(struct word_counts *w, const char *text, size_t length)
{
    if (length > WORD_BYTES_MAX) {
        w->too_long++;
        return OK;
    }
    struct word_count *known = w->size ? place_of(w, text, length) : NULL;
    if (known && known->word.text) {
        known->count++;
        return OK;
    }
    TRY(make_room(w));
    return add_new(w, text, length);
}

static int compare_words(const void *a, const void *b)
{
    const struct word_count *x = *(struct word_count *const *)a,
                            *y = *(struct word_count *const *)b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    const size_t least = x->word.length < y->word.length ? x->word.length : y->word.length;
    const int order = memcmp(x->word.text, y->word.text, least);
    return order ? order : (x->word.length > y->word.length) - (x->word.length < y->word.length);
}

err words_list(const struct word_counts *w, const struct word_count ***ret)
{
    const struct word_count **all = malloc(((size_t)w->count + 1) * sizeof(void *));
    size_t count = 0;
    if (!all) return no_memory();
    for (size_t i = 0; i < w->size; i++)
        if (w->places[i].word.text) all[count++] = &w->places[i];
    qsort(all, count, sizeof(void *), compare_words);
    *ret = all;
    return OK;
}

void words_free(struct word_counts *w)
{
    for (size_t i = 0; i < w->size; i++) free((char *)w->places[i].word.text);
    free(w->places);
    *w = (struct word_counts){0};
}
