/* lies.c - see lies.h. */
#include "tests/fuzz/lies.h"

#include <inttypes.h>
#include <stdio.h>

enum { BODY_MAX = 4096 };

static const uint64_t numbers[] = {
    1, 2, 7, INT32_MAX, UINT32_MAX, UINT64_C(1) << 40, INT64_MAX, UINT64_MAX};
enum { NUMBERS = sizeof numbers / sizeof *numbers, AT_ENDS = 3 /* below, at and above one */ };

static const struct {
    char first;
    uint32_t bytes;
} bodies[] = {{'{', 1}, {0, 8}, {0, 24}, {-1, 24}, {-1, 56}, {'[', 4000}, {0, BODY_MAX}};
enum { BODIES = sizeof bodies / sizeof *bodies };

/* Of a field; false: there are no more. */
static bool number_of(const struct lie *lie, uint64_t *ret)
{
    if (lie->field == LIE_BODY) return *ret = (uint64_t)lie->index, lie->index < BODIES;
    if (lie->index < NUMBERS) return *ret = numbers[lie->index], true;
    if (lie->field >= MESSAGE_PLACES || lie->index >= NUMBERS + AT_ENDS) return false;
    *ret = message_ends_of_all.at[message_field(lie->type, lie->field)->range].most - 1 +
           (uint64_t)(lie->index - NUMBERS);
    return true;
}

static bool has_field(const struct lie *lie)
{
    return lie->field >= MESSAGE_PLACES || message_field(lie->type, lie->field)->name;
}

bool lies_next(struct lie *lie)
{
    lie->index++; /* the first number of the first kind is left out, which has no such field */
    for (; lie->type < MESSAGE_TYPES + 2; lie->type++, lie->field = 0) {
        for (; lie->field < LIE_FIELDS; lie->field++, lie->index = 0)
            if (has_field(lie) && number_of(lie, &lie->number)) return true;
    }
    return false;
}

static void put_body(struct message *m, uint64_t which)
{
    static char body[BODY_MAX];
    for (uint32_t i = 0; i < bodies[which].bytes; i++) body[i] = bodies[which].first;
    m->body = body;
    m->body_bytes = bodies[which].bytes;
}

void lie_into(struct message *m, const struct lie *lie)
{
    switch (lie->field) {
    case LIE_GENERATION:
        m->generation = lie->number;
        break;
    case LIE_TASK:
        m->task = (uint32_t)lie->number;
        break;
    case LIE_JOB:
        m->job = (uint32_t)lie->number;
        break;
    case LIE_OFFSET:
        m->offset = lie->number;
        m->length = 1;
        break;
    case LIE_LENGTH:
        m->length = lie->number;
        break;
    case LIE_BODY:
        put_body(m, lie->number);
        break;
    default:
        message_set_number(m, lie->field, lie->number);
    }
}

bool lie_is_allowed(const struct lie *lie, unsigned sender)
{
    char text[MESSAGE_BREACH_MAX];
    struct message m = {.type = lie->type};
    lie_into(&m, lie);
    return !message_fault(&m, sender) && message_is_within(&m, &message_ends_of_all, text);
}

const char *lie_show(const struct lie *lie, char text[LIE_TEXT_MAX])
{
    static const char *const names[] = {"generation", "task", "job", "offset", "length", "body"};
    const int other = lie->field - MESSAGE_PLACES;
    snprintf(text, LIE_TEXT_MAX, "%s with %s %" PRIu64, message_name(lie->type),
             other < 0 ? message_field(lie->type, lie->field)->name : names[other], lie->number);
    return text;
}
