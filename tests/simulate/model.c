/* model.c - see model.h. */
#include "tests/simulate/model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

uint64_t mix(uint64_t a, uint64_t b)
{
    return random_u64(a, b);
}

void nodes_free(struct nodes *nodes)
{
    free(nodes->at);
    *nodes = (struct nodes){0};
}

static int add(struct nodes *nodes, const struct node *node)
{
    if (nodes->count == nodes->capacity) {
        nodes->capacity = nodes->capacity ? 2 * nodes->capacity : 256;
        nodes->at = realloc(nodes->at, (size_t)nodes->capacity * sizeof *nodes->at);
        assert(nodes->at);
    }
    nodes->at[nodes->count] = *node;
    return nodes->count++;
}

static uint64_t initial_hash(int ps)
{
    return mix(7, (uint64_t)ps);
}

int nodes_begin(struct nodes *nodes, int parent, int ps, uint64_t generation)
{
    struct node node = {.parent = NOTHING, .hash = initial_hash(ps), .has_everybody = true};
    if (parent != NOTHING) node = nodes->at[parent];
    node.parent = parent;
    node.ps = ps;
    node.generation = generation;
    node.used = 0;
    return add(nodes, &node);
}

/* The same for a simulated update and for the undisturbed run. */
static uint64_t updated_hash(uint64_t hash, uint64_t step, const struct update *update)
{
    hash = mix(hash, step);
    for (int i = 0; i < update->count; i++) hash = mix(hash, update->gradients[i]->hash);
    return hash;
}

uint64_t nodes_hash(const struct nodes *nodes, int parent, const struct update *update)
{
    return updated_hash(nodes->at[parent].hash, nodes->at[parent].step, update);
}

int nodes_apply(struct nodes *nodes, int parent, const struct update *update)
{
    struct node node = nodes->at[parent];
    node.hash = updated_hash(node.hash, node.step, update);
    node.parent = parent;
    node.step += !update->is_late;
    node.updates++;
    node.has_everybody = node.has_everybody && update->count == update->workers;
    node.used = update->gradients[0]->data;
    for (int i = 0; i < update->count; i++) {
        const struct content *gradient = update->gradients[i];
        int w = gradient->worker;
        if (gradient->batch > node.sequences[w])
            node.missing[w] += gradient->batch - node.sequences[w];
        node.sequences[w] = gradient->batch + 1;
        node.sets[w] = mix(node.sets[w], gradient->batch + 1);
    }
    return add(nodes, &node);
}

int nodes_leave_out(struct nodes *nodes, int parent, uint64_t step)
{
    struct node node = nodes->at[parent];
    node.parent = parent;
    node.step = step;
    node.used = 0;
    node.has_everybody = false;
    return add(nodes, &node);
}

uint64_t gradient_hash(int worker, uint64_t batch, uint64_t seen)
{
    return mix(mix((uint64_t)worker, batch), seen);
}

void undisturbed_hashes(const struct undisturbed *u, uint64_t ret_hashes[HOMES_MAX])
{
    for (int i = 0; i < u->homes; i++) ret_hashes[i] = initial_hash(i);
    for (uint64_t step = 0; step < u->steps; step++) {
        uint64_t seen = 0;
        for (int i = 0; i < u->homes; i++)
            if (u->has_variables[i]) seen = mix(seen, ret_hashes[i]);
        struct content contents[WORKERS_MAX];
        const struct content *gradients[WORKERS_MAX];
        for (int w = 0; w < u->workers; w++) {
            contents[w] = (struct content){.worker = w, .hash = gradient_hash(w, step, seen)};
            gradients[w] = &contents[w];
        }
        const struct update update = {gradients, u->workers, u->workers, false};
        for (int i = 0; i < u->homes; i++)
            ret_hashes[i] = updated_hash(ret_hashes[i], step, &update);
    }
}
