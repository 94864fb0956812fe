/* vocabulary: words listed in the spec or one per line of a file; other words are hashed to shared
 * buckets, or ignored. */
#include "core/data/columns/column.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/fingerprint.h"
#include "core/data/word_ids.h"

struct attributes {
    struct column_source source;
    struct strings words;
    const char *file;
    int64_t oov_buckets;
};

static const struct field fields[] = {
    SOURCE_FIELDS("null", "1"),
    FIELD_OF("words", STRINGS, struct attributes, words, .fallback = "[]", .group = "words",
             .group_is_required = true, .help = "the words; the first has id 0"),
    FIELD_OF("file", STRING, struct attributes, file, .fallback = "null", .group = "words",
             .group_is_required = true, .may_differ = true,
             .help = "file with one entry per line, plain or compressed, instead of the list"),
    FIELD_OF(
        "oov_buckets", INT, struct attributes, oov_buckets, .fallback = "0", .max = 0x1p53,
        .help = "extra ids after those of the words, to which unknown words are hashed; 0: unknown "
                "words are ignored"),
    {0},
};

static err add_listed(struct word_ids *words, const struct strings *list, struct arena *arena)
{
    word_ids_open(words, (size_t)list->count, arena);
    for (int i = 0; i < list->count; i++) {
        const struct item word = item_trimmed(list->at[i], list->at[i] + strlen(list->at[i]));
        if (word.length == 0) return fail(ERR_INPUT, "words[%d]: an empty cell is no word", i);
        TRY(word_ids_add(words, word.text, word.length));
    }
    return OK;
}

static err read_words(const void *attributes, const struct format_context *context,
                      struct arena *arena, struct word_ids *ret)
{
    const struct attributes *a = attributes;
    *ret = (struct word_ids){0};
    if (!a->words.count == !a->file)
        return fail(ERR_INPUT, "expected either \"words\" or \"file\"");
    return a->file ? word_ids_read(a->file, context, arena, ret)
                   : add_listed(ret, &a->words, arena);
}

static err content(const void *attributes, const struct format_context *context,
                   struct column_content *ret)
{
    struct arena arena = {0};
    struct word_ids words;
    const err e = read_words(attributes, context, &arena, &words);
    *ret = (struct column_content){words.count, words.digest};
    arena_free(&arena);
    return e;
}

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct attributes *a = m->attributes;
    struct word_ids *words = arena_new(context->arena, sizeof *words);
    TRY(read_words(a, context->format, context->arena, words));
    m->state = words;
    m->content = (struct column_content){words->count, words->digest};
    column_makes_ids(m, a->source.max, words->count + a->oov_buckets);
    return OK;
}

static err id(const struct column_maker *m, struct item *item, int64_t *ret)
{
    const struct attributes *a = m->attributes;
    const struct word_ids *words = m->state;
    char buffer[ITEM_TEXT_MAX];
    size_t length;
    const char *text = item_text(item, buffer, &length);
    *ret = word_ids_find(words, text, length);
    if (*ret == NO_ID && a->oov_buckets > 0)
        *ret = words->count + (int64_t)(fingerprint(text, length) % (uint64_t)a->oov_buckets);
    return OK;
}

const struct column_kind column_vocabulary = {
    .object = {"vocabulary", "ids of words from a list", fields, sizeof(struct attributes)},
    .open = open,
    .content_name = "words",
    .content = content,
    .words = read_words,
    .id = id,
    .crosses = CROSSES_NAME,
};
