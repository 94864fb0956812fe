/* c_writer.h - writes a program as C source. */
#ifndef CMD_EXPORT_C_WRITER_H
#define CMD_EXPORT_C_WRITER_H

#include <stdio.h>

#include "cmd/export/cells.h"
#include "cmd/export/program.h"

/* The weights of a program in a separate file; bytes 0: they are in the C source. */
struct c_weights {
    int64_t bytes;
    uint32_t crc;
};
void c_write_weights(FILE *, const struct program *, struct c_weights *ret);
bool c_weights_are(const char *path); /* whether path is a weights file, of any model */
/* Writes the functions that map that file */
void c_write_open(FILE *, const char *name, const struct program *, const struct c_weights *);

/* Input of the header and the source of NAME */
struct c_model {
    const char *name;
    const struct program *program;
    const struct cells *cells;
    struct c_weights weights;
};
void c_write_header(FILE *, const struct c_model *);
err c_write_source(FILE *, const struct c_model *);
/* c_cells.c: the code that turns the cells of a row into inputs; before it and the runtime, the
 * words that stand for a missing value */
void c_write_missing(FILE *, const struct cells *);
err c_write_cells(FILE *, const char *name, const struct program *, const struct cells *);

#endif
