/* fingerprint.c - do two tasks train the same thing?
 *
 * Tasks compare fingerprints when they meet. Left out is what may differ between them, or between
 * a task and its next life: the name, what is said, saved and measured beside the steps and how
 * often, and where, which change nothing that is computed, and the names of data files, since the
 * same examples may lie elsewhere on another machine.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/random.h"
#include "core/train/spec/spec_inside.h"

/* The single strings of a data format name its files or a detail of how they are written; what it
 * says with numbers, lists and choices says which examples they hold, which must be equal. */
static void forget_files(json_t *data, const char *key, const struct source_spec *source)
{
    json_t *json = json_object_get(data, key);
    if (!source->format.kind || !json_is_object(json)) return;
    const struct field *field = source->format.kind->object->fields;
    for (; field && field->name; field++) {
        if (field->type == FIELD_STRING) json_object_del(json, field->name);
    }
}

static void forget_manners(json_t *train)
{
    static const char *const keys[] = {
        "log_every_steps",      "checkpoint_dir",
        "save_checkpoint_secs", "save_checkpoint_steps",
        "keep_checkpoint_max",  "keep_checkpoint_every_n_hours",
        "on_corrupt",           "warm_start",
        "summary_dir",          "save_summaries_steps",
        "save_summaries_secs",  "log_step_count_steps",
        "evaluate_every_steps", "evaluate_every_secs",
        "log_device_placement", "hooks",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) json_object_del(train, keys[i]);
}

err spec_fingerprint(const struct spec *spec, char ret[17])
{
    json_t *shared = json_deep_copy(spec->json);
    json_object_del(shared, "name");
    json_object_del(shared, "device");
    forget_manners(json_object_get(shared, "train"));
    json_t *data = json_object_get(shared, "data");
    forget_files(data, "train", &spec->data.train);
    forget_files(data, "eval", &spec->data.eval);

    char *text = json_dumps(shared, JSON_SORT_KEYS | JSON_COMPACT);
    json_decref(shared);
    if (!text) return fail(ERR_MEMORY, "no memory for the spec's fingerprint");
    snprintf(ret, 17, "%016" PRIx64, random_key(0, text));
    free(text);
    return OK;
}
