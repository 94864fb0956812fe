/* arena.h - a region allocator: memory that is freed all at once.
 *
 * Everything that is made from a spec (names, attributes, nodes) is in one arena. Memory is zeroed
 * and aligned to 16 bytes. Running out of memory ends the process with a message: an arena holds
 * descriptions, never data whose size a peer chooses.
 */
#ifndef CORE_BASE_ARENA_H
#define CORE_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first; NULL in an empty arena */
};

void *arena_new(struct arena *, size_t bytes);
void *arena_array(struct arena *, size_t count, size_t size); /* checks count * size for overflow */
char *arena_string(struct arena *, const char *text);
const char **arena_strings(struct arena *, const char *const *texts, int count); /* deep copy */
char *arena_format(struct arena *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_free(struct arena *); /* the arena is empty afterwards */

#endif
