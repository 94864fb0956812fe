/* pipe.h - reads standard input and named pipes, which can be read only once, as files.
 *
 * When it is first opened, it is read to its end into an unnamed file in TMPDIR (/tmp), or in
 * memory if none can be created there. Opened again, it is that file, until the process ends.
 */
#ifndef CORE_BASE_FILES_PIPE_H
#define CORE_BASE_FILES_PIPE_H

#include "core/base/error.h"

enum { PIPES_MAX = 64, PIPE_SILENT_MS = 3600 * 1000 /* without a byte: ERR_TIMEOUT */ };

#define STANDARD_INPUT "-"

/* descriptor: open for reading, non-blocking; it stays the caller's. ret: a new descriptor of the
 * file. Logs now and then that it waits. ERR_INPUT: another process reads the pipe; ERR_TIMEOUT:
 * nothing came for PIPE_SILENT_MS; ERR_IO: no space. From any thread. */
err pipe_open(const char *path, int descriptor, int *ret);
/* Creates such an unnamed file, for reading and writing; path: for messages. */
err file_open_nameless(const char *path, int *ret);

#endif
