/* kept_model.c - see kept_model.h. */
#include "core/train/spec/kept_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/files/file_system.h"
#include "core/data/columns/items.h"
#include "core/train/checkpoint/checkpoints.h"
#include "core/train/spec/spec_inside.h"

/* The last spec only helps to find the words: without it they are not known. */
err kept_model_read(const char *prefix, struct kept_model *ret)
{
    char folder[CHECKPOINT_PATH_MAX], path[CHECKPOINT_PATH_MAX + sizeof LAST_SPEC_NAME];
    const char *slash = strrchr(prefix, '/');
    *ret = (struct kept_model){.checkpoint = prefix};
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - prefix) : 1,
             slash ? prefix : ".");
    TRY(spec_read_features(folder, &ret->features));
    snprintf(path, sizeof path, "%s/%s", folder, LAST_SPEC_NAME);
    if (file_is_there(path) && spec_read_kept(path, &ret->last_spec)) ret->last_spec = NULL;
    return OK;
}

void kept_model_free(struct kept_model *k)
{
    json_decref(k->features);
    json_decref(k->last_spec);
    *k = (struct kept_model){0};
}

static bool is_digest(const json_t *column, const struct word_ids *words)
{
    char text[64];
    const char *kept = json_string_value(json_object_get(column, "words"));
    snprintf(text, sizeof text, "%" PRId64 ", digest %016" PRIx64, words->count, words->digest);
    return kept && strcmp(kept, text) == 0;
}

static err add_words(const json_t *list, struct arena *arena, struct word_ids *ret)
{
    size_t i;
    json_t *word;
    word_ids_open(ret, json_array_size(list), arena);
    json_array_foreach((json_t *)list, i, word)
    {
        const char *text = json_string_value(word);
        const struct item item = text ? item_trimmed(text, text + strlen(text)) : (struct item){0};
        if (item.length == 0) return fail(ERR_INPUT, "no word");
        const char *copy = arena_format(arena, "%.*s", (int)item.length, item.text);
        TRY(word_ids_add(ret, copy, item.length));
    }
    return OK;
}

static err read_words(const struct spec *spec, const json_t *column, struct arena *arena,
                      struct word_ids *ret)
{
    const struct format_context context = {.directory = spec->directory};
    const char *file = json_string_value(json_object_get(column, "file"));
    const json_t *words = json_object_get(column, "words");
    if (words) return add_words(words, arena, ret);
    return file ? word_ids_read(file, &context, arena, ret) : fail(ERR_INPUT, "no words");
}

/* Checked by their digest: the file may have changed since. */
static void look_in_last_spec(const struct kept_model *k, const struct spec *spec, const char *name,
                              const json_t *kept, struct arena *arena, struct kept_words *ret)
{
    size_t i;
    json_t *column, *columns = json_object_get(json_object_get(k->last_spec, "data"), "columns");
    json_array_foreach(columns, i, column)
    {
        const char *called = json_string_value(json_object_get(column, "name"));
        if (!called || strcmp(called, name) != 0) continue;
        ret->are_known = !read_words(spec, column, arena, &ret->ids) && is_digest(kept, &ret->ids);
    }
}

static err read_given(const struct kept_model *k, const char *path, const char *column,
                      const json_t *kept, struct arena *arena, struct kept_words *ret)
{
    const struct format_context context = {.directory = "."};
    TRY(word_ids_read(path, &context, arena, &ret->ids));
    ret->are_known = true;
    if (!kept || is_digest(kept, &ret->ids)) return OK;
    return fail(ERR_INPUT,
                "vocabularies: %s has other words than column \"%s\" had when %s was made (there "
                "%s)",
                path, column, k->checkpoint, json_string_value(json_object_get(kept, "words")));
}

err kept_model_words(const struct kept_model *k, const struct spec *spec, const char *column,
                     const struct word_ids *now, struct arena *arena, struct kept_words *ret)
{
    const json_t *given = spec->train.warm_start.vocabularies;
    const char *path = json_string_value(json_object_get(given, column));
    const json_t *kept = json_object_get(json_object_get(k->features, "columns"), column);
    if (!json_is_string(json_object_get(kept, "words"))) kept = NULL; /* another kind then */
    *ret = (struct kept_words){.are_same = is_digest(kept, now), .is_kept = kept != NULL};
    if (path) return read_given(k, path, column, kept, arena, ret);
    if (!ret->are_same) {
        look_in_last_spec(k, spec, column, kept, arena, ret);
        return OK;
    }
    ret->ids = *now;
    ret->are_known = true;
    return OK;
}
