/* tf_times.c - parts of a time (hour, weekday, ...), with TensorFlow's ops on integers in float64,
 * which is exact. */
#include "cmd/export/saved_model.h"
#include "core/data/columns/date.h"

static struct tf_tensor whole(struct tf_graph *g, struct tf_tensor x, double by)
{
    return tf_one(g, "Floor", TF_DOUBLE, tf_with_double(g, "RealDiv", x, by));
}

static struct tf_tensor rest(struct tf_graph *g, struct tf_tensor x, double by)
{
    return tf_with_double(g, "FloorMod", x, by);
}

/* The day of the month, or the month, from 0, of days since 1970. Years begin in March here, so
 * that a leap day is the last one. */
static struct tf_tensor day_or_month(struct tf_graph *g, struct tf_tensor days, bool is_month)
{
    const struct tf_tensor of_era = rest(g, tf_with_double(g, "AddV2", days, 719468), 146097);
    struct tf_tensor x = tf_two(g, "Sub", TF_DOUBLE, of_era, whole(g, of_era, 1460));
    x = tf_two(g, "AddV2", TF_DOUBLE, x, whole(g, of_era, 36524));
    x = tf_two(g, "Sub", TF_DOUBLE, x, whole(g, of_era, 146096));
    const struct tf_tensor year = whole(g, x, 365);
    x = tf_two(g, "AddV2", TF_DOUBLE, tf_with_double(g, "Mul", year, 365), whole(g, year, 4));
    x = tf_two(g, "Sub", TF_DOUBLE, x, whole(g, year, 100));
    const struct tf_tensor of_year = tf_two(g, "Sub", TF_DOUBLE, of_era, x);
    x = tf_with_double(g, "AddV2", tf_with_double(g, "Mul", of_year, 5), 2);
    const struct tf_tensor month = whole(g, x, 153);
    if (is_month) return rest(g, tf_with_double(g, "AddV2", month, 2), 12);
    x = tf_with_double(g, "AddV2", tf_with_double(g, "Mul", month, 153), 2);
    return tf_two(g, "Sub", TF_DOUBLE, of_year, whole(g, x, 5));
}

struct tf_tensor tf_part_of_time(struct tf_graph *g, int part, struct tf_tensor seconds)
{
    const struct tf_tensor days = whole(g, seconds, 86400);
    struct tf_tensor x;
    if (part == DATE_HOUR)
        x = whole(g, rest(g, seconds, 86400), 3600);
    else if (part == DATE_WEEKDAY)
        x = rest(g, tf_with_double(g, "AddV2", days, 3), 7);
    else
        x = day_or_month(g, days, part == DATE_MONTH);
    return tf_cast(g, TF_DOUBLE, TF_INT64, x);
}
