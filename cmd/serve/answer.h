/* answer.h - writes predictions as TensorFlow Serving does. */
#ifndef CMD_SERVE_ANSWER_H
#define CMD_SERVE_ANSWER_H

#include "cmd/serve/version.h"

/* {"predictions": [...]}: a value or an object per row; {"outputs": ...} for a columnar request */
void answer_write_predictions(FILE *, struct version *, const struct taken_rows *,
                              const struct version_answer *);
/* {"results": [...]}: per row [["label", score], ...], or a number. ERR_INPUT: the model does not
 * predict that */
err answer_write_classes(FILE *, struct version *, int64_t rows, const struct version_answer *);
err answer_write_numbers(FILE *, struct version *, int64_t rows, const struct version_answer *);
/* Inputs and outputs of the model's signature */
void answer_write_metadata(FILE *, const char *name, struct version *);

#endif
