/* label_words.h - labels that are words: which word is which class.
 *
 * The spec may list them ("classes"). Else one pass finds the words of the training data and sorts
 * them by their bytes, so that classes do not depend on the order of rows.
 */
#ifndef CORE_DATA_STATS_LABEL_WORDS_H
#define CORE_DATA_STATS_LABEL_WORDS_H

#include "core/data/data.h"

/* The words of a source's labels, by class; none if labels are not words or not known yet.
 * Borrowed. */
const struct strings *label_words_of(const struct source_spec *);
/* For sources with several labels: the words of the one with that name; else as label_words_of */
const struct strings *label_words_named(const struct source_spec *, const char *label);
/* The word that counts as 1, all others as 0; NULL: none. */
const char *label_positive_of(const struct source_spec *);
/* Whether labels of data.train are words and the spec does not list them. */
bool label_words_are_wanting(const struct data_spec *);
/* Sets the words found in data.train. ERR_INPUT: the data are bad. */
err label_words_measure(struct data_spec *, const struct format_context *, struct arena *);
/* Sets the words from a list, which must outlive `data`. */
void label_words_give(struct data_spec *, const struct strings *);
/* Called once words are known: data.eval gets those of data.train if it lists none. ERR_INPUT:
 * data.train has none for it, or a word is listed twice. */
err label_words_settle(struct data_spec *, struct arena *);

#endif
