/* show.c - `dtrain checkpoint show CKPT [NAME]`: what is in a checkpoint. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/checkpoint/checkpoint.h"
#include "cmd/json_print.h"

enum { SHARDS_TEXT_MAX = 64, SHARDS_SHOWN_MAX = 8, VALUES_SHOWN_MAX = 10, SLICES_SHOWN_MAX = 1000 };

/* ---- all tensors ---- */

/* "1", or for a sliced tensor "0 1 2", shortened */
static const char *shards_text(const struct bundle *bundle, const struct bundle_entry *entry,
                               char text[SHARDS_TEXT_MAX])
{
    int length = snprintf(text, SHARDS_TEXT_MAX, "%d", bundle_place(bundle, entry, 0).shard);
    for (int i = 1; i < entry->slice_count && i < SHARDS_SHOWN_MAX; i++)
        length += snprintf(text + length, SHARDS_TEXT_MAX - (size_t)length, " %d",
                           bundle_place(bundle, entry, i).shard);
    if (entry->slice_count > SHARDS_SHOWN_MAX)
        snprintf(text + length, SHARDS_TEXT_MAX - (size_t)length, " ...");
    return text;
}

static int wider(int width, const char *text)
{
    const int length = (int)strlen(text);
    return length > width ? length : width;
}

/* Two passes: the first finds the width of each column. */
static void print_all(const struct bundle *bundle)
{
    char shape[TENSOR_SHAPE_TEXT_MAX], shards[SHARDS_TEXT_MAX];
    int name = (int)strlen("tensor"), type = (int)strlen("type"), dims = (int)strlen("shape");
    for (int i = 0; i < bundle_entries(bundle); i++) {
        const struct bundle_entry *entry = bundle_at(bundle, i);
        name = wider(name, entry->name);
        type = wider(type, bundle_dtype_name(entry->dtype));
        dims = wider(dims, checkpoint_shape_text(&entry->shape, shape));
    }
    printf("%-*s  %-*s  %-*s  slices  shard\n", name, "tensor", type, "type", dims, "shape");
    for (int i = 0; i < bundle_entries(bundle); i++) {
        const struct bundle_entry *entry = bundle_at(bundle, i);
        printf("%-*s  %-*s  %-*s  %6d  %s\n", name, entry->name, type,
               bundle_dtype_name(entry->dtype), dims, checkpoint_shape_text(&entry->shape, shape),
               entry->slice_count ? entry->slice_count : 1, shards_text(bundle, entry, shards));
    }
}

static json_t *tensor_json(const struct bundle *bundle, const struct bundle_entry *entry)
{
    json_t *shards = json_array();
    for (int i = 0; i < (entry->slice_count ? entry->slice_count : 1); i++)
        json_array_append_new(shards, json_integer(bundle_place(bundle, entry, i).shard));
    return json_pack("{ss ss so so}", "name", entry->name, "type", bundle_dtype_name(entry->dtype),
                     "shape", checkpoint_shape_json(&entry->shape), "shards", shards);
}

static err print_all_json(const struct bundle *bundle)
{
    json_t *tensors = json_array();
    for (int i = 0; i < bundle_entries(bundle); i++)
        json_array_append_new(tensors, tensor_json(bundle, bundle_at(bundle, i)));
    return json_print(
        json_pack("{ss so}", "checkpoint", bundle_prefix(bundle), "tensors", tensors));
}

/* ---- one tensor ---- */

struct statistics {
    int64_t finite, zeros, not_finite;
    double least, largest, mean, deviation; /* of finite elements */
};

/* Welford's algorithm, since a sum of squares would lose precision. */
static struct statistics measure(const struct elements *elements, int dtype)
{
    struct statistics s = {.least = INFINITY, .largest = -INFINITY};
    double squares = 0;
    for (int64_t i = 0; i < elements->count; i++) {
        const double x = checkpoint_number(elements, dtype, i);
        if (!isfinite(x)) {
            s.not_finite++;
            continue;
        }
        const double from_mean = x - s.mean;
        s.finite++;
        s.zeros += x == 0;
        s.least = fmin(s.least, x);
        s.largest = fmax(s.largest, x);
        s.mean += from_mean / (double)s.finite;
        squares += from_mean * (x - s.mean);
    }
    if (s.finite > 0) s.deviation = sqrt(squares / (double)s.finite);
    return s;
}

