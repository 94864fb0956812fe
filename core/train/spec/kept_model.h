/* kept_model.h - what a run has kept beside its checkpoints about its model's features, for another
 * run that begins with its values: which feature each row of a kernel belongs to, and the words of
 * vocabulary columns. */
#ifndef CORE_TRAIN_SPEC_KEPT_MODEL_H
#define CORE_TRAIN_SPEC_KEPT_MODEL_H

#include "core/data/word_ids.h"
#include "core/train/spec/features.h"

struct kept_model {
    json_t *features, *last_spec; /* NULL: not kept, as by other programs */
    const char *checkpoint;       /* for messages; borrowed */
};

/* Reads it from the folder of this prefix. ERR_INPUT, ERR_IO: it cannot be read. */
err kept_model_read(const char *prefix, struct kept_model *ret);
void kept_model_free(struct kept_model *);

struct kept_words {
    struct word_ids ids;
    bool are_known;
    bool are_same; /* as now */
    bool is_kept;  /* something is known of the column: words that are not known are new ones */
};
/* The words with which a vocabulary column was trained: from the file that
 * train.warm_start.vocabularies names; else from the last spec, or the file that it names, if their
 * digest is right. ERR_INPUT: that file has other words, or cannot be read. */
err kept_model_words(const struct kept_model *, const struct spec *, const char *column,
                     const struct word_ids *now, struct arena *, struct kept_words *ret);

#endif
