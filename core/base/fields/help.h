/* help.h - prints further lists of the help, wrapped as those of fields (fields.h). */
#ifndef CORE_BASE_FIELDS_HELP_H
#define CORE_BASE_FIELDS_HELP_H

#include <stdio.h>

enum { HELP_SHORT_NAMES = 17, HELP_LONG_NAMES = 24 }; /* column where the texts of a list begin */

void help_row(FILE *, const char *name, const char *text, int column);
void help_title(FILE *, const char *name, const char *text); /* "name: text" */
void help_text(FILE *, const char *text, int column);        /* lines of its own */

#endif
