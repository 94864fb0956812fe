/* not_utf8.h - text that is no UTF-8, as the log says it. */
#ifndef CORE_DATA_NOT_UTF8_H
#define CORE_DATA_NOT_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* A warning, once of a file: at text + at is a byte that belongs to no character. line: of where
 * the text begins. */
void not_utf8_warn(const char *path, int64_t line, const char *text, size_t at, size_t bytes);

#endif
