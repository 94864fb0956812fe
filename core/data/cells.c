/* cells.c - see cells.h. */
#include "core/data/cells.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/fields/fields.h"
#include "core/base/printable.h"
#include "core/data/columns/decimal.h"

enum { NUMBER_BYTES_MAX = 64 };

int row_reader_cell(const struct row_reader *reader, const char *name)
{
    for (int i = 0; i < reader->cell_count; i++)
        if (strcmp(reader->cell_names[i], name) == 0) return i;
    return -1;
}

/* strtod also takes hexadecimal, "inf" and leading blanks, and stops at a NUL: all kept out. */
bool cell_number(const struct cell *cell, double *ret)
{
    if (cell->length == 0 || cell->length > NUMBER_BYTES_MAX) return false;
    if (decimal_plain(cell->text, cell->length, ret)) return true;
    for (size_t i = 0; i < cell->length; i++) /* no hexadecimal, no words, no blanks */
        if (!strchr("+-.0123456789eE", cell->text[i]) || !cell->text[i]) return false;
    char *end;
    double number = strtod(cell->text, &end);
    if (end != cell->text + cell->length || !isfinite(number)) return false;
    *ret = number;
    return true;
}

const char *const cell_missing_words[] = {"NA",  "N/A", "NULL", "null", "None", "none",
                                          "nan", "NaN", "?",    "\\N",  NULL};

bool cell_is_missing(const struct cell *cell)
{
    bool is_missing = cell->length == 0;
    for (const char *const *word = cell_missing_words; *word && !is_missing; word++)
        is_missing = cell->length == strlen(*word) && !strncasecmp(cell->text, *word, cell->length);
    return is_missing;
}

bool cell_is_one_of(const char *text, size_t length, const struct strings *words)
{
    for (int i = 0; i < words->count; i++)
        if (!strncmp(words->at[i], text, length) && !words->at[i][length]) return length > 0;
    return false;
}

const char *cell_text(const struct cell *cell, char text[CELL_TEXT_MAX])
{
    size_t taken = 0, length = 0;
    for (; taken < cell->length && length + PRINTABLE_BYTES_MAX < CELL_TEXT_MAX - 4; taken++) {
        const char c = cell->text[taken];
        if (iscntrl((unsigned char)c))
            length += (size_t)printable_escape(c, text + length);
        else
            text[length++] = c;
    }
    while (taken < cell->length && length > 0 && (cell->text[taken] & 0xc0) == 0x80)
        taken--, length--; /* not inside a character */
    strcpy(text + length, taken < cell->length ? "..." : "");
    return text;
}
