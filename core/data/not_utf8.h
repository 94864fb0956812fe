/* not_utf8.h - logs a warning about text that is not valid UTF-8. */
#ifndef CORE_DATA_NOT_UTF8_H
#define CORE_DATA_NOT_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Logs a warning, once per file: the byte at text + at is not part of a UTF-8 character. line:
 * where the text begins. */
void not_utf8_warn(const char *path, int64_t line, const char *text, size_t at, size_t bytes);

#endif
