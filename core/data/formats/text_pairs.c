/* text_pairs.c - see text_pairs.h. */
#include "core/data/formats/text_pairs.h"

#include <inttypes.h>
#include <math.h>

#include "core/base/random.h"

/* The words that are kept; neighbours are found among these. */
struct neighbour_words {
    struct block block;
    int32_t *at;
    int64_t count;
};

/* Probability of keeping a word that is a fraction f of the text: (sqrt(f / t) + 1) t / f, as in
 * word2vec; 1 or more: always kept */
static double share_kept(double share, double threshold)
{
    return (sqrt(share / threshold) + 1) * threshold / share;
}

static err keep_words(const struct text_ids *text, const struct text_pairs *p, uint64_t key,
                      struct neighbour_words *ret)
{
    struct block counts = {0};
    TRY(text_ids_count(text, &counts));
    err e = block_new((uint64_t)text->count * sizeof(int32_t), &ret->block);
    const double *times = counts.at;
    ret->at = ret->block.at;
    for (int64_t i = 0; i < text->count && !e; i++) {
        const double share = times[text->ids[i]] / (double)text->count;
        const bool is_kept = p->subsample == 0 || (double)random_uniform(key, 2 * (uint64_t)i) <
                                                      share_kept(share, p->subsample);
        if (is_kept) ret->at[ret->count++] = text->ids[i];
    }
    block_drop(&counts);
    return e;
}

/* Neighbours on each side of a word */
static int64_t window_of(const struct text_pairs *p, uint64_t key, int64_t word)
{
    if (!p->random) return p->window;
    return 1 + (int64_t)(random_u64(key, 2 * (uint64_t)word + 1) % (uint64_t)p->window);
}

struct pair_range {
    int64_t begin, end;
};

static struct pair_range neighbours_of(const struct neighbour_words *words,
                                       const struct text_pairs *p, uint64_t key, int64_t word)
{
    const int64_t window = window_of(p, key, word), end = word + window + 1;
    return (struct pair_range){word < window ? 0 : word - window,
                               end < words->count ? end : words->count};
}

static void fill(const struct neighbour_words *words, const struct text_pairs *p, uint64_t key,
                 struct storage *s)
{
    int64_t *ids = s->features.at, at = 0;
    int32_t *labels = s->labels.at;
    for (int64_t i = 0; i < words->count; i++) {
        const struct pair_range range = neighbours_of(words, p, key, i);
        for (int64_t k = range.begin; k < range.end; k++) {
            if (k == i) continue;
            if (labels) labels[at] = words->at[k];
            ids[at++] = words->at[i];
        }
    }
}

static err make(const struct text_ids *text, const struct neighbour_words *words,
                const struct text_pairs *p, uint64_t key, bool without_labels, struct storage *s,
                int64_t *ret_rows)
{
    const struct shape one = {0};
    uint64_t bytes = 0, label_bytes = 0;
    int64_t rows = 0;
    for (int64_t i = 0; i < words->count; i++) {
        const struct pair_range range = neighbours_of(words, p, key, i);
        rows += range.end - range.begin - 1;
    }
    if (rows == 0)
        return fail(ERR_INPUT, "%s: %" PRId64 " of %" PRId64 " words are kept: no pair of them",
                    text->name, words->count, text->count);
    TRY(storage_bytes(text->name, rows, &one, INT64, &bytes));
    TRY(storage_bytes(text->name, rows, &one, INT32, &label_bytes));
    TRY(block_new(bytes, &s->features));
    if (!without_labels) TRY(block_new(label_bytes, &s->labels));
    fill(words, p, key, s);
    *ret_rows = rows;
    return OK;
}

err text_pairs_make(const struct text_ids *text, const struct text_pairs *p, uint64_t key,
                    bool without_labels, struct storage *s, int64_t *ret_rows)
{
    struct neighbour_words words = {{0}};
    err e = keep_words(text, p, key, &words);
    if (!e) e = make(text, &words, p, key, without_labels, s, ret_rows);
    block_drop(&words.block);
    return e;
}
