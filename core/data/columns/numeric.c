/* numeric: one number, or a list of `max`: clipped at min, log1p, minus mean and divided by
 * deviation, times scale, plus offset. */
#include "core/data/columns/numeric.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/base/fingerprint.h"
#include "core/base/log.h"
#include "core/data/columns/decimal.h"
#include "core/data/said_once.h"

static const struct field fields[] = {
    SOURCE_FIELDS("null", "1"),
    FIELD_OF("min", JSON, struct numeric_attributes, min, .fallback = "null",
             .help = "clip values below this, before any other transform; null: no clipping"),
    FIELD_OF("log1p", BOOL, struct numeric_attributes, log1p, .fallback = "false",
             .help = "take log(1 + x), before scale and offset"),
    FIELD_OF("standardize", BOOL, struct numeric_attributes, standardize, .fallback = "false",
             .help = "subtract the training data's mean and divide by their standard deviation, "
                     "number by number, after log1p; both are kept beside the run's checkpoints"),
    FIELD_OF("mean", FLOATS, struct numeric_attributes, mean, .fallback = "[]", .min = -1e38,
             .max = 1e38,
             .help = "one per number, to standardize by; none: measured from the training data"),
    FIELD_OF("deviation", FLOATS, struct numeric_attributes, deviation, .fallback = "[]",
             .min = 1e-38, .max = 1e38,
             .help = "one per number, to standardize by; none: measured from the training data"),
    FIELD_OF("scale", FLOAT, struct numeric_attributes, scale, .fallback = "1", .min = -1e30,
             .max = 1e30, .help = "x = scale * x + offset"),
    FIELD_OF("offset", FLOAT, struct numeric_attributes, offset, .fallback = "0", .min = -1e30,
             .max = 1e30, .help = "x = scale * x + offset"),
    FIELD_OF(
        "padding", JSON, struct numeric_attributes, padding, .fallback = "null",
        .help =
            "padding of lists shorter than max, used as it is; null: shorter lists are an error"),
    FIELD_OF("default", JSON, struct numeric_attributes, fallback, .fallback = "null",
             .help =
                 "value used for each number of an empty cell, before any transform; mean: that of "
                 "the numbers that standardize has measured; null: an empty cell is an error"),
    {0},
};

static bool is_number_or_null(const json_t *json)
{
    if (!json || json_is_null(json)) return true;
    return json_is_number(json) && fabs(json_number_value(json)) <= FLT_MAX;
}

bool numeric_default_is_mean(const struct numeric_attributes *a)
{
    return json_is_string(a->fallback) && strcmp(json_string_value(a->fallback), "mean") == 0;
}

bool numeric_default(const struct numeric_attributes *a, double *ret)
{
    const double mean = a->mean.count > 0 ? a->mean.at[0] : 0;
    const bool is_mean = numeric_default_is_mean(a);
    *ret = !is_mean ? json_number_value(a->fallback) : a->log1p ? expm1(mean) : mean;
    return is_mean || json_is_number(a->fallback);
}

static err check_default(const struct numeric_attributes *a)
{
    if (is_number_or_null(a->fallback)) return OK;
    if (!numeric_default_is_mean(a))
        return fields_fail_expected("default", "a number of at most 3.4e38, \"mean\" or null",
                                    a->fallback);
    if (a->standardize && a->source.max == 1) return OK;
    return fail(ERR_INPUT, "default: \"mean\" is of one number that is standardized");
}

/* Mean and deviation are set before columns are opened (core/data/stats/standardize.h). */
static err check_standard(const struct numeric_attributes *a)
{
    const int count = a->standardize ? (int)a->source.max : 0;
    if (a->mean.count == count && a->deviation.count == count) return OK;
    if (!a->standardize) return fail(ERR_INPUT, "mean and deviation: for standardize only");
    return fail(ERR_INPUT, "mean and deviation: expected %d numbers each (\"max\"), got %d and %d",
                count, a->mean.count, a->deviation.count);
}

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct numeric_attributes *a = m->attributes;
    TRY(check_default(a));
    if (!is_number_or_null(a->padding))
        return fields_fail_expected("padding", "a number of at most 3.4e38, or null", a->padding);
    if (!is_number_or_null(a->min))
        return fields_fail_expected("min", "a number of at most 3.4e38, or null", a->min);
    TRY(check_standard(a));
    m->made.dtype = FLOAT32;
    m->made.shape = (struct shape){1, {a->source.max}};
    return OK;
}

/* In double, so that there is only one rounding: a time in seconds has more digits than a float.
 * index: of the number in the cell. */
