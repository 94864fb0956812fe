/* models_file.h - which models a server has, as --models names them:
 *
 *     {"models": [{"name": "clicks", "spec": "clicks.json", "checkpoint": "run",
 *                  "version_labels": [{"label": "stable", "checkpoint": "run/model.ckpt-320"}]},
 *                 ...]}
 */
#ifndef CMD_SERVE_MODELS_FILE_H
#define CMD_SERVE_MODELS_FILE_H

#include "core/base/arena.h"
#include "core/base/fields/fields.h"

enum { MODELS_MAX = 64 }; /* each version that has a label is one, too */

struct listed_model {
    const char *name, *spec, *checkpoint; /* relative paths are joined to the file's folder */
    struct strings set;                   /* as --set has it */
    bool follow;
    struct objects labels; /* of struct labelled_version, of the file alone */
    const char *label;     /* of a version that stands behind its model in the list; NULL: none */
};

struct labelled_version {
    const char *label, *checkpoint;
};

/* A list of struct listed_model, one or more, in the arena. ERR_INPUT names the file, and what is
 * wrong in it. */
err models_file_read(const char *path, struct arena *, struct objects *ret);

#endif
