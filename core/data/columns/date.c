/* date: a part of a time: hour, weekday and so on as an id, or its seconds as a number. Times are
 * written in ISO 8601, in "format", or as seconds or milliseconds since 1970. */
#include "core/data/columns/date.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DATE_TEXT_MAX = 64, SECONDS_OF_DAY = 86400 };

static const double YEAR_9999_END = 253402300800; /* seconds since 1970 */
static const char in_milliseconds[] = "milliseconds";

static const char *const parts[] = {
    [DATE_HOUR] = "hour",   [DATE_WEEKDAY] = "weekday", [DATE_DAY] = "day",
    [DATE_MONTH] = "month", [DATE_SECONDS] = "seconds", NULL};
static const int64_t ids_of_part[] = {
    [DATE_HOUR] = 24, [DATE_WEEKDAY] = 7, [DATE_DAY] = 31, [DATE_MONTH] = 12};

static const struct field fields[] = {
    SOURCE_FIELDS("null", "1"),
    FIELD_OF("part", ENUM, struct date_attributes, part, .choices = parts,
             .help = "hour (24 ids), weekday (7, the first is Monday), day of the month (31) and "
                     "month (12) are ids from 0; seconds since 1970 are a number"),
    FIELD_OF(
        "format", STRING, struct date_attributes, format, .fallback = "null",
        .help = "format of the cell for strptime, as in %d.%m.%Y %H:%M; null: ISO 8601, 2026-03-31 "
                "with an optional time behind a space or T and an optional Z or offset such as "
                "+02:00, or a number of seconds since 1970; milliseconds: a number of those"),
    FIELD_OF("scale", FLOAT, struct date_attributes, scale, .fallback = "1", .min = -1e30,
             .max = 1e30, .help = "of seconds: x = scale * x + offset, in double"),
    FIELD_OF("offset", FLOAT, struct date_attributes, offset, .fallback = "0", .min = -1e30,
             .max = 1e30, .help = "of seconds: x = scale * x + offset, in double"),
    FIELD_OF("default", JSON, struct date_attributes, fallback, .fallback = "null",
             .help = "seconds since 1970 for empty cells; null: such a cell has no id, and is an "
                     "error where seconds are wanted"),
    {0},
};

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct date_attributes *a = m->attributes;
    (void)context;
    if (a->source.max != 1) return fail(ERR_INPUT, "max: expected 1, a row has one time");
    if (a->fallback && !json_is_null(a->fallback) && !json_is_number(a->fallback))
        return fields_fail_expected("default", "a number or null", a->fallback);
    if (a->part != DATE_SECONDS && json_is_number(a->fallback) &&
        !(fabs(json_number_value(a->fallback)) < YEAR_9999_END))
        return fail(ERR_INPUT, "default: expected seconds since 1970, before the year 10000");
    if (a->part != DATE_SECONDS && (a->scale != 1 || a->offset != 0))
        return fail(ERR_INPUT, "scale and offset: for seconds only");
    if (a->part != DATE_SECONDS) {
        column_makes_ids(m, 1, ids_of_part[a->part]);
        m->stand_in = date_default(a);
        return OK;
    }
    m->made.dtype = FLOAT32;
    m->made.shape = (struct shape){1, {1}};
    return OK;
}

/* ---- reading ---- */

/* False also for days that the month does not have, which timegm would move to the next month. */
static bool seconds_of(struct tm *time, double *ret)
{
    const struct tm given = *time;
    if (given.tm_hour > 23 || given.tm_min > 59 || given.tm_sec > 60) return false;
    time->tm_sec = 0; /* else a leap second would change the day */
    *ret = (double)timegm(time) + given.tm_sec;
    return given.tm_mday >= 1 && time->tm_mday == given.tm_mday && time->tm_mon == given.tm_mon;
}

/* Reads at most this many digits; false: none */
static bool read_digits(const char **at, int most, int *ret)
{
    int count = 0;
    for (*ret = 0; count < most && **at >= '0' && **at <= '9'; count++, ++*at)
        *ret = 10 * *ret + (**at - '0');
    return count > 0;
}

/* Skips blanks first, as strptime does */
static bool read_part(const char **at, int most, int *ret)
{
    while (**at == ' ') ++*at;
    return read_digits(at, most, ret);
}

static bool read_sign(const char **at, char sign)
{
    if (**at != sign) return false;
    ++*at;
    return true;
}

/* "Z", "+02:00", "-0530", "+02" or nothing, up to the end of the text */
static bool read_zone(const char *at, double *seconds)
{
    int hours = 0, minutes = 0;
    while (*at == ' ') at++;
    if (*at == 0 || strcmp(at, "Z") == 0 || strcmp(at, "UTC") == 0) return true;
    const char sign = *at++;
    if ((sign != '+' && sign != '-') || !read_digits(&at, 2, &hours)) return false;
    const bool has_colon = read_sign(&at, ':');
    if ((has_colon || *at) && !read_digits(&at, 2, &minutes)) return false;
    *seconds -= (sign == '-' ? -1 : 1) * (hours * 3600.0 + minutes * 60.0);
    return !*at && hours < 24 && minutes < 60;
}

/* Reads a fraction of a second */
static const char *read_fraction(const char *at, double *ret)
{
    double digit = 0.1;
    if (*at != '.' && *at != ',') return at;
    for (at++; *at >= '0' && *at <= '9'; at++, digit /= 10) *ret += (*at - '0') * digit;
    return at;
}

