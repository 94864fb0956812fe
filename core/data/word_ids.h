/* word_ids.h - ids of words: the first that is added has id 0. */
#ifndef CORE_DATA_WORD_IDS_H
#define CORE_DATA_WORD_IDS_H

#include "core/base/arena.h"
#include "core/base/word_place.h"
#include "core/data/data.h"

/* A hash table of at least twice as many places as words, which are borrowed */
struct word_ids {
    struct word_id *places; /* [size] */
    size_t size;            /* a power of two */
    int64_t count;
    uint64_t digest; /* of all */
};

/* Room for this many */
void word_ids_open(struct word_ids *, size_t count, struct arena *);
/* ERR_INPUT: it is there already. */
err word_ids_add(struct word_ids *, const char *text, size_t length);
/* All of them, by id, to ret [count] */
void word_ids_list(const struct word_ids *, struct word *ret);
int64_t word_ids_find(const struct word_ids *, const char *text, size_t length); /* -1: no word */

/* Those of a file with a word a line, which lives in the arena, too (word_file.h) */
err word_ids_read(const char *path, const struct format_context *, struct arena *,
                  struct word_ids *ret);

#endif
