/* word_ids.c - see word_ids.h. */
#include "core/data/word_ids.h"

#include <string.h>

#include "core/data/word_file.h"

enum { PLACES_MIN = 16, SHOWN_BYTES = 64 };

struct word_id {
    struct word word;
    int64_t id;
};

/* The place of the word, or the free one for it */
static struct word_id *place_of(const struct word_ids *words, const char *text, size_t length)
{
    return word_place(words->places, words->size, sizeof *words->places,
                      (struct word){text, length});
}

void word_ids_open(struct word_ids *words, size_t count, struct arena *arena)
{
    *words = (struct word_ids){.size = PLACES_MIN};
    while (words->size < 2 * count) words->size *= 2;
    words->places = arena_array(arena, words->size, sizeof *words->places);
}

err word_ids_add(struct word_ids *words, const char *text, size_t length)
{
    struct word_id *place = place_of(words, text, length);
    if (place->word.text)
        return fail(ERR_INPUT, "the word \"%.*s\" is there twice",
                    length < SHOWN_BYTES ? (int)length : SHOWN_BYTES, text);
    *place = (struct word_id){{text, length}, words->count++};
    words->digest = fingerprint_join(words->digest, fingerprint(text, length));
    return OK;
}

void word_ids_list(const struct word_ids *words, struct word *ret)
{
    for (size_t i = 0; i < words->size; i++)
        if (words->places[i].word.text) ret[words->places[i].id] = words->places[i].word;
}

int64_t word_ids_find(const struct word_ids *words, const char *text, size_t length)
{
    const struct word_id *place = place_of(words, text, length);
    return place->word.text ? place->id : -1;
}

err word_ids_read(const char *path, const struct format_context *context, struct arena *arena,
                  struct word_ids *ret)
{
    struct word_file file;
    struct item word;
    TRY(word_file_read(context, path, arena, &file));
    word_ids_open(ret, file.lines, arena);
    while (word_file_next(&file, &word)) {
        const err e = word_ids_add(ret, word.text, word.length);
        if (e) return fail_prefix(e, "%s", file.path);
    }
    return OK;
}
