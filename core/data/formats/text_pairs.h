/* text_pairs.h - skip-gram: a row for each pair of a word in a text and one of its neighbours. */
#ifndef CORE_DATA_FORMATS_TEXT_PAIRS_H
#define CORE_DATA_FORMATS_TEXT_PAIRS_H

#include "core/data/formats/text_ids.h"

struct text_pairs {
    int64_t window;   /* maximum of neighbours on each side */
    bool random;      /* the window of each word is random, 1 to `window` */
    double subsample; /* words more frequent than this fraction are randomly left out; 0: none */
};

/* Words become the rows' ids, neighbours the labels. key: seed for random choices. ERR_INPUT: no
 * pairs. */
err text_pairs_make(const struct text_ids *, const struct text_pairs *, uint64_t key,
                    bool without_labels, struct storage *, int64_t *ret_rows);

#endif
