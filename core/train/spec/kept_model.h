/* kept_model.h - what a run stored about its model's features beside its checkpoints, for another
 * run that starts from its values: which feature each row of a kernel belongs to, and the words of
 * vocabulary columns. */
#ifndef CORE_TRAIN_SPEC_KEPT_MODEL_H
#define CORE_TRAIN_SPEC_KEPT_MODEL_H

#include "core/data/word_ids.h"
#include "core/train/spec/features.h"

struct kept_model {
    json_t *features, *last_spec; /* NULL: not stored, as by other programs */
    const char *checkpoint;       /* for messages; borrowed */
};

/* Reads it from the folder of this prefix. ERR_INPUT, ERR_IO: unreadable. */
err kept_model_read(const char *prefix, struct kept_model *ret);
void kept_model_free(struct kept_model *);

struct kept_words {
    struct word_ids ids;
    bool are_known;
    bool are_same; /* as in the current spec */
    bool is_kept;  /* something is stored about the column: unknown words are new */
};
/* The words with which a vocabulary column was trained: from the file that
 * train.warm_start.vocabularies names; else from the stored spec, or the file that it names, if
 * their digest matches. ERR_INPUT: the file has other words, or is unreadable. */
err kept_model_words(const struct kept_model *, const struct spec *, const char *column,
                     const struct word_ids *now, struct arena *, struct kept_words *ret);

#endif
