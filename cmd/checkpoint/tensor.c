/* tensor.c - access to tensors of a checkpoint: see checkpoint.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/checkpoint/checkpoint.h"
#include "core/base/fields/fields.h"
#include "core/train/checkpoint/checkpoints.h"

#define LEDGER_BEGINNING "dtrain/ledger/ps_"

const char *checkpoint_folder(const struct bundle *bundle, struct arena *arena)
{
    const char *prefix = bundle_prefix(bundle), *slash = strrchr(prefix, '/');
    return arena_format(arena, "%.*s", slash ? (int)(slash - prefix) : 1, slash ? prefix : ".");
}

err checkpoint_open(const char *path, struct bundle **ret)
{
    char prefix[CHECKPOINT_PATH_MAX];
    TRY(checkpoint_find(path, prefix));
    return bundle_open(prefix, ret);
}

/* ---- what a tensor is ---- */

int checkpoint_ledger_ps(const char *name)
{
    const size_t length = strlen(LEDGER_BEGINNING);
    if (strncmp(name, LEDGER_BEGINNING, length) != 0) return -1;
    const char *digits = name + length;
    const size_t count = strspn(digits, "0123456789");
    return count == 5 && digits[count] == '\0' ? atoi(digits) : -1;
}

bool checkpoint_same_shape(const struct bundle_shape *a, const struct bundle_shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

/* Removes path components from the end of the name until it is a variable's: "a/b/Adam", "a/b". */
const struct bundle_entry *checkpoint_owner(const struct bundle *bundle,
                                            const struct bundle_entry *entry)
{
    char name[BUNDLE_NAME_MAX];
    if (snprintf(name, sizeof name, "%s", entry->name) >= (int)sizeof name) return NULL;
    for (char *slash = strrchr(name, '/'); slash; slash = strrchr(name, '/')) {
        *slash = '\0';
        const struct bundle_entry *owner = bundle_find(bundle, name);
        if (owner && owner->dtype == entry->dtype &&
            checkpoint_same_shape(&owner->shape, &entry->shape))
            return owner;
    }
    return NULL;
}

/* "beta1_power", for a second optimizer "beta1_power_1" */
static bool is_power(const struct bundle_entry *entry)
{
    return entry->shape.rank == 0 && entry->dtype == BUNDLE_FLOAT &&
           (strstr(entry->name, "beta1_power") || strstr(entry->name, "beta2_power"));
}

enum checkpoint_part checkpoint_part(const struct bundle *bundle, const struct bundle_entry *entry)
{
    if (strcmp(entry->name, "global_step") == 0) return PART_STEP;
    if (checkpoint_ledger_ps(entry->name) >= 0) return PART_LEDGER;
    if (strcmp(entry->name, "dtrain/ledger/rows") == 0) return PART_COVERAGE;
    if (strcmp(entry->name, "dtrain/ledger/data") == 0) return PART_COVERAGE;
    if (is_power(entry)) return PART_POWER;
    return checkpoint_owner(bundle, entry) ? PART_SLOT : PART_VARIABLE;
}

/* The error shows at most 128 bytes of the name. */
err checkpoint_find_tensor(const struct bundle *bundle, const char *name,
                           const struct bundle_entry **ret)
{
    *ret = bundle_find(bundle, name);
    if (*ret) return OK;
    return fail(ERR_INPUT, "%s: no tensor \"%.128s\"%s", bundle_prefix(bundle), name,
                bundle_nearest(bundle, name, NULL).text);
}

/* ---- what stands in it ---- */

int64_t checkpoint_tensor_bytes(const struct bundle_entry *entry)
{
    const int64_t size = (int64_t)bundle_dtype_size(entry->dtype);
    int64_t bytes = bundle_count(&entry->shape);
    if (size == 0 || bytes < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return -1;
    return bytes;
}

/* To be called before allocating: an index may claim any shape for a sliced tensor, but its slices'
 * data must be in existing files. */
static err check_is_stored(const struct bundle *bundle, const struct bundle_entry *entry)
{
    int64_t stored = 0;
    const int64_t wanted = checkpoint_tensor_bytes(entry);
    if (wanted < 0)
        return fail(ERR_INPUT, "%s: %s: elements of type %s cannot be read", bundle_prefix(bundle),
                    entry->name, bundle_dtype_name(entry->dtype));
    for (int i = 0; i < (entry->slice_count ? entry->slice_count : 1); i++) {
        const int64_t bytes = bundle_place(bundle, entry, i).bytes;
        stored += bytes < wanted - stored ? bytes : wanted - stored;
    }
    if (stored == wanted) return OK;
    return fail(ERR_INPUT, "%s: %s: its slices do not cover it", bundle_prefix(bundle),
                entry->name);
}

/* Elements of the box. */
static int64_t count_of(const struct bundle_entry *entry, const struct bundle_box *box)
{
    if (!box) return bundle_count(&entry->shape);
    struct bundle_shape shape = {.rank = entry->shape.rank};
    memcpy(shape.dim, box->length, sizeof shape.dim);
    return bundle_count(&shape);
}

err checkpoint_elements(struct bundle *bundle, const struct bundle_entry *entry,
                        const struct bundle_box *box, struct elements *ret)
{
    TRY(check_is_stored(bundle, entry));
    struct elements elements = {.count = count_of(entry, box)};
    elements.bytes = (size_t)elements.count * bundle_dtype_size(entry->dtype);
    elements.at = malloc(elements.bytes + 1); /* not malloc(0) */
    if (!elements.at)
        return fail(ERR_MEMORY, "no memory for the %zu bytes of %s", elements.bytes, entry->name);
    err e = bundle_read(bundle, entry, box, elements.at, elements.bytes);
    if (e)
        free(elements.at);
    else
        *ret = elements;
    return e;
}

/* Unsupported types were refused by checkpoint_elements. */
double checkpoint_number(const struct elements *elements, int dtype, int64_t i)
{
    switch (dtype) {
    case BUNDLE_FLOAT:
        return ((const float *)elements->at)[i];
    case BUNDLE_DOUBLE:
        return ((const double *)elements->at)[i];
    case BUNDLE_INT32:
        return ((const int32_t *)elements->at)[i];
    case BUNDLE_INT64:
        return (double)((const int64_t *)elements->at)[i];
    default:
        return ((const uint8_t *)elements->at)[i];
    }
}

err checkpoint_global_step(struct bundle *bundle, int64_t *ret)
{
    const struct bundle_entry *entry;
    struct elements elements;
    TRY(checkpoint_find_tensor(bundle, "global_step", &entry));
    const bool is_short = entry->dtype == BUNDLE_INT32;
    if (entry->shape.rank != 0 || (!is_short && entry->dtype != BUNDLE_INT64))
        return fail(ERR_INPUT, "%s: global_step: expected one int64, got %s of rank %d",
                    bundle_prefix(bundle), bundle_dtype_name(entry->dtype), entry->shape.rank);
    TRY(checkpoint_elements(bundle, entry, NULL, &elements));
    const int64_t step = is_short ? *(int32_t *)elements.at : *(int64_t *)elements.at;
    free(elements.at);
    if (step < 0)
        return fail(ERR_INPUT, "%s: a global step of %lld", bundle_prefix(bundle), (long long)step);
    *ret = step;
    return OK;
}

const char *checkpoint_shape_text(const struct bundle_shape *shape,
                                  char text[TENSOR_SHAPE_TEXT_MAX])
{
    int length = snprintf(text, TENSOR_SHAPE_TEXT_MAX, "[");
    for (int i = 0; i < shape->rank; i++)
        length += snprintf(text + length, TENSOR_SHAPE_TEXT_MAX - (size_t)length, "%s%lld",
                           i > 0 ? ", " : "", (long long)shape->dim[i]);
    snprintf(text + length, TENSOR_SHAPE_TEXT_MAX - (size_t)length, "]");
    return text;
}

json_t *checkpoint_shape_json(const struct bundle_shape *shape)
{
    json_t *list = json_array();
    for (int i = 0; i < shape->rank; i++) json_array_append_new(list, json_integer(shape->dim[i]));
    return list;
}
