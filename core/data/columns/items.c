/* items.c - see items.h. */
#include "core/data/columns/items.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fingerprint.h"
#include "core/data/columns/decimal.h"

enum { NUMBER_TEXT_MAX = 64, DIGITS_ALWAYS = 18 };
static const double INTEGER_END = 0x1p63;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct item item_trimmed(const char *from, const char *to)
{
    while (from < to && is_blank(*from)) from++;
    while (to > from && is_blank(to[-1])) to--;
    return (struct item){.text = from, .length = (size_t)(to - from), .weight = 1};
}

/* The next item of a text with separators */
static bool next_part(struct items *items, const char *text, size_t length, struct item *ret)
{
    while (items->at < length) {
        const char *from = text + items->at, *end = text + length;
        const size_t width = strlen(items->separator);
        const char *to = width == 1 ? memchr(from, items->separator[0], (size_t)(end - from))
                                    : memmem(from, (size_t)(end - from), items->separator, width);
        if (!to) to = end;
        items->at = (size_t)(to - text) + width;
        *ret = item_trimmed(from, to);
        if (ret->length > 0) return true;
    }
    return false;
}

static bool next_word(struct items *items, struct item *ret)
{
    const struct cell *cell = items->cell;
    if (items->separator) return next_part(items, cell->text, cell->length, ret);
    *ret = (struct item){.text = cell->text, .length = cell->length, .weight = 1};
    return items->at++ == 0 && cell->length > 0; /* cells are already trimmed */
}

/* A word may itself have several values between separators. */
static bool next_of_words(struct items *items, struct item *ret)
{
    const struct cell *cell = items->cell;
    while (items->index < cell->count) {
        const struct cell_word *word = &cell->words[items->index];
        const bool is_part = items->separator && next_part(items, word->text, word->length, ret);
        if (is_part && cell_is_one_of(ret->text, ret->length, cell->missing)) continue;
        if (is_part) return true;
        items->index++;
        items->at = 0;
        if (items->separator) continue;
        *ret = item_trimmed(word->text, word->text + word->length);
        if (ret->length > 0) return true;
    }
    return false;
}

static bool next_of_list(struct items *items, struct item *ret)
{
    const struct cell *cell = items->cell;
    if (cell->words) return next_of_words(items, ret);
    if (items->index == cell->count) return false;
    const int64_t i = items->index++;
    const bool is_id = cell->ids != NULL;
    *ret = (struct item){.is_id = is_id, .is_pair = is_id && cell->numbers, .weight = 1};
    if (is_id) ret->id = cell->ids[i];
    if (cell->written) ret->written = &cell->written[i];
    if (cell->numbers) ret->number = cell->numbers[i];
    if (ret->is_pair) ret->weight = (float)cell->numbers[i];
    ret->has_weight = ret->is_pair;
    return true;
}

bool items_next(struct items *items, struct item *ret)
{
    return items->cell->text ? next_word(items, ret) : next_of_list(items, ret);
}

/* Mostly by decimal_plain; else from a NUL-terminated copy */
static bool word_number(const struct item *item, double *ret)
{
    char text[NUMBER_TEXT_MAX + 1];
    if (decimal_plain(item->text, item->length, ret)) return true;
    if (item->length > NUMBER_TEXT_MAX) return false;
    memcpy(text, item->text, item->length);
    text[item->length] = '\0';
    return cell_number(&(struct cell){.text = text, .length = item->length}, ret);
}

bool item_number(const struct item *item, double *ret)
{
    if (item->is_pair) return false;
    if (item->text) return word_number(item, ret);
    *ret = item->is_id ? (double)item->id : item->number;
    return isfinite(*ret);
}

/* For so few digits that 64 bits always suffice */
static bool short_digits(const struct item *item, int64_t *ret)
{
    *ret = 0;
    if (item->length == 0 || item->length > DIGITS_ALWAYS) return false;
    for (size_t i = 0; i < item->length; i++) {
        const unsigned digit = (unsigned char)item->text[i] - (unsigned)'0';
        if (digit > 9) return false;
        *ret = *ret * 10 + digit;
    }
    return true;
}

static bool word_integer(const struct item *item, int64_t *ret)
{
    bool is_negative;
    uint64_t size;
    if (short_digits(item, ret)) return true;
    if (item->length > NUMBER_TEXT_MAX ||
        !decimal_whole(item->text, item->length, &is_negative, &size))
        return false;
    if (size > (uint64_t)INT64_MAX + is_negative) return false;
    *ret = is_negative ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

bool item_integer(const struct item *item, int64_t *ret)
{
    *ret = item->id;
    if (item->is_id) return true;
    if (item->text) return word_integer(item, ret);
    if (!(fabs(item->number) < INTEGER_END) || item->number != floor(item->number)) return false;
    *ret = (int64_t)item->number;
    return true;
}

bool item_any_id(const struct item *item, int64_t *ret)
{
    bool is_negative;
    uint64_t size;
    if (item_integer(item, ret)) {
        if (*ret >= 0) *ret = id_of_64_bits((uint64_t)*ret);
        return true;
    }
    if (!item->text || item->length > NUMBER_TEXT_MAX ||
        !decimal_whole(item->text, item->length, &is_negative, &size) || is_negative)
        return false;
    *ret = id_of_64_bits(size);
    return true;
}

/* A float 0.1 is written so, not as 0.100000001; a whole number with all its digits. */
static int write_number(double number, char buffer[ITEM_TEXT_MAX])
{
    if (fabs(number) < INTEGER_END && number == floor(number))
        return snprintf(buffer, ITEM_TEXT_MAX, "%.0f", number);
    int length = 0;
    for (int digits = FLT_DIG; digits <= FLT_DECIMAL_DIG; digits++) {
        length = snprintf(buffer, ITEM_TEXT_MAX, "%.*g", digits, number);
        if (strtof(buffer, NULL) == (float)number) break;
    }
    return length;
}

const char *item_text(const struct item *item, char buffer[ITEM_TEXT_MAX], size_t *ret_length)
{
    *ret_length = item->length;
    if (item->text) return item->text;
    const int length = item->is_id ? snprintf(buffer, ITEM_TEXT_MAX, "%" PRId64, item->id)
                                   : write_number(item->number, buffer);
    *ret_length = (size_t)length;
    return buffer;
}

uint64_t item_fingerprint(const struct item *item)
{
    char buffer[ITEM_TEXT_MAX];
    size_t length;
    const char *text = item_text(item, buffer, &length);
    return fingerprint(text, length);
}
