/* replace_file.h - a small text file that readers find whole: the old text, or the new one, which
 * is on the disk afterwards.
 */
#ifndef CMD_RUN_REPLACE_FILE_H
#define CMD_RUN_REPLACE_FILE_H

#include "core/base/error.h"

/* Writes path.tmp, then renames it. ERR_IO. */
err replace_file(const char *path, const char *text);

#endif
