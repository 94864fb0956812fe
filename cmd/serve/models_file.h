/* models_file.h - reads the file of --models, which lists the models of a server:
 *
 *     {"models": [{"name": "clicks", "spec": "clicks.json", "checkpoint": "run",
 *                  "version_labels": [{"label": "stable", "checkpoint": "run/model.ckpt-320"}]},
 *                 ...]}
 */
#ifndef CMD_SERVE_MODELS_FILE_H
#define CMD_SERVE_MODELS_FILE_H

#include "core/base/arena.h"
#include "core/base/fields/fields.h"

enum { MODELS_MAX = 64 }; /* versions with a label count as models */

struct listed_model {
    const char *name, *spec, *checkpoint; /* relative paths are joined to the file's folder */
    struct strings set;                   /* as in --set */
    bool follow;
    struct objects labels; /* of struct labelled_version; only while reading */
    const char *label;     /* of a version, which follows its model in the list; NULL: none */
};

struct labelled_version {
    const char *label, *checkpoint;
};

/* A list of at least one struct listed_model, in the arena. ERR_INPUT names the file and what is
 * wrong in it. */
err models_file_read(const char *path, struct arena *, struct objects *ret);

#endif
