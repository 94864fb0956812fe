/* own_flags.c - see own_flags.h. */
#include "cmd/own_flags.h"

#include <string.h>

err own_flags_take(const struct object *object, int *argc, char **argv, struct arena *arena,
                   void *ret)
{
    char **own = arena_array(arena, (size_t)*argc + 1, sizeof *own);
    int own_count = 1, kept = 1;
    const char *none;
    bool is_own = false, is_past = false;
    if (!own) return fail(ERR_MEMORY, "no memory for the command line");
    own[0] = argv[0];
    for (int i = 1; i < *argc; i++) {
        is_past = is_past || strcmp(argv[i], "--") == 0;
        const bool is_value = is_own && flags_take_value(object, argv[i - 1]);
        is_own = is_value || (!is_past && flags_has(object, argv[i]));
        if (is_own)
            own[own_count++] = argv[i];
        else
            argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    *argc = kept;
    return flags_parse(object, own_count, own, arena, ret, &none, 0, &kept);
}
