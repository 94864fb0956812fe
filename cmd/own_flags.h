/* own_flags.h - commands whose words are those of a run, with a few flags of their own between
 * them. */
#ifndef CMD_OWN_FLAGS_H
#define CMD_OWN_FLAGS_H

#include "core/base/arena.h"
#include "core/base/fields/fields.h"

/* Takes the flags of `own` and their values out of the words, which are then a run's. argv[0]
 * stays; what stands behind "--" is no flag. ERR_INPUT. */
err own_flags_take(const struct object *own, int *argc, char **argv, struct arena *, void *ret);

#endif
