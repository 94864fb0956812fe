/* text_pairs.h - skip-gram: each word of a text with each of its neighbours, a row for each pair.
 */
#ifndef CORE_DATA_FORMATS_TEXT_PAIRS_H
#define CORE_DATA_FORMATS_TEXT_PAIRS_H

#include "core/data/formats/text_ids.h"

struct text_pairs {
    int64_t window;   /* neighbours on each side at most */
    bool random;      /* each word has from 1 to `window` of them */
    double subsample; /* words more frequent than this share are left out at times; 0: none */
};

/* The words are the rows' ids, their neighbours the labels. What is left out is drawn by the key.
 * ERR_INPUT: no pairs. */
err text_pairs_make(const struct text_ids *, const struct text_pairs *, uint64_t key,
                    bool without_labels, struct storage *, int64_t *ret_rows);

#endif
