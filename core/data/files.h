/* files.h - which files a spec means. */
#ifndef CORE_DATA_FILES_H
#define CORE_DATA_FILES_H

#include "core/data/data.h"

/* Each of `given` is a path or a URL; or a pattern (*, ?, [a-z]), whose files come in the order of
 * their names' bytes, behind a URL where its server lists files; or "@" and a file that has one
 * path or pattern per line (empty ones and those that begin with # say nothing). A file whose name
 * looks like a pattern is that file. What is found is relative to the context's directory as what
 * is given. ERR_INPUT: a pattern that no file fits, a name in a file of names that is no file, more
 * than FIELD_LIST_MAX. A file that is found twice, or packed and not, is warned of. */
err files_find(const struct strings *given, const struct format_context *, struct arena *,
               struct strings *ret);

#endif
