/* saved_model.h - writes a program as TensorFlow's SavedModel. */
#ifndef CMD_EXPORT_SAVED_MODEL_H
#define CMD_EXPORT_SAVED_MODEL_H

#include "cmd/export/given.h"
#include "cmd/export/program.h"
#include "cmd/export/tf_graph.h"

enum { GROUPS_MAX = 1024 }; /* of a convolution that has no op in TensorFlow */

/* Writes OUT/<version>/, which appears only when complete. ERR_INPUT: it exists already. */
err saved_model_write(const char *out, int64_t version, const struct program *,
                      const struct cells *);

/* ---- tf_program.c ---- */

struct tf_tensor tf_write_value(struct tf_graph *, const struct program *, int value,
                                const struct tf_tensor *inputs);

/* ---- tf_cells.c ---- */

/* How a client gives the cells, by their index in struct cells */
struct tf_cells {
    const struct cells *cells;
    struct given_cells given; /* a list: [batch, values], else [batch]; a time: int64 in
                                 Examples, since float32 cannot hold today's seconds */
    enum tf_type types[CELLS_MAX];
    struct tf_tensor words[COLUMNS_MAX], word_counts[COLUMNS_MAX]; /* tables of vocabularies */
};

/* Creates the tables of words. ERR_INPUT names a column that cannot be exported. */
err tf_cells_open(struct tf_cells *, struct tf_graph *, const struct cells *);
/* given: [cells]. Weights and columns are [batch, max], of float or of ids, where -1 is missing. */
/* The weight of each id of the column */
struct tf_tensor tf_write_weights(const struct tf_cells *, struct tf_graph *, int column,
                                  const struct tf_tensor *given, int64_t max);
struct tf_tensor tf_write_column(const struct tf_cells *, struct tf_graph *, int column,
                                 const struct tf_tensor *given, int64_t max);
/* Parses serialized Examples, [batch], into ret [cells]. */
void tf_parse_examples(const struct tf_cells *, struct tf_graph *, struct tf_tensor serialized,
                       struct tf_tensor *ret);

/* A part of a time as an id; part: enum date_part; seconds: since 1970, float64 */
struct tf_tensor tf_part_of_time(struct tf_graph *, int part, struct tf_tensor seconds);

#endif
