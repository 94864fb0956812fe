/* date.h - what the spec says of a date column. */
#ifndef CORE_DATA_COLUMNS_DATE_H
#define CORE_DATA_COLUMNS_DATE_H

#include "core/data/columns/column.h"

enum date_part { DATE_HOUR, DATE_WEEKDAY, DATE_DAY, DATE_MONTH, DATE_SECONDS };

struct date_attributes {
    struct column_source source;
    int part;           /* enum date_part */
    const char *format; /* of strptime; NULL: ISO 8601, or seconds since 1970 */
    double scale, offset;
    json_t *fallback; /* borrowed from the spec */
};
extern const struct column_kind column_date;

bool date_is_in_milliseconds(const struct date_attributes *);
/* Of seconds since 1970: the id of a part that is one */
int64_t date_id(int part, double seconds);
int64_t date_default(const struct date_attributes *); /* of a cell without a time; -1: none */

#endif
