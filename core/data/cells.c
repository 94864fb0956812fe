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
    return text_find(reader->cell_names, reader->cell_count, name);
}

err row_reader_fail_cell(const struct row_reader *reader, const char *name)
{
    const struct suggestion near = suggest_or_list(name, reader->cell_names, reader->cell_count);
    if (!reader->nested)
        return fail(ERR_INPUT, "%s has no cell \"%.64s\"%s", reader->name, name, near.text);
    return fail(
        ERR_INPUT,
        "%s has no cell \"%.64s\"%s; \"%.64s\" holds others, which are none: bring them up, as "
        "jq -c '. + .user | del(.user)' does those of \"user\"",
        reader->name, name, near.text, reader->nested);
}

/* strtod also accepts hexadecimal, "inf" and leading blanks, and stops at a NUL: these are
 * excluded. */
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
        taken--, length--; /* do not cut a character */
    strcpy(text + length, taken < cell->length ? "..." : "");
    return text;
}

/* ---- what people and spreadsheets write in numbers ---- */

static const struct sign {
    const char *text;
    enum { BETWEEN, MINUS, UNIT } is;
} signs[] = {{",", BETWEEN},
             {"'", BETWEEN},
             {"_", BETWEEN},
             {" ", BETWEEN},
             {"\xc2\xa0", BETWEEN}, /* blanks of other widths */
             {"\xe2\x80\x89", BETWEEN},
             {"\xe2\x80\xaf", BETWEEN},
             {"\xe2\x80\x99", BETWEEN}, /* an apostrophe */
             {"\xe2\x88\x92", MINUS},
             {"\xe2\x80\x93", MINUS}, /* a dash */
             {"%", UNIT},
             {"$", UNIT},
             {"\xe2\x82\xac", UNIT}, /* euro, pound, yen */
             {"\xc2\xa3", UNIT},
             {"\xc2\xa5", UNIT}};

static const struct sign *sign_at(const char *at, size_t bytes)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const size_t length = strlen(signs[i].text);
        if (length <= bytes && memcmp(at, signs[i].text, length) == 0) return &signs[i];
    }
    return NULL;
}

/* Whether the text is a number once signs are removed (and minus signs replaced by "-");
 * without_points: points are removed, too, as in 1.234.567,50 */
static bool is_number_without(const struct cell *cell, bool without_points)
{
    char text[NUMBER_BYTES_MAX + 1];
    size_t length = 0;
    double number;
    for (size_t at = 0; at < cell->length;) {
        const struct sign *sign = sign_at(cell->text + at, cell->length - at);
        const bool is_left_out =
            (sign && sign->is != MINUS) || (without_points && cell->text[at] == '.');
        if (!is_left_out) text[length++] = sign ? '-' : cell->text[at];
        at += sign ? strlen(sign->text) : 1;
    }
    text[length] = '\0';
    return cell_number(&(struct cell){.text = text, .length = length}, &number);
}

static bool has_digit(const char *from, const char *to)
{
    while (from < to && !isdigit((unsigned char)*from)) from++;
    return from < to;
}

/* Whether each separator between digits is followed by three digits, or is a decimal comma; else
 * these are several numbers: 1 2 3. */
static bool is_one_number(const struct cell *cell)
{
    const char *text = cell->text;
    int commas = 0;
    bool has_digits = false;
    for (size_t at = 0; at < cell->length;) {
        const struct sign *sign = sign_at(text + at, cell->length - at);
        const bool is_comma = text[at] == ',';
        has_digits = has_digits || isdigit((unsigned char)text[at]);
        at += sign ? strlen(sign->text) : 1;
        if (!sign || sign->is != BETWEEN || !has_digits) continue;
        size_t end = at;
        while (end < cell->length && isdigit((unsigned char)text[end])) end++;
        const struct sign *next =
            end < cell->length ? sign_at(text + end, cell->length - end) : NULL;
        const bool is_unit = end == at && next && next->is == UNIT;
        const bool is_decimal =
            is_comma && commas == 0 && end > at && !has_digit(text + end, text + cell->length);
        if (end - at != 3 && !is_unit && !is_decimal) return false;
        commas += is_comma;
    }
    return true;
}

/* 2026-03-25 or 25.03.2026, perhaps followed by a time */
static bool is_date(const struct cell *cell)
{
    enum { FIELDS = 3, YEAR = 4 };
    size_t digits[FIELDS] = {0}, at = 0;
    for (int i = 0; i < FIELDS; i++) {
        while (at < cell->length && isdigit((unsigned char)cell->text[at])) at++, digits[i]++;
        if (digits[i] == 0) return false;
        if (i < FIELDS - 1 && (at == cell->length || !strchr("-./", cell->text[at++])))
            return false;
    }
    if (at < cell->length && !strchr(" T", cell->text[at])) return false;
    return digits[1] <= 2 &&
           ((digits[0] == YEAR && digits[2] <= 2) || (digits[0] <= 2 && digits[2] == YEAR));
}

const char *cell_number_hint(const struct cell *cell)
{
    static const char *const hints[] = {
        [BETWEEN] = "; decimals are written with a point, and nothing between thousands",
        [MINUS] = "; a minus is written as -",
        [UNIT] = "; numbers are written without currency and %"};
    bool has[sizeof hints / sizeof *hints] = {false};
    double number;
    if (!cell->text || cell->length > NUMBER_BYTES_MAX || cell_number(cell, &number)) return "";
    if (is_date(cell))
        return "; dates are read by \"column\": \"date\", where they are not as 2026-03-25 by its "
               "\"format\"";
    for (size_t at = 0; at < cell->length; at++) {
        const struct sign *sign = sign_at(cell->text + at, cell->length - at);
        if (sign) has[sign->is] = true;
    }
    if (!is_number_without(cell, false) && !is_number_without(cell, true)) return "";
    if (has[BETWEEN] && !is_one_number(cell)) return "";
    return has[BETWEEN] ? hints[BETWEEN] : has[UNIT] ? hints[UNIT] : has[MINUS] ? hints[MINUS] : "";
}