/* One line per stored slice: where its bytes are, and which elements of each axis they hold. */
static void print_place(const struct bundle *bundle, const struct bundle_entry *entry, int slice)
{
    const struct bundle_place place = bundle_place(bundle, entry, slice);
    printf("stored in shard %d at byte %lld, %lld bytes", place.shard, (long long)place.offset,
           (long long)place.bytes);
    for (int axis = 0; entry->slice_count && axis < entry->shape.rank; axis++)
        printf("%s%lld to %lld", axis ? ", " : ": elements ", (long long)place.box.start[axis],
               (long long)(place.box.start[axis] + place.box.length[axis] - 1));
    puts("");
}

static void print_values(const struct elements *elements, int dtype)
{
    const struct statistics s = measure(elements, dtype);
    printf("%lld elements, %lld zero, %lld not finite\n", (long long)elements->count,
           (long long)s.zeros, (long long)s.not_finite);
    if (s.finite)
        printf("from %.9g to %.9g, mean %.9g, standard deviation %.9g\n", s.least, s.largest,
               s.mean, s.deviation);
    if (!elements->count) return;
    printf("first values:");
    for (int64_t i = 0; i < elements->count && i < VALUES_SHOWN_MAX; i++) {
        if (dtype == BUNDLE_INT64) /* without rounding to double */
            printf(" %lld", (long long)((const int64_t *)elements->at)[i]);
        else
            printf(" %.9g", checkpoint_number(elements, dtype, i));
    }
    puts(elements->count > VALUES_SHOWN_MAX ? " ..." : "");
}

/* First prints what is known without reading the data, which may be damaged. */
static err print_one(struct bundle *bundle, const char *name)
{
    char shape[TENSOR_SHAPE_TEXT_MAX];
    const struct bundle_entry *entry;
    struct elements elements;
    TRY(checkpoint_find_tensor(bundle, name, &entry));
    printf("%s: %s %s\n", entry->name, bundle_dtype_name(entry->dtype),
           checkpoint_shape_text(&entry->shape, shape));
    const int slices = entry->slice_count ? entry->slice_count : 1;
    for (int i = 0; i < slices && i < SLICES_SHOWN_MAX; i++) print_place(bundle, entry, i);
    if (slices > SLICES_SHOWN_MAX) printf("... %d slices\n", slices);
    TRY(checkpoint_elements(bundle, entry, NULL, &elements));
    print_values(&elements, entry->dtype);
    free(elements.at);
    return OK;
}

static err print_one_json(struct bundle *bundle, const char *name)
{
    const struct bundle_entry *entry;
    struct elements elements;
    TRY(checkpoint_find_tensor(bundle, name, &entry));
    TRY(checkpoint_elements(bundle, entry, NULL, &elements));
    const struct statistics s = measure(&elements, entry->dtype);
    json_t *json = tensor_json(bundle, entry);
    json_t *numbers = json_pack("{sI sI sI}", "elements", (json_int_t)elements.count, "zeros",
                                (json_int_t)s.zeros, "not_finite", (json_int_t)s.not_finite);
    if (s.finite)
        json_object_update_new(numbers,
                               json_pack("{sf sf sf sf}", "least", s.least, "largest", s.largest,
                                         "mean", s.mean, "standard_deviation", s.deviation));
    json_object_update_new(json, numbers);
    free(elements.at);
    return json_print(json);
}

err checkpoint_show(const struct checkpoint_call *call, int *ret_code)
{
    struct bundle *bundle;
    err e = OK;
    TRY(checkpoint_open(call->words[0], &bundle));
    const char *name = call->words[1];
    if (call->json)
        e = name ? print_one_json(bundle, name) : print_all_json(bundle);
    else if (name)
        e = print_one(bundle, name);
    else
        print_all(bundle);
    bundle_close(bundle);
    return e;
}
