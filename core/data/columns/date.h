/* date.h - the attributes of a date column. */
#ifndef CORE_DATA_COLUMNS_DATE_H
#define CORE_DATA_COLUMNS_DATE_H

#include "core/data/columns/column.h"

enum date_part { DATE_HOUR, DATE_WEEKDAY, DATE_DAY, DATE_MONTH, DATE_SECONDS };

struct date_attributes {
    struct column_source source;
    int part;           /* enum date_part */
    const char *format; /* for strptime; NULL: ISO 8601, or seconds since 1970 */
    double scale, offset;
    json_t *fallback; /* borrowed from the spec */
};
extern const struct column_kind column_date;

bool date_is_in_milliseconds(const struct date_attributes *);
/* The id of a part of the time, in seconds since 1970; not for DATE_SECONDS */
int64_t date_id(int part, double seconds);
int64_t date_default(const struct date_attributes *); /* the id for a cell without a time; -1:
                                                         none */

#endif
