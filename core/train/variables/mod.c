/* mod.c - see mod.h. */
#include "core/train/variables/mod.h"

#include "core/train/variables/place.h"

int64_t mod_row_of_id(int64_t rows, int64_t parts, int64_t id)
{
    return parts > 1 ? partition_start(rows, parts, id % parts) + id / parts : id;
}

int64_t mod_id_of_row(int64_t rows, int64_t parts, int64_t row)
{
    if (parts <= 1) return row;
    const int64_t length = rows / parts, longer = rows % parts; /* parts that have one row more */
    const int64_t left = row - longer * (length + 1);
    if (left < 0) return row % (length + 1) * parts + row / (length + 1);
    return left % length * parts + longer + left / length;
}
