/* arena.h - memory that lives and dies together.
 *
 * Everything that is made from a spec (names, attributes, nodes) lives in one arena and is freed at
 * once. Memory comes zeroed and aligned to 16 bytes. Running out of memory ends the process with a
 * message: an arena holds descriptions, never data whose size a peer chooses.
 */
#ifndef CORE_BASE_ARENA_H
#define CORE_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first; NULL in an empty arena */
};

void *arena_new(struct arena *, size_t bytes);
void *arena_array(struct arena *, size_t count, size_t size); /* checks the product */
char *arena_string(struct arena *, const char *text);
const char **arena_strings(struct arena *, const char *const *texts, int count); /* copies */
char *arena_format(struct arena *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_free(struct arena *); /* leaves an empty arena */

#endif
