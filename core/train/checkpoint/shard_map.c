/* shard_map.c - the names of a warm start: which tensor of the checkpoint fills which variable or
 * slot.
 *
 * A map's patterns have at most one star, which matches any text, including slashes. Slots follow
 * their variable, unless an earlier map names the slot itself ("a/adam_m" -> "a/Adam").
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "core/train/checkpoint/shard_inside.h"

static int stars(const char *pattern)
{
    int count = 0;
    for (; *pattern; pattern++) count += *pattern == '*';
    return count;
}

err shard_map_check(const struct warm_start *warm)
{
    for (int i = 0; i < warm->map_count; i++) {
        const struct name_map *map = &warm->maps[i];
        if (stars(map->to) <= 1 && stars(map->from) == stars(map->to)) continue;
        return fail(ERR_INPUT,
                    "warm start: \"%s\" cannot become \"%s\": each side must have one star, or "
                    "neither any",
                    map->from, map->to);
    }
    return OK;
}

/* The text that the pattern's star matches in the name; empty if there is no star. */
struct star_text {
    const char *at;
    size_t length;
};

static bool match(const char *pattern, const char *name, struct star_text *ret)
{
    const char *star = strchr(pattern, '*');
    const size_t length = strlen(name);
    if (!star) {
        *ret = (struct star_text){name + length, 0};
        return strcmp(pattern, name) == 0;
    }
    const size_t before = (size_t)(star - pattern), after = strlen(star + 1);
    if (length < before + after || memcmp(pattern, name, before) != 0) return false;
    if (strcmp(star + 1, name + length - after) != 0) return false;
    *ret = (struct star_text){name + before, length - before - after};
    return true;
}

/* The pattern with its star replaced by the matched text, then the slot. */
static err expand(const char *pattern, const struct star_text *stretch, const char *slot,
                  char ret[BUNDLE_NAME_MAX])
{
    char name[BUNDLE_NAME_MAX];
    const char *star = strchr(pattern, '*');
    const int before = star ? (int)(star - pattern) : (int)strlen(pattern);
    int length = snprintf(name, sizeof name, "%.*s%.*s%s", before, pattern, (int)stretch->length,
                          stretch->at, star ? star + 1 : "");
    if (length >= BUNDLE_NAME_MAX)
        return fail(ERR_INPUT, "warm start: a name of %d characters from \"%.64s\"", length,
                    pattern);
    return shard_name(name, slot, ret);
}

err shard_map(const struct warm_start *warm, const char *variable, const char *slot,
              char ret[BUNDLE_NAME_MAX])
{
    char wanted[BUNDLE_NAME_MAX];
    struct star_text stretch;
    TRY(shard_name(variable, slot, wanted));
    for (int i = 0; warm && i < warm->map_count; i++) {
        const struct name_map *map = &warm->maps[i];
        if (match(map->to, wanted, &stretch)) return expand(map->from, &stretch, NULL, ret);
        if (slot && match(map->to, variable, &stretch))
            return expand(map->from, &stretch, slot, ret);
    }
    return shard_name(variable, slot, ret);
}

err shard_fail_or_skip(err e, const struct warm_start *warm, bool is_there)
{
    if (!e || !warm || !warm->can_skip) return e;
    return fail(e, "%s; \"skip\" leaves variables as they begin%s", error_text(),
                is_there ? "" : ", and \"absent\": \"initial\" all that are not there");
}

bool shard_map_skips(const struct warm_start *warm, const char *wanted)
{
    for (int i = 0; warm && i < warm->skip_count; i++) {
        if (fnmatch(warm->skips[i], wanted, 0) == 0) return true;
    }
    return false;
}

/* ---- patterns without a match ---- */

/* Patterns that would be about these names: the names, and for each of their slashes what stands
 * before it and what comes after it, with a star for the rest. */
static const char *const *candidates_of(const char *const *names, int count, struct arena *arena,
                                        int *ret_count)
{
    size_t slashes = 0;
    for (int i = 0; i < count; i++)
        for (const char *c = names[i]; *c; c++) slashes += *c == '/';
    const char **candidates = arena_array(arena, (size_t)count + 2 * slashes, sizeof *candidates);
    int at = 0;
    for (int i = 0; i < count; i++) {
        candidates[at++] = names[i];
        for (const char *c = strchr(names[i], '/'); c; c = strchr(c + 1, '/')) {
            candidates[at++] = arena_format(arena, "%.*s/*", (int)(c - names[i]), names[i]);
            candidates[at++] = arena_format(arena, "*%s", c);
        }
    }
    *ret_count = at;
    return candidates;
}

static err fail_idle(const char *what, int index, const char *pattern, const char *const *names,
                     int count, struct arena *arena)
{
    int candidate_count;
    const char *const *candidates = candidates_of(names, count, arena, &candidate_count);
    const struct suggestion near = suggest(pattern, candidates, candidate_count);
    return fail(ERR_INPUT, "%s[%d]: no variable is called \"%.128s\"%s", what, index, pattern,
                near.text);
}

static bool maps_any(const struct name_map *map, const char *const *names, int count)
{
    struct star_text stretch;
    for (int i = 0; i < count; i++)
        if (match(map->to, names[i], &stretch)) return true;
    return false;
}

static bool skips_any(const char *pattern, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (fnmatch(pattern, names[i], 0) == 0) return true;
    return false;
}

err warm_start_check(const struct warm_start *warm, const char *const *names, int count,
                     struct arena *arena)
{
    for (int i = 0; i < warm->map_count; i++)
        if (!maps_any(&warm->maps[i], names, count))
            return fail_idle("map", i, warm->maps[i].to, names, count, arena);
    for (int i = 0; i < warm->skip_count; i++)
        if (!skips_any(warm->skips[i], names, count))
            return fail_idle("skip", i, warm->skips[i], names, count, arena);
    return OK;
}
