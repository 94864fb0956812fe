/* setup.c - see setup.h. */
#include <stdlib.h>
#include <string.h>

#include "core/cluster/setup.h"

static int64_t replicas(const struct spec *spec, int workers)
{
    int64_t asked = spec->train.replicas_to_aggregate;
    return asked ? asked : workers;
}

uint32_t setup_gradients_per_push(const struct spec *spec, int workers, int worker)
{
    if (spec->train.mode != MODE_SYNC) return 1;
    int64_t wanted = replicas(spec, workers);
    if (wanted <= workers) return 1;
    return (uint32_t)(wanted / workers + (worker < wanted % workers));
}

bool setup_drops_gradients(const struct spec *spec, int workers)
{
    if (spec->train.mode == MODE_SYNC) return replicas(spec, workers) < workers;
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
    int64_t wanted = is_sync ? replicas(spec, workers) : 1;
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

static err read_json(json_t *json, struct arena *arena, struct setup *ret)
{
    int is_sync, takes_all, variables;
    json_int_t last_step, wanted, max_staleness, floats;
    json_t *optimizer;
    if (json_unpack(json, "{sb sI sI sb sI sI si so}", "sync", &is_sync, "last_step", &last_step,
                    "replicas_to_aggregate", &wanted, "takes_all", &takes_all, "max_staleness",
                    &max_staleness, "floats", &floats, "variables", &variables, "optimizer",
                    &optimizer) != 0)
        return fail(ERR_PROTOCOL, "SETUP lacks a member");
    if (floats < 0 || floats % LAYOUT_ALIGN || floats > TENSOR_ELEMENTS_MAX || wanted < 1 ||
        wanted > UINT32_MAX || last_step < 0)
        return fail(ERR_PROTOCOL, "SETUP has a number out of range");
    ret->config = (struct ps_config){
        .is_sync = is_sync,
        .last_step = (uint64_t)last_step,
        .replicas_to_aggregate = (uint32_t)wanted,
        .takes_all = takes_all,
        .max_staleness = max_staleness,
    };
    ret->floats = floats;
    ret->variables = variables;
    return fields_parse(&optimizer_spec_object, optimizer, "optimizer", arena, &ret->optimizer);
}

err setup_read(const char *text, size_t bytes, struct arena *arena, struct setup *ret)
{
    json_error_t error;
    json_t *json = json_loadb(text ? text : "", text ? bytes : 0, 0, &error);
    if (!json) return fail(ERR_PROTOCOL, "SETUP is not JSON: %.100s", error.text);
    err e = read_json(json, arena, ret);
    json_decref(json);
    return e ? fail_prefix(e, "SETUP") : OK;
}
