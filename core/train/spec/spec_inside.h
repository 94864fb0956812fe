/* spec_inside.h - what the files of the spec reader share. Nobody else includes this. */
#ifndef CORE_TRAIN_SPEC_SPEC_INSIDE_H
#define CORE_TRAIN_SPEC_SPEC_INSIDE_H

#include "core/train/checkpoint/checkpoints.h"
#include "core/train/spec/spec.h"

/* The JSON of a file, or of standard input for "-". New reference. */
err spec_read(const char *path, json_t **ret);
/* The JSON of a file which a run keeps in its folder. */
err spec_read_kept(const char *path, json_t **ret);
/* NULL where it is absent. ERR_IO: storage does not say. */
err spec_find_kept(const char *path, json_t **ret);
/* Writes such a file. Takes the JSON; NULL: there was no memory for it. */
err spec_write_kept(const char *path, json_t *);

/* One value as it is shown, with keys in order and numbers of nine digits (0.1 is "0.1"), and other
 * flags of jansson. Freed with free(); NULL: no memory. */
char *spec_value_text(const json_t *value, size_t flags);

/* Tasks compare fingerprints when they meet. Left out is what may differ between them, or between a
 * task and its next life: what is said, saved and measured beside the steps, and where files lie.
 * features: what they mean, by files that lie anywhere; NULL: not known yet.
 */
err spec_make_fingerprint(const json_t *, const json_t *features, char ret[17]);

extern const struct object train_spec_object;

/* What a spec says once stands where it is used: "$dim" becomes what "define" has of that name,
 * which goes ("$$dim" is the text "$dim"), "C{1..26}" in inputs and in columns one for each number,
 * and a node that stands for several (mlp, repeat, a block) becomes these. ERR_INPUT names the
 * place. ret_places: a list of texts, of each node the place where it was written (new reference);
 * NULL: as the spec counts. */
err spec_expand(json_t *spec, json_t **ret_places);

/* After the tables have filled spec->train from json (the whole spec): defaults that depend on
 * which keys were given, the pairs of warm_start, and what must hold between members. */
err spec_train_finish(struct spec *, const json_t *json, struct arena *);

#endif
