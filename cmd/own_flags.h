/* own_flags.h - for commands that take the arguments of a run and a few flags of their own. */
#ifndef CMD_OWN_FLAGS_H
#define CMD_OWN_FLAGS_H

#include "core/base/arena.h"
#include "core/base/fields/fields.h"

/* Parses the flags of `own` into ret and removes them from argv, which is then a run's. argv[0]
 * stays; words after "--" are not flags. ERR_INPUT. */
err own_flags_take(const struct object *own, int *argc, char **argv, struct arena *, void *ret);

#endif
