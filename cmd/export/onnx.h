/* onnx.h - writes a program as an ONNX model, with the operators of ai.onnx. */
#ifndef CMD_EXPORT_ONNX_H
#define CMD_EXPORT_ONNX_H

#include "cmd/export/cells.h"
#include "cmd/export/onnx_graph.h"
#include "cmd/export/program.h"

/* Writes OUT/NAME.onnx; tables go to NAME.onnx.data if wanted, or if constants take more than
 * ONNX_INSIDE_BYTES. */
enum { ONNX_INSIDE_BYTES = 1 << 30 };
err onnx_write(const char *out, const char *name, const struct program *, const struct cells *,
               bool tables_beside);

/* Whether the client has to give the column's ids: it hashes or looks up words, or is a cross. */
bool onnx_leaves(const struct column_spec *);

/* ---- onnx_program.c ---- */
/* Of a table that grows: its keys in ascending order, and the numbers of their rows */
struct onnx_keys {
    int ids, places;
};
/* inputs: graph values; keys: of the table, if the first input is one that grows */
int onnx_write_value(struct onnx_graph *, const struct program *, int value, const int *inputs,
                     const struct onnx_keys *keys);

/* ---- onnx_cells.c: [batch, max] of float, or of ids, where -1 is missing ---- */
int onnx_write_column(struct onnx_graph *, const struct cells *, int column, int64_t max);

#endif
