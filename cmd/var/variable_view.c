/* variable_view.c - see variable_view.h. Answers come over a network: nothing in them is believed.
 */
#include "cmd/var/variable_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_TEXT_MAX = 32 };

enum target_kind variable_view_kind(json_t *answer)
{
    const char *name = json_string_value(json_object_get(answer, "kind"));
    for (enum target_kind kind = TARGET_TRAINED; name && kind <= TARGET_STEP; kind++)
        if (strcmp(name, target_kind_name(kind)) == 0) return kind;
    return TARGET_NONE;
}

err variable_view_shape(json_t *list, struct shape *ret)
{
    struct shape shape = {.rank = (int)json_array_size(list)};
    if (!json_is_array(list) || json_array_size(list) > RANK_MAX)
        return fail(ERR_PROTOCOL, "an answer without a shape");
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = json_integer_value(json_array_get(list, (size_t)i));
    if (shape.rank && shape_check(&shape)) return fail_prefix(ERR_PROTOCOL, "an answer");
    *ret = shape;
    return OK;
}

/* NaN and infinities come as strings. */
static double number(json_t *json)
{
    if (json_is_number(json)) return json_number_value(json);
    const char *text = json_string_value(json);
    if (text && strcmp(text, "inf") == 0) return INFINITY;
    if (text && strcmp(text, "-inf") == 0) return -INFINITY;
    return NAN;
}

/* The shape becomes that of the rows that the answer is about. */
static err read_rows(json_t *answer, struct variable_view *seen)
{
    json_int_t first, rows;
    if (seen->shape.rank != 2 ||
        json_unpack(answer, "{sI sI}", "first_row", &first, "rows", &rows) || first < 0 ||
        rows < 1 || first > seen->shape.dim[0] - rows)
        return fail(ERR_PROTOCOL, "an answer without rows");
    seen->first_row = first;
    seen->table_rows = seen->shape.dim[0];
    seen->shape.dim[0] = rows;
    return OK;
}

err variable_view_open(json_t *answer, const struct selection *selection, struct variable_view *ret)
{
    struct variable_view seen = {.kind = variable_view_kind(answer)};
    const bool is_one = selection->index_count && !selection->rows;
    TRY(variable_view_shape(json_object_get(answer, "shape"), &seen.shape));
    if (seen.kind == TARGET_TABLE) TRY(read_rows(answer, &seen));
    seen.is_element = is_one && seen.kind != TARGET_TABLE;
    seen.is_row = is_one && seen.kind == TARGET_TABLE;
    seen.count = seen.is_element ? 1 : shape_count(&seen.shape);
    seen.is_large = seen.count > VISIT_ELEMENTS_MAX;
    if (!seen.is_large) {
        seen.values = calloc((size_t)seen.count, sizeof *seen.values);
        seen.is_known = calloc((size_t)seen.count, sizeof *seen.is_known);
        if (!seen.values || !seen.is_known) {
            variable_view_close(&seen);
            return fail(ERR_MEMORY, "no memory for %lld numbers", (long long)seen.count);
        }
    }
    *ret = seen;
    return OK;
}

void variable_view_close(struct variable_view *seen)
{
    free(seen->values);
    free(seen->is_known);
    *seen = (struct variable_view){0};
}

static void put(struct variable_view *seen, int64_t at, double x)
{
    seen->values[at] = x;
    if (!seen->is_known[at]) seen->known++;
    seen->is_known[at] = true;
}

/* Where along which axis a part lies. */
struct axis_place {
    int64_t start, length, rows, inner;
};

static err read_place(const struct variable_view *seen, json_t *part, int axis,
                      struct axis_place *ret)
{
    json_int_t start = 0, length = 0;
    const struct shape *shape = &seen->shape;
    int64_t axis_length = shape->rank ? shape->dim[axis] : 1;
    const int none = json_unpack(part, "{sI sI}", "start", &start, "length", &length);
    if (none || start < seen->first_row)
        return fail(ERR_PROTOCOL, "an answer with an invalid part");
    start -= seen->first_row;
    if (length < 1 || start >= axis_length || length > axis_length - start)
        return fail(ERR_PROTOCOL, "an answer with an invalid part");
    struct axis_place place = {.start = start, .length = length, .rows = 1, .inner = 1};
    for (int i = 0; i < axis; i++) place.rows *= shape->dim[i];
    if (shape->rank) place.inner = shape_count_from(shape, axis + 1);
    *ret = place;
    return OK;
}

static err add_part(struct variable_view *seen, json_t *part, int axis)
{
    struct axis_place place = {0};
    json_t *values = json_object_get(part, "values");
    TRY(read_place(seen, part, axis, &place));
    int64_t run = place.length * place.inner;
    int64_t count = seen->is_element ? 1 : place.rows * run;
    if (json_array_size(values) != (size_t)count)
        return fail(ERR_PROTOCOL, "an answer with %zu values where a part has %lld",
                    json_array_size(values), (long long)count);
    if (seen->is_element) {
        put(seen, 0, number(json_array_get(values, 0)));
        return OK;
    }
    int64_t stride = seen->shape.rank ? seen->shape.dim[axis] * place.inner : 1;
    for (int64_t i = 0; i < count; i++)
        put(seen, i / run * stride + place.start * place.inner + i % run,
            number(json_array_get(values, (size_t)i)));
    return OK;
}

