/* text_ids.c - see text_ids.h. */
#include "core/data/formats/text_ids.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fingerprint.h"
#include "core/data/input.h"
#include "core/data/stats/words.h"
#include "core/data/word_file.h"
#include "core/data/word_ids.h"

enum { BYTES = 256, READ_BYTES = 1 << 20, SHOWN_MAX = 64 };
static const uint64_t TEXT_BYTES_MAX = UINT64_C(1) << 36;

const char *const text_units[] = {[UNIT_CHARACTERS] = "characters", [UNIT_WORDS] = "words", NULL};
const char UNKNOWN_WORD[] = "<unk>";

/* The whole text, unpacked */
struct stored_text {
    const char *name, *line_end; /* line_end: the word for an end of line; NULL: it is a blank */
    struct block block;
    const char *at;
    int64_t bytes;
};

/* Refuses files that are not text before all of it is in memory. */
static err read_all(struct input *in, struct stored_text *text)
{
    size_t got = 1;
    while (got > 0) {
        TRY(block_grow(&text->block, (uint64_t)text->bytes + READ_BYTES));
        char *to = (char *)text->block.at + text->bytes;
        TRY(input_some(in, to, READ_BYTES, &got));
        const char *nul = memchr(to, 0, got);
        if (nul)
            return fail(ERR_INPUT, "%s: expected a text: offset %" PRId64 " is a byte 0",
                        text->name, text->bytes + (nul - to));
        text->bytes += (int64_t)got;
        if ((uint64_t)text->bytes > TEXT_BYTES_MAX)
            return fail(ERR_INPUT, "%s: a text has at most 64 GB", text->name);
    }
    text->at = text->block.at;
    return OK;
}

static err read_text(const struct format_context *context, const char *path, struct arena *arena,
                     struct stored_text *ret)
{
    struct input *in = NULL;
    err e = input_open(context, path, &in);
    if (!e) {
        ret->name = arena_string(arena, input_path(in));
        e = read_all(in, ret);
    }
    input_close(in);
    return e;
}

/* ---- assigning ids ---- */

static void add_meaning(struct text_ids *t, const char *text, size_t length)
{
    t->words.at[t->words.count++] = arena_format(&t->arena, "%.*s", (int)length, text);
    t->digest = fingerprint_join(t->digest, fingerprint(text, length));
}

static void begin_meanings(struct text_ids *t, size_t most)
{
    t->words.at = arena_array(&t->arena, most + 1, sizeof *t->words.at);
    t->digest = 1;
}

/* Gives ids to the bytes that occur, in order of value; -1: does not occur */
static void rank_bytes(struct text_ids *t, const struct stored_text *text, int16_t ids[BYTES])
{
    bool occurs[BYTES] = {0};
    begin_meanings(t, BYTES);
    for (int64_t i = 0; i < text->bytes; i++) occurs[(uint8_t)text->at[i]] = true;
    for (int b = 0; b < BYTES; b++) {
        const char letter = (char)b;
        ids[b] = occurs[b] ? (int16_t)t->words.count : -1;
        if (occurs[b]) add_meaning(t, &letter, 1);
    }
}

