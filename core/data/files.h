/* files.h - expands the files that a spec names: patterns and lists. */
#ifndef CORE_DATA_FILES_H
#define CORE_DATA_FILES_H

#include "core/data/data.h"

/* Each of `given` is a path or a URL; or a pattern (*, ?, [a-z]), whose files are sorted by the
 * bytes of their names (in a URL only if its server lists files); or "@" and a file with one path
 * or pattern per line (empty lines and those that begin with # are ignored). If a file has the name
 * of the pattern itself, that file is meant. Results are relative to the context's directory, as
 * `given` is. ERR_INPUT: no file matches a pattern, a file in a list does not exist, or more than
 * FIELD_LIST_MAX files. Logs a warning if a file is found twice, or both packed and unpacked. */
err files_find(const struct strings *given, const struct format_context *, struct arena *,
               struct strings *ret);

#endif
