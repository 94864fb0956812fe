/* setup.c - see setup.h. */
#include <stdlib.h>
#include <string.h>

#include "core/cluster/setup.h"

uint32_t setup_gradients_per_push(const struct spec *spec, int workers, int worker)
{
    if (spec->train.mode != MODE_SYNC) return 1;
    int64_t wanted = spec_replicas(spec, workers);
    if (wanted <= workers) return 1;
    return (uint32_t)(wanted / workers + (worker < wanted % workers));
}

bool setup_drops_gradients(const struct spec *spec, int workers)
{
    if (spec->train.mode == MODE_SYNC) return spec_replicas(spec, workers) < workers;
    return spec->train.max_staleness >= 0;
}

static int slices_on(const struct layout *layout, int ps)
{
    int count = 0;
    for (int i = 0; i < layout->slice_count; i++) count += layout->slices[i].ps == ps;
    return count;
}

char *setup_write(const struct spec *spec, const struct layout *layout, int ps, int workers,
                  int64_t last_step)
{
    bool is_sync = spec->train.mode == MODE_SYNC;
    int64_t wanted = spec_replicas(spec, workers);
    json_t *json = json_pack(
        "{sb sI sI sb sI sI si sO}", "sync", is_sync, "last_step", (json_int_t)last_step,
        "replicas_to_aggregate", (json_int_t)wanted, "takes_all", is_sync && wanted >= workers,
        "max_staleness", (json_int_t)spec->train.max_staleness, "floats",
        (json_int_t)layout->block_floats[ps], "variables", slices_on(layout, ps), "optimizer",
        json_object_get(spec->json, "optimizer"));
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

/* The message as it is written above, read by the same machinery as a spec. */
struct setup_fields {
    bool sync, takes_all;
    int64_t last_step, replicas_to_aggregate, max_staleness, floats, variables;
    struct optimizer_spec optimizer;
};

#define AT(member) offsetof(struct setup_fields, member)

static const double steps_max = 1e18, floats_max = (double)(INT64_C(1) << 40);

static const struct field setup_field_table[] = {
    {.name = "sync", .type = FIELD_BOOL, .offset = AT(sync)},
    {.name = "takes_all", .type = FIELD_BOOL, .offset = AT(takes_all)},
    {.name = "last_step", .type = FIELD_INT, .offset = AT(last_step), .max = steps_max},
    {.name = "replicas_to_aggregate",
     .type = FIELD_INT,
     .offset = AT(replicas_to_aggregate),
     .min = 1,
     .max = UINT32_MAX},
    {.name = "max_staleness",
     .type = FIELD_INT,
     .offset = AT(max_staleness),
     .min = -1,
     .max = steps_max},
    {.name = "floats", .type = FIELD_INT, .offset = AT(floats), .max = floats_max},
    {.name = "variables", .type = FIELD_INT, .offset = AT(variables), .max = INT32_MAX},
    {.name = "optimizer",
     .type = FIELD_VARIANT,
     .offset = AT(optimizer),
     .object = &optimizer_spec_object,
     .kinds = &optimizer_kinds},
    {0},
};

static const struct object setup_object = {
    .name = "setup",
    .fields = setup_field_table,
    .size = sizeof(struct setup_fields),
};

static err read_json(json_t *json, struct arena *arena, struct setup *ret)
{
    struct setup_fields f;
    TRY(fields_parse(&setup_object, json, "", arena, &f));
    if (f.floats % LAYOUT_ALIGN)
        return fail(ERR_PROTOCOL, "a block of %lld floats", (long long)f.floats);
    *ret = (struct setup){
        .config = {.is_sync = f.sync,
                   .last_step = (uint64_t)f.last_step,
                   .replicas_to_aggregate = (uint32_t)f.replicas_to_aggregate,
                   .takes_all = f.takes_all,
                   .max_staleness = f.max_staleness},
        .floats = f.floats,
        .variables = f.variables,
        .optimizer = f.optimizer,
    };
    return OK;
}

err setup_read(const char *text, size_t bytes, struct arena *arena, struct setup *ret)
{
    json_error_t error;
    json_t *json = text ? json_loadb(text, bytes, 0, &error) : NULL;
    if (!json) return fail(ERR_PROTOCOL, "SETUP is not JSON");
    err e = read_json(json, arena, ret);
    json_decref(json);
    return e ? fail_prefix(ERR_PROTOCOL, "SETUP") : OK;
}