/* Exported code must do the same: iso_of() in cmd/export. */
static bool read_iso(const char *at, double *ret)
{
    struct tm time = {0};
    int year;
    double fraction = 0;
    if (!read_part(&at, 4, &year) || (*at != '-' && *at != '/')) return false;
    const char between = *at++;
    if (!read_part(&at, 2, &time.tm_mon) || !read_sign(&at, between) ||
        !read_part(&at, 2, &time.tm_mday))
        return false;
    time.tm_year = year - 1900;
    time.tm_mon--;
    const char *clock = *at == 'T' || *at == ' ' ? at + 1 : "";
    if (read_part(&clock, 2, &time.tm_hour)) {
        at = clock;
        if (!read_sign(&at, ':') || !read_part(&at, 2, &time.tm_min)) return false;
        if (read_sign(&at, ':')) {
            if (!read_part(&at, 2, &time.tm_sec)) return false;
            at = read_fraction(at, &fraction);
        }
    }
    if (!seconds_of(&time, ret)) return false;
    *ret += fraction;
    return read_zone(at, ret);
}

static bool read_as(const char *format, const char *text, double *ret)
{
    struct tm time = {.tm_mday = 1};
    const char *end = strptime(text, format, &time);
    const long offset = time.tm_gmtoff; /* of %z */
    if (!end || *end || !seconds_of(&time, ret)) return false;
    *ret -= (double)offset;
    return true;
}

/* Such as 20260331; number must fit into int64_t */
static bool is_day_in_digits(double number)
{
    const int64_t day = (int64_t)number, month = day / 100 % 100;
    return number == (double)day && day >= 19000101 && day <= 21001231 && month >= 1 &&
           month <= 12 && day % 100 >= 1 && day % 100 <= 31;
}

/* Refuses numbers that are unlikely to be seconds since 1970. */
static err check_seconds(double seconds)
{
    if (!(fabs(seconds) < YEAR_9999_END))
        return fail(ERR_INPUT,
                    "%.*g seconds since 1970 are no time before the year 10000: \"format\": "
                    "\"milliseconds\" reads a thousand of them as a second",
                    fabs(seconds) < 1e15 ? 15 : 9, seconds);
    if (is_day_in_digits(seconds))
        return fail(ERR_INPUT,
                    "%.0f looks like a day: \"format\": \"%%Y%%m%%d\" reads it so, \"%%s\" as "
                    "seconds since 1970",
                    seconds);
    return OK;
}

static err read_milliseconds(const struct item *item, double *ret)
{
    double number;
    if (!item_number(item, &number) || !(fabs(number / 1000) < YEAR_9999_END))
        return item_refuse(item, "milliseconds since 1970, before the year 10000");
    *ret = number / 1000;
    return OK;
}

bool date_is_in_milliseconds(const struct date_attributes *a)
{
    return a->format && strcmp(a->format, in_milliseconds) == 0;
}

static err read_time(const struct date_attributes *a, const struct item *item, double *ret)
{
    char text[DATE_TEXT_MAX];
    const bool fits = item->text && item->length < sizeof text;
    if (fits) {
        memcpy(text, item->text, item->length);
        text[item->length] = '\0';
    }
    if (date_is_in_milliseconds(a)) return read_milliseconds(item, ret);
    if (fits && a->format && read_as(a->format, text, ret)) return OK;
    if (fits && !a->format && read_iso(text, ret)) return OK;
    if (!a->format && item_number(item, ret) && isfinite(*ret)) return check_seconds(*ret);
    if (a->format) {
        snprintf(text, sizeof text, "a time as \"%.40s\"", a->format);
        return item_refuse(item, text);
    }
    return item_refuse(item, "a time such as 2026-03-31 or 2026-03-31 23:59:59, or seconds since "
                             "1970 (\"format\" says how else it is written)");
}

/* ---- making ---- */

int64_t date_id(int part, double seconds)
{
    const double day = floor(seconds / SECONDS_OF_DAY);
    const time_t whole = (time_t)floor(seconds);
    struct tm time;
    if (part == DATE_HOUR) return (int64_t)((seconds - day * SECONDS_OF_DAY) / 3600);
    if (!gmtime_r(&whole, &time)) return NO_ID;
    return part == DATE_WEEKDAY ? (time.tm_wday + 6) % 7
           : part == DATE_DAY   ? time.tm_mday - 1
                                : time.tm_mon;
}

int64_t date_default(const struct date_attributes *a)
{
    return json_is_number(a->fallback) ? date_id(a->part, json_number_value(a->fallback)) : NO_ID;
}

static err key(const struct column_maker *m, struct item *item, int64_t *ret)
{
    const struct date_attributes *a = m->attributes;
    double seconds = 0;
    TRY(read_time(a, item, &seconds));
    *ret = date_id(a->part, seconds);
    return OK;
}

static err make(struct column_maker *m, const struct cell *cells, void *to)
{
    const struct date_attributes *a = m->attributes;
    struct items items = column_items(m, cells);
    struct item item;
    double seconds = 0;
    const bool is_there = items_next(&items, &item);
    const bool has_time = is_there || json_is_number(a->fallback);
    m->missing += !is_there;
    if (is_there)
        TRY(read_time(a, &item, &seconds));
    else if (has_time)
        seconds = json_number_value(a->fallback);
    if (a->part != DATE_SECONDS) {
        *(int64_t *)to = has_time ? date_id(a->part, seconds) : NO_ID;
        return OK;
    }
    if (!has_time)
        return fail(ERR_INPUT, "expected a time (\"default\" says what stands for none), got none");
    const float number = (float)(a->scale * seconds + a->offset);
    if (!isfinite(number)) return fail(ERR_INPUT, "%.9g seconds are too large", seconds);
    *(float *)to = number;
    return OK;
}

const struct column_kind column_date = {
    .object = {"date", "a part of a time: hour, weekday, day, month as ids, or its seconds", fields,
               sizeof(struct date_attributes)},
    .open = open,
    .make = make,
    .key = key,
};
