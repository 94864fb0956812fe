/* word_ids.h - ids of words: the first that is added has id 0. */
#ifndef CORE_DATA_WORD_IDS_H
#define CORE_DATA_WORD_IDS_H

#include "core/base/arena.h"
#include "core/base/word_place.h"
#include "core/data/data.h"

/* A hash table with at least twice as many places as words; the words are borrowed */
struct word_ids {
    struct word_id *places; /* [size] */
    size_t size;            /* a power of two */
    int64_t count;
    uint64_t digest; /* of all words in order */
};

/* Makes room for this many words in the arena */
void word_ids_open(struct word_ids *, size_t count, struct arena *);
/* ERR_INPUT: the word was added before. */
err word_ids_add(struct word_ids *, const char *text, size_t length);
/* Writes all words to ret [count], by id */
void word_ids_list(const struct word_ids *, struct word *ret);
int64_t word_ids_find(const struct word_ids *, const char *text, size_t length); /* -1: not found */

/* Reads a file with one word per line into the arena (word_file.h) */
err word_ids_read(const char *path, const struct format_context *, struct arena *,
                  struct word_ids *ret);

#endif
