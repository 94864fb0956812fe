/* onnx.h - a program as an ONNX model of the operators of ai.onnx. */
#ifndef CMD_EXPORT_ONNX_H
#define CMD_EXPORT_ONNX_H

#include "cmd/export/cells.h"
#include "cmd/export/onnx_graph.h"
#include "cmd/export/program.h"

/* OUT/NAME.onnx; where numbers take more than ONNX_INSIDE_BYTES, or else if wanted, its tables are
 * in NAME.onnx.data. */
enum { ONNX_INSIDE_BYTES = 1 << 30 };
err onnx_write(const char *out, const char *name, const struct program *, const struct cells *,
               bool tables_beside);

/* Whether the column is made of words or crosses: then the client has to give ids. */
bool onnx_leaves(const struct column_spec *);

/* ---- onnx_program.c ---- */
/* Of a table that grows: its keys in ascending order, and where their rows are */
struct onnx_keys {
    int ids, places;
};
/* keys: of its first input */
int onnx_write_value(struct onnx_graph *, const struct program *, int value, const int *inputs,
                     const struct onnx_keys *keys);

/* ---- onnx_cells.c: [batch, max], of float, or of ids, -1: none ---- */
int onnx_write_column(struct onnx_graph *, const struct cells *, int column, int64_t max);

#endif
