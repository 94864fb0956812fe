/* random: uniform features in [0, 1) and unrelated labels, for benchmarks.
 *
 * Feature i is a hash of (key, i): there is no state, so filling is vectorized.
 */
#include "core/base/random.h"
#include "core/data/loops.h"
#include "core/data/storage.h"

static const char *const label_types[] = {"class", "number", NULL};

struct random_attributes {
    int64_t rows, classes, seed;
    struct ints shape;
    int label_type; /* index into label_types */
};

enum { STRETCH = 1 << 20 }; /* floats per key: far below where the 32-bit counter wraps */

/* Each stretch has its own key, so the hash does not repeat. */
static void fill_features(float *y, int64_t count, uint64_t key)
{
    const struct loops *loops = loops_best();
    for (int64_t i = 0; i < count; i += STRETCH) {
        int64_t n = count - i < STRETCH ? count - i : STRETCH;
        loops->fill_uniform(y + i, (uint32_t)random_u64(key, (uint64_t)i), (uint32_t)n);
    }
}

/* Classes by remainder: the bias below 2^-32 does not matter for random labels. */
static void fill_labels(const struct random_attributes *a, uint64_t key, void *labels)
{
    for (int64_t i = 0; i < a->rows; i++) {
        uint64_t draw = random_u64(key, (uint64_t)i);
        if (a->label_type == 0)
            ((int32_t *)labels)[i] = (int32_t)(draw % (uint64_t)a->classes);
        else
            ((float *)labels)[i] = (float)(draw >> 40) * 0x1p-24f;
    }
}

static err open_random(const void *attributes, const struct format_context *context,
                       struct dataset *ret)
{
    const struct random_attributes *a = attributes;
    struct column columns[STORED_COLUMNS] = {
        [FEATURES] = {.dtype = FLOAT32},
        [LABELS] = {.dtype = a->label_type == 0 ? INT32 : FLOAT32}};
    struct dataset d = {
        .rows = a->rows,
        .columns = columns,
    };
    struct shape *shape = &d.columns[FEATURES].shape;
    struct storage s = {.name = "random"};
    uint64_t seed = context->seed + (uint64_t)a->seed, bytes = 0;
    TRY(storage_shape(&a->shape, "shape", shape));
    TRY(storage_bytes(s.name, d.rows, shape, FLOAT32, &bytes));
    err e = block_new(bytes, &s.features);
    if (!e) e = block_new(4 * (uint64_t)a->rows, &s.labels);
    if (!e) {
        fill_features(s.features.at, (int64_t)(bytes / 4), random_key(seed, "random/features"));
        fill_labels(a, random_key(seed, "random/labels"), s.labels.at);
        e = storage_give(&s, &d);
    }
    if (!e) *ret = d;
    storage_drop(&s);
    return e;
}

static const struct field fields[] = {
    FIELD_OF("rows", INT, struct random_attributes, rows, .min = 1, .max = 0x1p40,
             .help = "number of rows"),
    FIELD_OF("shape", INTS, struct random_attributes, shape, .min = 1, .max = 0x1p40,
             .count_max = RANK_MAX - 1, .help = "shape of one example"),
    FIELD_OF("label_type", ENUM, struct random_attributes, label_type, .fallback = "\"class\"",
             .choices = label_types,
             .help = "class: a whole number below classes; number: uniform in [0, 1)"),
    FIELD_OF("classes", INT, struct random_attributes, classes, .fallback = "10", .min = 1,
             .max = INT32_MAX, .help = "number of classes"),
    FIELD_OF("seed", INT, struct random_attributes, seed, .fallback = "0",
             .help = "added to the seed of the run"),
    {0},
};

const struct format format_random = {
    .object = {"random", "uniform random numbers, for benchmarks", fields,
               sizeof(struct random_attributes)},
    .open = open_random,
};
