/* cells.c - see cells.h. */
#include "core/data/cells.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_BYTES_MAX = 64 };

int row_reader_cell(const struct row_reader *reader, const char *name)
{
    for (int i = 0; i < reader->cell_count; i++)
        if (strcmp(reader->cell_names[i], name) == 0) return i;
    return -1;
}

/* Digits with at most one point, at most 15 in all: exact by one division. What is longer or has
 * an exponent is left to strtod. */
static bool plain_number(const char *text, size_t length, double *ret)
{
    static const double tens[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const bool is_negative = length > 0 && *text == '-';
    const char *end = text + length, *point = NULL;
    int64_t number = 0;
    text += is_negative;
    if (end - text > 16) return false;
    const char *digits = text;
    for (; text < end; text++) {
        const unsigned digit = (unsigned char)*text - (unsigned)'0';
        if (digit > 9 && (*text != '.' || point)) return false;
        if (digit > 9)
            point = text;
        else
            number = number * 10 + digit;
    }
    const ptrdiff_t count = end - digits - (point != NULL);
    if (count < 1 || count > 15) return false;
    const double size = point ? (double)number / tens[end - point - 1] : (double)number;
    *ret = is_negative ? -size : size;
    return true;
}

/* strtod also takes hexadecimal, "inf" and leading blanks, and stops at a NUL: all kept out. */
bool cell_number(const struct cell *cell, double *ret)
{
    if (cell->length == 0 || cell->length > NUMBER_BYTES_MAX) return false;
    if (plain_number(cell->text, cell->length, ret)) return true;
    for (size_t i = 0; i < cell->length; i++) /* no hexadecimal, no words, no blanks */
        if (!strchr("+-.0123456789eE", cell->text[i]) || !cell->text[i]) return false;
    char *end;
    double number = strtod(cell->text, &end);
    if (end != cell->text + cell->length || !isfinite(number)) return false;
    *ret = number;
    return true;
}

bool cell_is_missing(const struct cell *cell)
{
    static const char *const words[] = {"", "?", "NA", "nan"};
    for (int i = 0; i < 4; i++)
        if (cell->length == strlen(words[i]) && !strcasecmp(cell->text, words[i])) return true;
    return false;
}

const char *cell_text(const struct cell *cell, char text[CELL_TEXT_MAX])
{
    size_t length = cell->length < CELL_TEXT_MAX - 4 ? cell->length : CELL_TEXT_MAX - 4;
    for (size_t i = 0; i < length; i++)
        text[i] = iscntrl((unsigned char)cell->text[i]) ? '.' : cell->text[i];
    strcpy(text + length, length < cell->length ? "..." : "");
    return text;
}
