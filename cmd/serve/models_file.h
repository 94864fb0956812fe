/* models_file.h - which models a server has, as --models names them:
 *
 *     {"models": [{"name": "clicks", "spec": "clicks.json", "checkpoint": "run"}, ...]}
 */
#ifndef CMD_SERVE_MODELS_FILE_H
#define CMD_SERVE_MODELS_FILE_H

#include "core/base/arena.h"
#include "core/base/fields/fields.h"

enum { MODELS_MAX = 64 };

struct listed_model {
    const char *name, *spec, *checkpoint; /* relative paths are joined to the file's folder */
    struct strings set;                   /* as --set has it */
    bool follow;
};

/* A list of struct listed_model, one or more, in the arena. ERR_INPUT names the file, and what is
 * wrong in it. */
err models_file_read(const char *path, struct arena *, struct objects *ret);

#endif
