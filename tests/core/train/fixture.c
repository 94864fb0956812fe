/* fixture.c - see fixture.h */
#include "tests/core/train/fixture.h"

#include <math.h>

#include "core/base/random.h"

json_t *fixture_load(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", FIXTURES, name);
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (!json) fail_msg("%s: line %d: %s", path, error.line, error.text);
    return json;
}

int fixture_floats(json_t *array, float *ret, int max)
{
    json_t *data = json_object_get(array, "data");
    const int count = (int)json_array_size(data);
    assert_in_range(count, 1, max);
    for (int i = 0; i < count; i++) ret[i] = (float)json_number_value(json_array_get(data, i));
    return count;
}

json_t *fixture_variant(const char *member, const char *type, json_t *attributes)
{
    json_t *variant = json_deep_copy(attributes);
    json_object_set_new(variant, "type", json_string(type));
    return json_pack("{s:o}", member, variant);
}

/* The spec's members, alone. */

struct parts {
    struct optimizer_spec optimizer;
    struct schedule_spec learning_rate;
    struct placement_spec placement;
};

static const struct field optimizer_fields[] = {
    {.name = "optimizer",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct parts, optimizer),
     .object = &optimizer_spec_object,
     .kinds = &optimizer_kinds},
    {0},
};

static const struct field schedule_fields[] = {
    {.name = "learning_rate",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct parts, learning_rate),
     .object = &schedule_spec_object,
     .kinds = &schedule_kinds},
    {0},
};

static const struct field placement_fields[] = {
    {.name = "placement",
     .type = FIELD_OBJECT,
     .offset = offsetof(struct parts, placement),
     .object = &placement_spec_object},
    {0},
};

/* json is taken */
static struct parts parse(const struct field *fields, json_t *json, struct arena *arena)
{
    const struct object object = {.name = "test", .fields = fields, .size = sizeof(struct parts)};
    struct parts parts;
    assert_non_null(json);
    if (fields_parse(&object, json, "", arena, &parts) != OK) fail_msg("%s", error_text());
    json_decref(json);
    return parts;
}

struct optimizer_spec fixture_optimizer_json(json_t *json, struct arena *arena)
{
    return parse(optimizer_fields, json, arena).optimizer;
}

struct optimizer_spec fixture_optimizer(const char *json, struct arena *arena)
{
    return fixture_optimizer_json(json_loads(json, 0, NULL), arena);
}

struct schedule_spec fixture_schedule(json_t *json, struct arena *arena)
{
    return parse(schedule_fields, json, arena).learning_rate;
}

struct placement_spec fixture_placement(const char *json, struct arena *arena)
{
    return parse(placement_fields, json_loads(json, 0, NULL), arena).placement;
}

void fixture_near(double got, double wanted, struct tolerance tolerance, const char *where)
{
    const double limit = tolerance.relative * fabs(wanted) + tolerance.absolute;
    if (fabs(got - wanted) <= limit) return; /* false for NaN */
    fail_msg("%s: expected %.9g, got %.9g", where, wanted, got);
}

err fixture_store(const struct optimizer_spec *spec, struct device *device, int64_t floats,
                  float *values, struct store *ret)
{
    struct arena arena = {0};
    const struct optimizers one = optimizers_make(spec, 1, &arena);
    const err e = store_open(&one, NULL, 0, device, floats, values, ret);
    arena_free(&arena);
    return e;
}

struct device fixture_device(void)
{
    struct device device;
    if (device_open_cpu(1, NULL, &device) != OK) fail_msg("%s", error_text());
    return device;
}

float *fixture_block(struct device *device, int64_t floats)
{
    void *memory;
    if (device->kernels->allocate(device, (size_t)floats * sizeof(float), &memory) != OK)
        fail_msg("%s", error_text());
    return memory;
}

void fixture_release(struct device *device, float *block)
{
    if (block) device->kernels->release(device, block);
}

static err draw(const void *attributes, const struct initial *of, float *ret_values)
{
    for (int64_t i = 0; i < of->count; i++)
        ret_values[i] = random_normal(of->key, (uint64_t)(of->first + i));
    return OK;
}
const struct initializer fixture_draws = {.object = {"draws"}, .fill = draw};
