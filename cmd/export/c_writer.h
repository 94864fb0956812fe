/* c_writer.h - a program as C. */
#ifndef CMD_EXPORT_C_WRITER_H
#define CMD_EXPORT_C_WRITER_H

#include <stdio.h>

#include "cmd/export/cells.h"
#include "cmd/export/program.h"

/* The header and the source of NAME, whose numbers are data in it. */
void c_write_header(FILE *, const char *name, const struct program *, const struct cells *);
err c_write_source(FILE *, const char *name, const struct program *, const struct cells *);
/* What makes the inputs of the program of the cells of a row: c_cells.c */
err c_write_cells(FILE *, const char *name, const struct program *, const struct cells *);

#endif
