/* features.h - what features mean: by which names, columns, words and boundaries they are made of
 * the data, and in which order nodes read them.
 *
 * Values of a model are of use with features that mean the same. So this is kept beside the
 * checkpoints, as JSON, and compared before they are read:
 *
 *     {"scale": 1.0, "offset": 0.0, "classes": ["no", "yes"],
 *      "columns": {"animal": {"column": "vocabulary", "source": "animal",
 *                             "words": "2, digest ..."}},
 *      "names": ["height", "weight"], "inputs": {"joined": ["animal", "age"]},
 *      "ids of the text": "digest ...",
 *      "rows": {"hidden/kernel": [["animal", 8], ["age", 1]]}}
 *
 * A member that only one side has is not compared, nor are the rows of kernels
 * (graph/kernel_rows.h): those are for runs that begin with the values of another.
 */
#ifndef CORE_TRAIN_SPEC_FEATURES_H
#define CORE_TRAIN_SPEC_FEATURES_H

#include "core/data/source.h"
#include "core/graph/kernel_rows.h"
#include "core/train/spec/spec.h"

/* Reads the files of words and boundaries, whose contents are noted in the spec's columns. New
 * reference. ERR_INPUT: a file is missing or wrong. */
err features_describe(struct spec *, json_t **ret);
/* ERR_INPUT: what has changed, and the flag that accepts it; if the spec accepts it, a warning.
 * kept NULL: not known. */
err features_compare(const struct spec *, const json_t *kept, const json_t *now);
/* Compares what only the open data and the graph tell with what is kept of the checkpoint. ret: all
 * of it, to be kept; freed by features_free. */
err features_check(const struct spec *, const struct batch_source *, const struct graph *,
                   json_t **ret);
/* Only what the ids of the text stand for: its rows cannot be matched by their words. */
err features_check_text(const struct spec *, const json_t *kept, const struct batch_source *);
void features_free(json_t *); /* NULL is fine */

/* Which feature each row of a kernel belongs to; none: not known. Copies. */
struct kernel_parts features_rows(const json_t *features, const char *kernel, struct arena *);

/* The names of numbers, if the file has any; none. Copies. */
struct strings features_names(const json_t *features, struct arena *);

#endif