static err standardized(const struct numeric_attributes *a, double x, int64_t index, double *ret)
{
    if (json_is_number(a->min) && x < json_number_value(a->min)) x = json_number_value(a->min);
    if (a->log1p && !(x > -1))
        return fail(ERR_INPUT, "expected a number above -1 for log1p, got %.9g", x);
    if (a->log1p) x = log1p(x);
    *ret = a->standardize ? (x - a->mean.at[index]) / a->deviation.at[index] : x;
    return OK;
}

static err change(const struct numeric_attributes *a, double x, int64_t index, double *ret)
{
    TRY(standardized(a, x, index, &x));
    *ret = a->scale * x + a->offset;
    return isfinite((float)*ret) ? OK : fail(ERR_INPUT, "%.9g is too large", x);
}

/* Warns about a default far from the mean, such as 0 for an age, since a model would learn from it.
 */
static void warn_far(const struct column_maker *m, double fallback)
{
    enum { FAR = 2 };
    const struct numeric_attributes *a = m->attributes;
    double off;
    if (!m->is_trained_on || !a->standardize || a->source.max > 1) return;
    if (standardized(a, fallback, 0, &off) || !(fabs(off) > FAR) ||
        !said_first(SAID_FAR_DEFAULT, fingerprint(m->name, strlen(m->name))))
        return;
    log_line(
        LOG_WARNING,
        "column \"%s\": a row without a value counts as %g (\"default\"), %.1f standard deviations "
        "from the mean: \"default\": \"mean\" would be neutral",
        m->name, fallback, fabs(off));
}

static err stand_in(struct column_maker *m, double *to)
{
    const struct numeric_attributes *a = m->attributes;
    double fallback;
    if (!numeric_default(a, &fallback))
        return fail(ERR_INPUT,
                    "expected a number (\"default\" says what stands for none), got none");
    if (m->missing++ == 0) warn_far(m, fallback);
    for (int64_t i = 0; i < a->source.max; i++) TRY(change(a, fallback, i, &to[i]));
    return OK;
}

/* Pads after the first `count` numbers. false: there is no padding, so fewer numbers are an error.
 */
static bool pad(const struct numeric_attributes *a, double *to, int64_t count)
{
    if (!json_is_number(a->padding)) return false;
    for (int64_t i = count; i < a->source.max; i++) to[i] = json_number_value(a->padding);
    return true;
}

static err refuse(const struct item *item)
{
    const struct cell cell = {.text = item->text, .length = item->length};
    const bool is_missing = item->text && cell_is_missing(&cell);
    return item_refuse(item, is_missing ? "a number (\"missing\" of the source lists words that "
                                          "stand for none)"
                                        : "a number");
}

err numeric_read(struct column_maker *m, const struct cell *cells, double *to)
{
    const struct numeric_attributes *a = m->attributes;
    const int64_t max = a->source.max;
    const int truncate = a->source.truncate;
    struct items items = column_items(m, cells);
    struct item item;
    double number;
    int64_t count = 0;
    for (; (count < max || truncate != TRUNCATE_FIRST) && items_next(&items, &item); count++) {
        if (!item_number(&item, &number)) return refuse(&item);
        if (count < max || truncate == TRUNCATE_LAST) to[count % max] = number;
    }
    if (count == 0 && !json_is_number(a->padding)) return stand_in(m, to);
    if ((count < max && !pad(a, to, count)) || (count > max && truncate == TRUNCATE_NONE))
        return fail(ERR_INPUT, "expected %lld numbers (\"max\"), got %lld", (long long)max,
                    (long long)count);
    if (count > max) column_turn(to, sizeof *to, max, count % max);
    for (int64_t i = 0; i < max && i < count; i++) TRY(change(a, to[i], i, &to[i]));
    return OK;
}

/* The common case that the cell is one plain number; same result as by items */
static bool is_plain(const struct numeric_attributes *a, const struct cell *cell, double *ret)
{
    return a->source.max == 1 && cell_is_word(cell, a->source.separator) &&
           decimal_plain(cell->text, cell->length, ret);
}

static err make_row(struct column_maker *m, const struct cell *cells, float *to)
{
    const struct numeric_attributes *a = m->attributes;
    double row[IDS_OF_ROW_MAX]; /* only the first `max` are used */
    TRY(numeric_read(m, cells, row));
    for (int64_t i = 0; i < a->source.max; i++) to[i] = (float)row[i];
    return OK;
}

static err make(struct column_maker *m, const struct cell *cells, void *ret)
{
    double x;
    if (!is_plain(m->attributes, &cells[m->cell], &x)) return make_row(m, cells, ret);
    TRY(change(m->attributes, x, 0, &x));
    *(float *)ret = (float)x;
    return OK;
}

const struct column_kind column_numeric = {
    .object = {"numeric", "numbers, scaled", fields, sizeof(struct numeric_attributes)},
    .open = open,
    .make = make,
};
