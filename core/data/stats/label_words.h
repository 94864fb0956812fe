/* label_words.h - labels that are words: which word is which class.
 *
 * The spec may list them ("classes"). Else they are the words of the training data, sorted by their
 * bytes, which one pass finds: the same rows make the same classes, in whatever order they lie.
 */
#ifndef CORE_DATA_STATS_LABEL_WORDS_H
#define CORE_DATA_STATS_LABEL_WORDS_H

#include "core/data/data.h"

/* The words, by class, of a source, if its labels are words; else none. Borrowed. */
const struct strings *label_words_of(const struct source_spec *);
/* Of one of several by its name, else of the source's own */
const struct strings *label_words_named(const struct source_spec *, const char *label);
/* The word that counts as 1, all others as 0; NULL: labels are not of that kind. */
const char *label_positive_of(const struct source_spec *);
/* Whether those of data.train are words that nobody has listed. */
bool label_words_are_wanting(const struct data_spec *);
/* Reads them from data.train. ERR_INPUT: the data are bad. */
err label_words_measure(struct data_spec *, const struct format_context *, struct arena *);
/* The same from a list, which stays. */
void label_words_give(struct data_spec *, const struct strings *);
/* Once they are there: data.eval has those of data.train, where it lists none itself. ERR_INPUT: it
 * cannot, or one is listed twice. */
err label_words_settle(struct data_spec *, struct arena *);

#endif
