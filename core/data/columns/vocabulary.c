/* vocabulary: words that are listed, in the spec or one per line of a file; others share buckets by
 * their hash, or count as nothing.
 */
#include "core/data/columns/column.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/fingerprint.h"
#include "core/data/word_file.h"

struct attributes {
    struct column_source source;
    struct strings words;
    const char *file;
    int64_t oov_buckets;
};

struct word {
    const char *text; /* NULL: the place is free */
    size_t length;
    int64_t id;
};

/* A hash table of at least twice as many places as words */
struct words {
    struct word *places; /* [size] */
    size_t size;         /* a power of two */
    int64_t count;
    uint64_t digest; /* of all */
};

static const struct field fields[] = {
    SOURCE_FIELDS("null", "1"),
    {.name = "words",
     .type = FIELD_STRINGS,
     .offset = offsetof(struct attributes, words),
     .fallback = "[]",
     .group = "words",
     .group_is_required = true,
     .help = "the words; the first has id 0"},
    {.name = "file",
     .type = FIELD_STRING,
     .offset = offsetof(struct attributes, file),
     .fallback = "null",
     .group = "words",
     .group_is_required = true,
     .may_differ = true,
     .help = "file with one entry per line, plain or compressed, instead of the list"},
    {.name = "oov_buckets",
     .type = FIELD_INT,
     .offset = offsetof(struct attributes, oov_buckets),
     .fallback = "0",
     .max = 0x1p53,
     .help = "extra ids after those of the words, to which unknown words are hashed; 0: unknown "
             "words are ignored"},
    {0},
};

/* Where the word is, or would be */
static struct word *place_of(const struct words *words, const char *text, size_t length)
{
    size_t at = fingerprint(text, length) & (words->size - 1);
    while (words->places[at].text &&
           (words->places[at].length != length || memcmp(words->places[at].text, text, length)))
        at = (at + 1) & (words->size - 1);
    return &words->places[at];
}

static void make_places(struct words *words, size_t count, struct arena *arena)
{
    words->size = 16;
    while (words->size < 2 * count) words->size *= 2;
    words->places = arena_array(arena, words->size, sizeof *words->places);
}

static err add(struct words *words, const struct item *word)
{
    struct word *place = place_of(words, word->text, word->length);
    if (place->text)
        return fail(ERR_INPUT, "the word \"%.*s\" is there twice",
                    word->length < 64 ? (int)word->length : 64, word->text);
    *place = (struct word){word->text, word->length, words->count++};
    words->digest = fingerprint_join(words->digest, fingerprint(word->text, word->length));
    return OK;
}

static err add_listed(struct words *words, const struct strings *list, struct arena *arena)
{
    make_places(words, (size_t)list->count, arena);
    for (int i = 0; i < list->count; i++) {
        const struct item word = item_trimmed(list->at[i], list->at[i] + strlen(list->at[i]));
        if (word.length == 0) return fail(ERR_INPUT, "words[%d]: an empty cell is no word", i);
        TRY(add(words, &word));
    }
    return OK;
}

static err add_file(struct words *words, const char *path, const struct format_context *context,
                    struct arena *arena)
{
    struct word_file file;
    struct item word;
    TRY(word_file_read(context, path, arena, &file));
    make_places(words, file.lines, arena);
    while (word_file_next(&file, &word)) {
        const err e = add(words, &word);
        if (e) return fail_prefix(e, "%s", file.path);
    }
    return OK;
}

static err read_words(const struct attributes *a, const struct format_context *context,
                      struct arena *arena, struct words *ret)
{
    *ret = (struct words){0};
    if (!a->words.count == !a->file)
        return fail(ERR_INPUT, "expected either \"words\" or \"file\"");
    return a->file ? add_file(ret, a->file, context, arena) : add_listed(ret, &a->words, arena);
}

static err content(const void *attributes, const struct format_context *context,
                   struct column_content *ret)
{
    struct arena arena = {0};
    struct words words;
    const err e = read_words(attributes, context, &arena, &words);
    *ret = (struct column_content){words.count, words.digest};
    arena_free(&arena);
    return e;
}

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct attributes *a = m->attributes;
    struct words *words = arena_new(context->arena, sizeof *words);
    TRY(read_words(a, context->format, context->arena, words));
    m->state = words;
    m->content = (struct column_content){words->count, words->digest};
    column_makes_ids(m, a->source.max, words->count + a->oov_buckets);
    return OK;
}

static err id(const struct column_maker *m, struct item *item, int64_t *ret)
{
    const struct attributes *a = m->attributes;
    const struct words *words = m->state;
    char buffer[ITEM_TEXT_MAX];
    size_t length;
    const char *text = item_text(item, buffer, &length);
    const struct word *word = place_of(words, text, length);
    *ret = NO_ID;
    if (word->text)
        *ret = word->id;
    else if (a->oov_buckets > 0)
        *ret = words->count + (int64_t)(fingerprint(text, length) % (uint64_t)a->oov_buckets);
    return OK;
}

const struct column_kind column_vocabulary = {
    .object = {"vocabulary", "ids of words that are listed", fields, sizeof(struct attributes)},
    .open = open,
    .content_name = "words",
    .content = content,
    .id = id,
    .crosses = CROSSES_NAME,
};
