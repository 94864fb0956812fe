/* kept_model.h - what a run kept beside its checkpoints of what its model read, for another run
 * that begins with its values: whose the rows of kernels are, and the words of vocabulary columns.
 */
#ifndef CORE_TRAIN_SPEC_KEPT_MODEL_H
#define CORE_TRAIN_SPEC_KEPT_MODEL_H

#include "core/data/word_ids.h"
#include "core/train/spec/features.h"

struct kept_model {
    json_t *features, *last_spec; /* NULL: there is none, as beside those of other programs */
    const char *checkpoint;       /* for messages; borrowed */
};

/* What lies in the folder of this prefix. ERR_INPUT, ERR_IO: it cannot be read. */
err kept_model_read(const char *prefix, struct kept_model *ret);
void kept_model_free(struct kept_model *);

struct kept_words {
    struct word_ids ids;
    bool are_known;
    bool are_same; /* as now */
    bool is_kept;  /* something is known of the column: words that are not known are others */
};
/* Of a vocabulary column of the spec, which has these words now: from the file that
 * train.warm_start.vocabularies names; else from the last spec, or the file that it names, where
 * they are those that it was trained with. ERR_INPUT: that file has others, or cannot be read. */
err kept_model_words(const struct kept_model *, const struct spec *, const char *column,
                     const struct word_ids *now, struct arena *, struct kept_words *ret);

#endif
