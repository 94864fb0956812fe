/* shared.c - see shared.h. */
#include "core/cluster/visit/shared.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/crc32c.h"

enum { CAPACITY_FIRST = 16 };

void shared_free(struct shared_variables *shared)
{
    for (int i = 0; i < shared->count; i++) {
        free(shared->at[i].name);
        value_free(&shared->at[i].value);
    }
    free(shared->at);
    *shared = (struct shared_variables){0};
}

/* The index of the name, or where to insert it. */
static int place_of(const struct shared_variables *shared, const char *name)
{
    int low = 0, high = shared->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strcmp(shared->at[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct shared_variable *shared_find(const struct shared_variables *shared, const char *name)
{
    int place = place_of(shared, name);
    bool is_there = place < shared->count && strcmp(shared->at[place].name, name) == 0;
    return is_there ? &shared->at[place] : NULL;
}

/* No brackets, as these begin an index, and no control characters. */
static err check_name(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > SHARED_NAME_MAX)
        return fail(ERR_INPUT, "a name has 1 to %d characters", SHARED_NAME_MAX);
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_.-/:", *c))
            return fail(ERR_INPUT, "\"%.64s\": a name has letters, digits and any of \"_.-/:\"",
                        name);
    return OK;
}

static err check(const struct shared_variables *shared, const struct shared_variable *old,
                 const char *name, const struct value *value)
{
    int64_t elements = shared->elements - (old ? old->value.count : 0) + value->count;
    TRY(check_name(name));
    for (int64_t i = 0; i < value->count; i++)
        if (!isfinite(value->at[i])) return fail(ERR_INPUT, "%s: not a finite number", name);
    if (!old && shared->count == SHARED_VARIABLES_MAX)
        return fail(ERR_MEMORY, "%s: this ps keeps %d shared variables, which is the limit", name,
                    SHARED_VARIABLES_MAX);
    if (elements > SHARED_ELEMENTS_MAX)
        return fail(ERR_MEMORY, "%s: this ps would keep more than %d numbers, which is the limit",
                    name, SHARED_ELEMENTS_MAX);
    return OK;
}

static err insert(struct shared_variables *shared, const char *name, struct shared_variable **ret)
{
    if (shared->count == shared->capacity) {
        int capacity = shared->capacity ? 2 * shared->capacity : CAPACITY_FIRST;
        void *at = realloc(shared->at, (size_t)capacity * sizeof *shared->at);
        if (!at) return fail(ERR_MEMORY, "no memory for %s", name);
        shared->at = at;
        shared->capacity = capacity;
    }
    char *copy = strdup(name);
    if (!copy) return fail(ERR_MEMORY, "no memory for %s", name);
    int place = place_of(shared, name);
    struct shared_variable *variable = &shared->at[place];
    memmove(variable + 1, variable, (size_t)(shared->count - place) * sizeof *variable);
    *variable = (struct shared_variable){.name = copy};
    shared->count++;
    *ret = variable;
    return OK;
}

err shared_set(struct shared_variables *shared, const char *name, struct value *value,
               struct shared_variable **ret)
{
    struct shared_variable *variable = shared_find(shared, name);
    TRY(check(shared, variable, name, value));
    if (!variable) TRY(insert(shared, name, &variable));
    shared->elements += value->count - variable->value.count;
    value_free(&variable->value);
    variable->value = *value;
    *value = (struct value){0};
    *ret = variable;
    return OK;
}

int shared_home(const char *name, int ps_count)
{
    return (int)(crc32c(name, strlen(name)) % (uint32_t)ps_count);
}
