/* batch.c - see batch.h. */
#include "core/graph/batch.h"

#include <string.h>

const char FEATURES_NAME[] = "features", LABELS_NAME[] = "labels";

int64_t column_width(const struct column *column)
{
    return shape_count(&column->shape);
}

size_t column_row_bytes(const struct column *column)
{
    return (size_t)column_width(column) * dtype_size(column->dtype);
}

int column_find(const struct column *columns, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(columns[i].name, name) == 0) return i;
    return -1;
}