static err add_summary(struct variable_view *seen, json_t *json)
{
    struct variable_summary *s = &seen->summary;
    json_t *first = json_object_get(json, "first");
    json_int_t finite = json_integer_value(json_object_get(json, "finite"));
    if (!json_is_object(json)) return fail(ERR_PROTOCOL, "an answer without values");
    if (finite > 0) {
        double minimum = number(json_object_get(json, "minimum"));
        double maximum = number(json_object_get(json, "maximum"));
        s->minimum = s->finite ? fmin(s->minimum, minimum) : minimum;
        s->maximum = s->finite ? fmax(s->maximum, maximum) : maximum;
        s->sum += number(json_object_get(json, "sum"));
        s->sum_squares += number(json_object_get(json, "sum_squares"));
        s->finite += finite;
    }
    for (size_t i = 0; i < json_array_size(first) && s->first_count < VISIT_FIRST_MAX; i++)
        s->first[s->first_count++] = number(json_array_get(first, i));
    return OK;
}

err variable_view_add(struct variable_view *seen, json_t *answer)
{
    struct shape shape;
    TRY(variable_view_shape(json_object_get(answer, "shape"), &shape));
    if (seen->kind == TARGET_TABLE && shape.rank && shape.dim[0] == seen->table_rows)
        shape.dim[0] = seen->shape.dim[0];
    if (!shape_equal(&shape, &seen->shape))
        return fail(ERR_PEER, "two ps know variables of this name with other shapes");
    if (seen->is_large) return add_summary(seen, json_object_get(answer, "summary"));
    json_t *parts = json_object_get(answer, "parts"), *part;
    json_int_t axis = json_integer_value(json_object_get(answer, "axis"));
    if (!json_is_array(parts) || axis < 0 || (axis && axis >= shape.rank))
        return fail(ERR_PROTOCOL, "an answer without values");
    size_t i;
    json_array_foreach(parts, i, part) TRY(add_part(seen, part, (int)axis));
    return OK;
}

err variable_view_check(const struct variable_view *seen)
{
    if (seen->is_large || seen->known == seen->count) return OK;
    return fail(ERR_PEER, "%lld of %lld elements are missing: a ps lacks its part",
                (long long)(seen->count - seen->known), (long long)seen->count);
}

/* ---- text ---- */

/* As few digits as give the same number again: of a double, or of a float32. */
static void print_number(FILE *out, double x, bool is_float)
{
    char text[NUMBER_TEXT_MAX];
    int digits_max = is_float ? 9 : 17;
    for (int digits = is_float ? 6 : 15; digits <= digits_max; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (is_float ? strtof(text, NULL) == (float)x : strtod(text, NULL) == x) break;
    }
    fputs(text, out);
}

/* Trained are float32, which others need more digits than. */
static bool is_trained(const struct variable_view *seen)
{
    return seen->kind == TARGET_TRAINED || seen->kind == TARGET_TABLE;
}

/* What is below one axis; returns the first value after it. */
static const double *print_axis(FILE *out, const struct variable_view *seen, int axis,
                                const double *at)
{
    if (axis == seen->shape.rank) {
        print_number(out, *at, is_trained(seen));
        return at + 1;
    }
    putc('[', out);
    for (int64_t i = 0; i < seen->shape.dim[axis]; i++) {
        if (i) fputs(", ", out);
        at = print_axis(out, seen, axis + 1, at);
    }
    putc(']', out);
    return at;
}

static void print_summary(FILE *out, const struct variable_view *seen)
{
    const struct variable_summary *s = &seen->summary;
    char shape[SHAPE_TEXT_MAX];
    bool is_float = is_trained(seen);
    double count = (double)s->finite, mean = s->finite ? s->sum / count : 0;
    double variance = s->finite ? fmax(0, s->sum_squares / count - mean * mean) : 0;
    fprintf(out, "%s, %lld elements", shape_text(&seen->shape, shape), (long long)seen->count);
    if (s->finite < seen->count)
        fprintf(out, ", %lld not finite", (long long)(seen->count - s->finite));
    if (s->finite)
        fprintf(out, ", minimum %.6g, maximum %.6g, mean %.6g, deviation %.6g", s->minimum,
                s->maximum, mean, sqrt(variance));
    fputs(", first", out);
    for (int i = 0; i < s->first_count; i++) {
        putc(' ', out);
        print_number(out, s->first[i], is_float);
    }
    fputs(" ...", out);
}

char *variable_view_text(const struct variable_view *seen)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    if (seen->is_large)
        print_summary(out, seen);
    else if (seen->is_element)
        print_number(out, seen->values[0], is_trained(seen));
    else
        print_axis(out, seen, seen->is_row ? 1 : 0, seen->values);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}
