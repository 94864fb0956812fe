/* features.h - the meaning of features: from which names, columns, words and boundaries of the data
 * they are made, and in which order nodes read them.
 *
 * A model's values are only useful with features of the same meaning. So it is stored beside the
 * checkpoints, as JSON, and compared before they are restored:
 *
 *     {"scale": 1.0, "offset": 0.0, "classes": ["no", "yes"],
 *      "columns": {"animal": {"column": "vocabulary", "source": "animal",
 *                             "words": "2, digest ..."}},
 *      "names": ["height", "weight"], "inputs": {"joined": ["animal", "age"]},
 *      "ids of the text": "digest ...",
 *      "rows": {"hidden/kernel": [["animal", 8], ["age", 1]]}}
 *
 * Members that only one side has are not compared, and neither are the rows of kernels
 * (graph/kernel_rows.h): those are for warm starts from another run.
 */
#ifndef CORE_TRAIN_SPEC_FEATURES_H
#define CORE_TRAIN_SPEC_FEATURES_H

#include "core/data/source.h"
#include "core/graph/kernel_rows.h"
#include "core/train/spec/spec.h"

/* Reads the files of words and boundaries, whose contents become part of the spec's columns. New
 * reference. ERR_INPUT: a file is missing or invalid. */
err features_describe(struct spec *, json_t **ret);
/* ERR_INPUT: features have changed; the text says which, and the flag that accepts it. If the spec
 * accepts it, logs a warning instead. kept NULL: unknown. */
err features_compare(const struct spec *, const json_t *kept, const json_t *now);
/* Compares the part known only from the open data and the graph with the checkpoint's. ret: the
 * complete description, to be stored; freed by features_free. */
err features_check(const struct spec *, const struct batch_source *, const struct graph *,
                   json_t **ret);
/* Compares only the meaning of the ids of text, whose rows cannot be matched by words. */
err features_check_text(const struct spec *, const json_t *kept, const struct batch_source *);
void features_free(json_t *); /* NULL is fine */

/* Which feature each row of a kernel belongs to; empty: unknown. Copies. */
struct kernel_parts features_rows(const json_t *features, const char *kernel, struct arena *);

/* The names of numeric features, if the file has any; empty: unknown. Copies. */
struct strings features_names(const json_t *features, struct arena *);

#endif
