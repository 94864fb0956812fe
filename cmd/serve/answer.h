/* answer.h - what a model says of rows, as TensorFlow Serving writes it. */
#ifndef CMD_SERVE_ANSWER_H
#define CMD_SERVE_ANSWER_H

#include "cmd/serve/version.h"

/* {"predictions": [...]}, a value or an object of each row; or of columns {"outputs": ...} */
void answer_write_predictions(FILE *, struct version *, const struct taken_rows *,
                              const struct version_answer *);
/* {"results": [...]}: [["label", score], ...] of each row, or a number. ERR_INPUT: it is no such
 * model. */
err answer_write_classes(FILE *, struct version *, int64_t rows, const struct version_answer *);
err answer_write_numbers(FILE *, struct version *, int64_t rows, const struct version_answer *);
/* Inputs and outputs of its signature */
void answer_write_metadata(FILE *, const char *name, struct version *);

#endif
