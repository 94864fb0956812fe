/* standard_output.h - results for a person or a script, on standard output.
 *
 * After standard_output_open all that is written to stdout passes through here: it is made safe to
 * print (printable.h), a status line on the same terminal is cleared first (log.h), and write
 * errors are remembered, so that callers can ignore the result of printf.
 */
#ifndef CORE_BASE_STANDARD_OUTPUT_H
#define CORE_BASE_STANDARD_OUTPUT_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdio.h>

void standard_output_open(void);

/* Writes what is buffered. ERR_IO: something since the last call could not be written. main calls
 * it at the end; commands that write for long may call it before. */
err standard_output_flush(void);

/* What a task prints as it runs. With --log_format=json its lines become log lines, as JSON
 * objects. */
struct result_lines {
    FILE *file;
    char *text; /* buffered, for JSON; NULL: file is stdout */
    size_t size;
};
FILE *result_lines_begin(struct result_lines *);
void result_lines_end(struct result_lines *);

/* Writes bytes as they are to any descriptor, also a non-blocking one: waits up to 10 s for room.
 * What cannot be written is dropped; if that is standard output, the next standard_output_flush()
 * reports it. */
void standard_output_pass(int to, const char *bytes, size_t count);

#endif
