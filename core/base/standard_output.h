/* standard_output.h - results for a person or a script, on standard output.
 *
 * From standard_output_open on all that is written to stdout goes through here: it is made safe to
 * show (printable.h), a status line on the same terminal gives way to it (log.h), and what cannot
 * be written is kept in mind, so that nobody need look at what printf returns.
 */
#ifndef CORE_BASE_STANDARD_OUTPUT_H
#define CORE_BASE_STANDARD_OUTPUT_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdio.h>

void standard_output_open(void);

/* Writes what is gathered. ERR_IO: something since the last call could not be written. main calls
 * it at the end; whoever writes for long may ask before. */
err standard_output_flush(void);

/* What a task prints as it runs. Where lines of the log are objects (--log_format=json) its lines
 * are such, too, and go where those go. */
struct result_lines {
    FILE *file;
    char *text; /* of objects; NULL: stdout itself */
    size_t size;
};
FILE *result_lines_begin(struct result_lines *);
void result_lines_end(struct result_lines *);

/* Bytes as they are, to any descriptor, which may be one that does not block: waits up to 10 s for
 * room. What cannot be written is dropped, and counts where it was meant for standard output. */
void standard_output_pass(int to, const char *bytes, size_t count);

#endif
