/* pipe.h - what can be read only once, as a file: standard input and named pipes.
 *
 * It is read to its end, when it is first opened, into a file without a name: in the folder of
 * TMPDIR (/tmp), or in memory where that has none of these. From then on it is that file, however
 * often it is opened, until the process ends.
 */
#ifndef CORE_BASE_FILES_PIPE_H
#define CORE_BASE_FILES_PIPE_H

#include "core/base/error.h"

enum { PIPES_MAX = 64, PIPE_SILENT_MS = 3600 * 1000 /* without a byte */ };

#define STANDARD_INPUT "-"

/* descriptor: open for reading, not blocking; it stays the caller's. ret: another one. Waiting is
 * said now and then. ERR_INPUT: another process reads the pipe; ERR_TIMEOUT: nothing came for so
 * long; ERR_IO: no room. Any thread may call. */
err pipe_open(const char *path, int descriptor, int *ret);
/* Such a file without a name, for reading and writing; path is told where there is no room. */
err file_open_nameless(const char *path, int *ret);

#endif
