/* What visitors ask of a ps, and when: a byte says what happens next, of an ask by whom; the texts
 * of asks end with a zero byte, behind which stand the numbers that go with them. Whatever they
 * ask, each last ask is answered once by the time that nothing is to be waited for any more.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "core/cluster/visit/body.h"
#include "core/cluster/visit/visit.h"

enum { FLOATS = 64, EVENTS_MAX = 64, WORK_MAX = 1000, LIMIT_MS = 5000 };
enum { ASKS, PASSES, ROUND, CHANGES, SHOWS, LEAVES, WORKS, RESIZED, REPLIES, EVENTS };

static const struct slice slices[] = {
    {"w", {2, {5, 2}}, 0, 0, 3, 0, 6},
    {"w", {2, {5, 2}}, 0, 4, 1, 16, 2},
    {"v", {2, {2, 4}}, 1, 1, 2, 32, 4},
    {"b", {0}, 0, 0, 1, 48, 1},
};

struct ps {
    struct visits *visits;
    float values[FLOATS];
    uint64_t now_ms, step;
    bool is_there[VISITORS_MAX], may_change[VISITORS_MAX], waits[VISITORS_MAX];
    uint64_t number[VISITORS_MAX];
};

static void take(void *context, int visitor, const struct message *m)
{
    struct ps *ps = context;
    fuzz_holds(ps->is_there[visitor], "who has left is not answered");
    fuzz_holds(ps->waits[visitor], "an ask is answered once");
    fuzz_holds(m->answer.number == ps->number[visitor], "an answer is to the last ask");
    json_t *answer = visit_body_answer(m->body, m->body_bytes);
    fuzz_holds(answer, "an answer can be read");
    json_decref(answer);
    ps->waits[visitor] = false;
}

static const char *scale(void *context, const int count[JOB_COUNT])
{
    (void)context;
    return count[JOB_PS] > count[JOB_WORKER] ? "it does not want to" : NULL;
}

static json_t *status(void *context, uint64_t from)
{
    (void)context;
    return json_pack("{s[]}", from ? "tasks" : "next");
}

static const char *request(void *context, int visitor, const struct ask *ask)
{
    const struct ps *ps = context;
    fuzz_holds(ps->may_change[visitor] || ask_only_looks(ask), "who only looks asks for no change");
    return (visitor + (int)ask->verb) % 2 ? "not now" : NULL;
}

static void changed(void *context, int visitor, const struct ask *ask, const struct shape *shape,
                    double first)
{
    (void)ask, (void)shape, (void)first;
    fuzz_holds(((const struct ps *)context)->may_change[visitor], "who only looks changes nothing");
}

static void ask(struct ps *ps, int visitor, struct view *input)
{
    const struct view text = fuzz_text(input);
    const size_t whole = 8u * (fuzz_byte(input) % 16), part = fuzz_byte(input) % 2;
    const struct view numbers = fuzz_bytes(input, whole + part);
    const size_t bytes = view_bytes(text), more = view_bytes(numbers);
    unsigned char *body = malloc(bytes + more + 1);
    if (!body) return;
    if (bytes) memcpy(body, text.at, bytes);
    body[bytes] = 0;
    if (more) memcpy(body + bytes + 1, numbers.at, more);
    const struct message m = {.type = MESSAGE_ASK,
                              .ask.number = ++ps->number[visitor],
                              .body = body,
                              .body_bytes = (uint32_t)(bytes + (more ? 1 + more : 0))};
    ps->waits[visitor] = true;
    visits_ask(ps->visits, visitor, &m, ps->now_ms);
    free(body);
}

static void show(struct ps *ps, uint8_t how)
{
    const struct visit_view view = {slices, sizeof slices / sizeof *slices, ps->values, how % 2,
                                    how / 2 % 2};
    visits_show(ps->visits, how % 8 == 7 ? NULL : &view);
}

static void enter_or_leave(struct ps *ps, int visitor)
{
    if (ps->is_there[visitor]) {
        visits_leave(ps->visits, visitor);
        ps->is_there[visitor] = ps->waits[visitor] = false;
        return;
    }
    const bool may_change = visitor % 2 == 0;
    const int entered = visits_enter(ps->visits, may_change, ps->now_ms);
    if (entered < 0) return;
    ps->is_there[entered] = true;
    ps->may_change[entered] = may_change;
}

static void reply(struct ps *ps, uint64_t request_id, struct view *input)
{
    const struct view text = fuzz_text(input);
    visits_replied(ps->visits, (int)(request_id % 4), request_id, text.at, view_bytes(text));
}

static void work(struct ps *ps)
{
    visits_tick(ps->visits, ps->now_ms);
    for (int i = 0; visits_work(ps->visits, ps->now_ms); i++) fuzz_holds(i < WORK_MAX, "work ends");
}

static void happen(struct ps *ps, struct view *input)
{
    const struct membership next = {.resizes = 1, .count = {1, 2}};
    const uint8_t event = fuzz_byte(input), how = fuzz_byte(input);
    const int visitor = how % 4;
    switch (event % EVENTS) {
    case ASKS:
        if (ps->is_there[visitor]) ask(ps, visitor, input);
        break;
    case PASSES:
        ps->now_ms += (uint64_t)how << how % 16;
        work(ps);
        break;
    case ROUND:
        visits_round(ps->visits);
        break;
    case CHANGES:
        visits_changed(ps->visits, ps->step += how % 3);
        break;
    case SHOWS:
        show(ps, how);
        break;
    case LEAVES:
        enter_or_leave(ps, visitor);
        break;
    case REPLIES:
        reply(ps, how, input);
        break;
    case RESIZED:
        if (how % 2)
            visits_scaled(ps->visits, &next, ps->step);
        else
            visits_refuse_scale(ps->visits, 2, "no");
        break;
    default:
        work(ps);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct view input = {bytes, bytes + count};
    struct ps ps = {0};
    const struct visits_options options = {.has_step = true,
                                           .change_limit_ms = LIMIT_MS,
                                           .setting_limit_ms = 2 * LIMIT_MS,
                                           .answer = take,
                                           .changed = changed,
                                           .scale = scale,
                                           .status = status,
                                           .request = request,
                                           .context = &ps};
    if (visits_open(&options, &ps.visits)) return 0;
    for (int i = 0; i < 2; i++) enter_or_leave(&ps, i);
    show(&ps, 1);
    for (int i = 0; i < EVENTS_MAX && view_bytes(input); i++) happen(&ps, &input);
    visits_refuse_scale(ps.visits, 2, "over");
    ps.now_ms += VISIT_WAIT_MAX_MS + LIMIT_MS;
    work(&ps);
    for (int i = 0; i < VISITORS_MAX; i++)
        fuzz_holds(!ps.waits[i], "who asked is answered when the limit is over");
    visits_end(ps.visits);
    visits_close(ps.visits);
    return 0;
}
