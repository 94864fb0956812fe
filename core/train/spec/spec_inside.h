/* spec_inside.h - shared by the files of the spec reader, and private to them. */
#ifndef CORE_TRAIN_SPEC_SPEC_INSIDE_H
#define CORE_TRAIN_SPEC_SPEC_INSIDE_H

#include "core/train/checkpoint/checkpoints.h"
#include "core/train/spec/spec.h"

/* The JSON of a file, or of standard input for "-". New reference. */
err spec_read(const char *path, json_t **ret);
/* The JSON of a file which a run keeps in its folder. */
err spec_read_kept(const char *path, json_t **ret);
/* NULL: no such file. ERR_IO: storage failed. */
err spec_find_kept(const char *path, json_t **ret);
/* Writes such a file. Takes over the reference; NULL is ERR_MEMORY. */
err spec_write_kept(const char *path, json_t *);

/* A value for display, with sorted keys and numbers of nine digits (0.1 is "0.1"), and further
 * flags of jansson. Freed with free(); NULL: out of memory. */
char *spec_value_text(const json_t *value, size_t flags);

/* The fingerprint, which tasks compare when they connect. Leaves out what may differ between tasks,
 * or after a restart: logging, saving, measuring, and where files are. features: their meaning,
 * wherever their files are; NULL: not known yet. */
err spec_make_fingerprint(const json_t *, const json_t *features, char ret[17]);

extern const struct object train_spec_object;

/* Expands short forms: "$dim" becomes the definition of that name in "define", which is removed
 * ("$$dim" is the text "$dim"); "C{1..26}" in inputs and columns becomes one per number; a node
 * that stands for several (mlp, repeat, a block) becomes these. ERR_INPUT names the place.
 * ret_places: for each node, where it was written (a list of texts, new reference); NULL: nothing
 * was expanded. */
err spec_expand(json_t *spec, json_t **ret_places);

/* Completes spec->train, which the tables have filled from json (the whole spec): defaults that
 * depend on which keys were given, the pairs of warm_start, and checks across members. */
err spec_train_finish(struct spec *, const json_t *json, struct arena *);

#endif