static err take_characters(const struct text_source *a, const struct format_context *context,
                           const struct stored_text *text, struct text_ids *t)
{
    int16_t ids[BYTES];
    struct stored_text listed = {0};
    err e = a->vocabulary ? read_text(context, a->vocabulary, &t->arena, &listed) : OK;
    if (!e) rank_bytes(t, a->vocabulary ? &listed : text, ids);
    block_drop(&listed.block);
    if (e) return e;
    TRY(block_new((uint64_t)text->bytes * sizeof(int32_t), &t->block));
    int32_t *to = t->block.at;
    for (; t->count < text->bytes; t->count++) {
        const uint8_t byte = (uint8_t)text->at[t->count];
        if (ids[byte] < 0)
            return fail(ERR_INPUT, "%s: offset %" PRId64 ": the byte 0x%02x is not in %s",
                        text->name, t->count, byte, a->vocabulary);
        to[t->count] = ids[byte];
    }
    return OK;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word(const char *text)
{
    const char *at = text;
    while (*at && !is_blank(*at)) at++;
    return at > text && !*at;
}

/* Finds the next word from *at on, and moves *at after it; false: no more. */
static bool next_word(const struct stored_text *text, int64_t *at, const char **ret,
                      size_t *ret_length)
{
    for (; *at < text->bytes && is_blank(text->at[*at]); ++*at) {
        if (text->at[*at] != '\n' || !text->line_end) continue;
        ++*at;
        *ret = text->line_end;
        *ret_length = strlen(text->line_end);
        return true;
    }
    *ret = text->at + *at;
    while (*at < text->bytes && !is_blank(text->at[*at])) ++*at;
    *ret_length = (size_t)(text->at + *at - *ret);
    return *ret_length > 0;
}

static err count_words(const struct stored_text *text, struct word_counts *counts)
{
    const char *word;
    size_t length;
    for (int64_t at = 0; next_word(text, &at, &word, &length);)
        TRY(words_add(counts, word, length));
    return OK;
}

static err make_vocabulary(const struct text_source *a, const struct stored_text *text,
                           struct text_ids *t)
{
    struct word_counts counts = {.max = INT64_MAX};
    const struct word_count **list = NULL;
    err e = count_words(text, &counts);
    const bool leaves_out = a->words > 0 && counts.count > a->words;
    if (!e && counts.too_long && !leaves_out)
        e = fail(ERR_INPUT,
                 "%s: %" PRId64 " words have more than %d bytes: is it a text with blanks between "
                 "words? Where \"words\" leaves some out, these are among them",
                 text->name, counts.too_long, (int)WORD_BYTES_MAX);
    if (!e) e = words_list(&counts, &list);
    if (!e) {
        const int64_t kept = leaves_out ? a->words : counts.count;
        begin_meanings(t, (size_t)kept + 1);
        if (leaves_out) add_meaning(t, UNKNOWN_WORD, strlen(UNKNOWN_WORD));
        for (int64_t i = 0; i < kept; i++)
            if (!leaves_out || strcmp(list[i]->word.text, UNKNOWN_WORD))
                add_meaning(t, list[i]->word.text, list[i]->word.length);
    }
    free(list);
    words_free(&counts);
    return e;
}

static err read_vocabulary(const struct text_source *a, const struct format_context *context,
                           struct text_ids *t)
{
    struct word_file file;
    struct item word;
    if (a->words)
        return fail(ERR_INPUT, "words: the vocabulary file says which have ids: one of the two");
    TRY(word_file_read(context, a->vocabulary, &t->arena, &file));
    begin_meanings(t, file.lines);
    while (word_file_next(&file, &word)) add_meaning(t, word.text, word.length);
    return OK;
}

static err index_words(const struct text_source *a, struct text_ids *t, struct word_ids *ret)
{
    word_ids_open(ret, (size_t)t->words.count, &t->arena);
    for (int i = 0; i < t->words.count; i++) {
        const err e = word_ids_add(ret, t->words.at[i], strlen(t->words.at[i]));
        if (e) return fail_prefix(e, "%s", a->vocabulary ? a->vocabulary : a->file);
    }
    return OK;
}

static err take_words(const struct text_source *a, const struct format_context *context,
                      const struct stored_text *text, struct text_ids *t)
{
    struct word_ids ids;
    const char *word;
    size_t length;
    TRY(a->vocabulary ? read_vocabulary(a, context, t) : make_vocabulary(a, text, t));
    TRY(index_words(a, t, &ids));
    const int64_t unknown = word_ids_find(&ids, UNKNOWN_WORD, strlen(UNKNOWN_WORD));
    for (int64_t at = 0; next_word(text, &at, &word, &length);) {
        const int64_t found = word_ids_find(&ids, word, length), id = found < 0 ? unknown : found;
        if (id < 0)
            return fail(ERR_INPUT,
                        "%s: offset %" PRId64 ": \"%.*s\" is not in the vocabulary, which has no "
                        "\"%s\" for such",
                        text->name, at - (int64_t)(word == text->line_end ? 1 : length),
                        length < SHOWN_MAX ? (int)length : SHOWN_MAX, word, UNKNOWN_WORD);
        TRY(block_grow(&t->block, ((uint64_t)t->count + 1) * sizeof(int32_t)));
        ((int32_t *)t->block.at)[t->count++] = (int32_t)id;
    }
    return t->count ? OK : fail(ERR_INPUT, "%s: expected words, there are none", text->name);
}

err text_ids_read(const struct text_source *a, const struct format_context *context,
                  struct text_ids *ret)
{
    struct stored_text text = {0};
    *ret = (struct text_ids){0};
    const char *of_words = a->words ? "words" : a->line_end ? "line_end" : NULL;
    if (of_words && a->unit != UNIT_WORDS)
        return fail(ERR_INPUT, "%s: only of \"unit\": \"words\"", of_words);
    if (a->line_end && !is_word(a->line_end))
        return fail(ERR_INPUT, "line_end: expected a word, without blanks");
    err e = read_text(context, a->file, &ret->arena, &text);
    ret->name = text.name;
    text.line_end = a->line_end;
    if (!e)
        e = a->unit == UNIT_WORDS ? take_words(a, context, &text, ret)
                                  : take_characters(a, context, &text, ret);
    block_drop(&text.block);
    ret->ids = ret->block.at;
    return e;
}

err text_ids_count(const struct text_ids *t, struct block *ret)
{
    TRY(block_new((uint64_t)t->words.count * sizeof(double), ret));
    double *counts = ret->at;
    for (int64_t i = 0; i < t->count; i++) counts[t->ids[i]]++;
    return OK;
}

void text_ids_free(struct text_ids *t)
{
    block_drop(&t->block);
    arena_free(&t->arena);
}

err text_meanings(const void *attributes, const struct format_context *context, struct arena *arena,
                  struct meanings *ret)
{
    const struct text_source *a = attributes;
    struct text_ids text;
    const err e = text_ids_read(a, context, &text);
    *ret = (struct meanings){.between = a->unit == UNIT_WORDS ? " " : ""};
    if (!e) {
        ret->words.at = arena_array(arena, (size_t)text.words.count, sizeof *ret->words.at);
        for (; ret->words.count < text.words.count; ret->words.count++)
            ret->words.at[ret->words.count] = arena_string(arena, text.words.at[ret->words.count]);
    }
    text_ids_free(&text);
    return e;
}
