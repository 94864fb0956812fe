/* text_ids.h - reads a text as a sequence of ids of its characters or words. */
#ifndef CORE_DATA_FORMATS_TEXT_IDS_H
#define CORE_DATA_FORMATS_TEXT_IDS_H

#include "core/base/arena.h"
#include "core/data/storage.h"

enum { UNIT_CHARACTERS, UNIT_WORDS };
extern const char *const text_units[];
extern const char UNKNOWN_WORD[]; /* replaces words that the vocabulary lacks */

/* First member of the attributes of formats that read a text */
struct text_source {
    const char *file, *vocabulary, *line_end;
    int unit;
    int64_t words;
};

#define TEXT_FIELDS                                                                                \
    {.name = "file",                                                                               \
     .type = FIELD_STRING,                                                                         \
     .offset = offsetof(struct text_source, file),                                                 \
     .may_differ = true,                                                                           \
     .help = "a text, plain or compressed; it is kept in memory"},                                 \
        {.name = "unit",                                                                           \
         .type = FIELD_ENUM,                                                                       \
         .offset = offsetof(struct text_source, unit),                                             \
         .fallback = "\"characters\"",                                                             \
         .choices = text_units,                                                                    \
         .help = "characters: each byte has an id; words: what is between blanks and line ends"},  \
        {.name = "vocabulary",                                                                     \
         .type = FIELD_STRING,                                                                     \
         .offset = offsetof(struct text_source, vocabulary),                                       \
         .fallback = "null",                                                                       \
         .may_differ = true,                                                                       \
         .help = "a file that says the ids: of words a word a line, the first has id 0; of "       \
                 "characters a text, whose bytes have ids by their value; null: made from the "    \
                 "file itself, words with the most frequent first"},                               \
        {.name = "line_end",                                                                       \
         .type = FIELD_STRING,                                                                     \
         .offset = offsetof(struct text_source, line_end),                                         \
         .fallback = "null",                                                                       \
         .help = "of words: a word that each end of a line counts as, such as \"<eos>\"; null: "   \
                 "ends of lines are blanks like others"},                                          \
    {                                                                                              \
        .name = "words", .type = FIELD_INT, .offset = offsetof(struct text_source, words),         \
        .fallback = "0", .max = 1 << 30,                                                           \
        .help = "of words without a vocabulary file: how many of the most frequent have ids, "     \
                "all others share id 0, \"<unk>\"; 0: all have one"                                \
    }

struct text_ids {
    const char *name;   /* of the file, in the arena */
    struct block block; /* of ids */
    const int32_t *ids;
    int64_t count;
    struct strings words; /* what each id stands for, in the arena */
    uint64_t digest;      /* of the words */
    struct arena arena;
};

/* ERR_INPUT: a character that is not in the vocabulary, or a word if the vocabulary lacks
 * UNKNOWN_WORD, too; an empty text. To be freed also on failure. */
err text_ids_read(const struct text_source *, const struct format_context *, struct text_ids *ret);
void text_ids_free(struct text_ids *);

/* How often each id occurs, in double [words.count] */
err text_ids_count(const struct text_ids *, struct block *ret);

/* A format's meanings(), if its attributes begin with struct text_source */
err text_meanings(const void *attributes, const struct format_context *, struct arena *,
                  struct meanings *ret);

#endif
