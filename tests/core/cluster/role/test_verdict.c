/* test_verdict.c - the end of a job, as another task says it: whatever that is, every task ends
 * with one of the exit codes that there are. */
#include "core/base/error.h" /* before cmocka, which has a macro of the name fail */
#include "core/cluster/role/ps_role.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_role.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* A STOP or a VERDICT */
static struct message saying(uint32_t type, uint32_t code, const char *text)
{
    struct message m = {.type = type, .body = text, .body_bytes = (uint32_t)strlen(text)};
    if (type == MESSAGE_STOP)
        m.stop.exit_code = code;
    else
        m.verdict.exit_code = code;
    return m;
}

static uint32_t said(const struct message *m)
{
    return m->type == MESSAGE_STOP ? m->stop.exit_code : m->verdict.exit_code;
}

/* At 10, 20, 30, 45 and 68 s; from 30 s on as warnings, but of what may well take so long. */
static void a_wait_is_told_and_becomes_a_warning(void **state)
{
    enum { SECOND = 1000, LIMIT_S = 100 };
    for (int usual = 0; usual < 2; usual++) {
        struct outbox out = {0};
        struct patience patience;
        char text[ACTION_TEXT_MAX];
        const struct awaited awaited = {"ps/0", LIMIT_S * SECOND, usual};
        int ms = SECOND;
        patience_begin(&patience, 0);
        for (; !patience_is_over(&patience, &awaited, &out, text); ms += SECOND)
            patience_tick(&patience, (uint64_t)ms);
        assert_string_equal(text, "waited 100 s for ps/0");
        assert_int_equal(out.count, 5);
        for (int i = 0; i < out.count; i++)
            assert_int_equal(out.at[i].log.is_warning, i >= 2 && !usual);
        outbox_free(&out);
    }
}

static void codes_of_the_table_are_taken_as_they_are(void **state)
{
    char text[ACTION_TEXT_MAX];
    for (const struct exit_code_row *row = exit_code_table; row->text; row++) {
        const struct message m = saying(MESSAGE_VERDICT, (uint32_t)row->code, "ps/0: why");
        assert_int_equal(message_verdict(&m, m.verdict.exit_code, text), row->code);
        assert_string_equal(text, "ps/0: why");
        assert_string_equal(exit_code_text(row->code), row->text);
        assert_int_equal(exit_code_is_retryable(row->code), row->code >= 128);
    }
}

static const uint32_t foreign[] = {4,   8,   127,        132,        142,       144,
                                   255, 256, 0x7fffffff, 0x80000000, UINT32_MAX};

static void any_other_code_becomes_that_of_a_lost_peer(void **state)
{
    char text[ACTION_TEXT_MAX], longest[4096];
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        const struct message m = saying(MESSAGE_VERDICT, foreign[i], "");
        assert_int_equal(message_verdict(&m, m.verdict.exit_code, text), EXIT_LOST_PEER);
    }
    struct message m = saying(MESSAGE_VERDICT, 8, "");
    message_verdict(&m, m.verdict.exit_code, text);
    assert_string_equal(text, "no reason was given (sent with exit code 8, which no task has)");
    memset(longest, 'x', sizeof longest);
    m.body = longest;
    m.body_bytes = sizeof longest;
    message_verdict(&m, m.verdict.exit_code, text);
    assert_non_null(strstr(text, "xxx (sent with exit code 8, which no task has)"));
}

/* What to do stands at its end, behind paths of any length. */
static void what_a_task_fails_with_is_told_to_its_end(void **state)
{
    char path[4096], text[ACTION_TEXT_MAX];
    struct outbox out = {0};
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    const err e = (fail)(ERR_INPUT, "%s: no cell \"b\" (did you mean \"c\"?)", path);
    struct message m = {.type = MESSAGE_VERDICT};
    message_say_verdict(&m, exit_code_of(e), "worker/4095", error_text(), &out);
    assert_int_equal(message_verdict(&m, m.verdict.exit_code, text), EXIT_INPUT);
    assert_int_equal(strncmp(text, "worker/4095: xxx", 16), 0);
    assert_non_null(strstr(text, "xxx: no cell \"b\" (did you mean \"c\"?)"));
    outbox_free(&out);
}

/* What the role does with the message: the code of the first action of the type, -1: none. */
static int hear(struct role *role, enum job from, uint32_t type, uint32_t code,
                enum action_type wanted)
{
    struct outbox out = {0};
    int found = -1;
    const struct message m = saying(type, code, "why");
    role->ops->start(role, 1, &out);
    role->ops->peer_up(role, from, 0, 7, &out);
    role->ops->peer_up(role, from, 1, 7, &out);
    outbox_empty(&out);
    role->ops->message(role, from, 1, &m, &out);
    for (int i = 0; i < out.count && found < 0; i++) {
        const struct action *a = &out.at[i];
        if (a->type != wanted) continue;
        if (wanted == ACTION_END)
            found = a->end.code;
        else if (a->send.message.type == type)
            found = (int)said(&a->send.message);
    }
    outbox_free(&out);
    return found;
}

static int ps_hears(uint32_t type, uint32_t code, enum action_type wanted)
{
    const struct ps_options options = {.workers = 2, .incarnation = 1};
    struct role *role = ps_role_new(&options);
    const int found = hear(role, JOB_WORKER, type, code, wanted);
    ps_role_free(role);
    return found;
}

static int worker_hears(uint32_t type, uint32_t code, enum action_type wanted)
{
    static const int64_t floats[2] = {1, 1};
    const struct worker_options options = {
        .ps_count = 2, .workers = 2, .incarnation = 1, .block_floats = floats};
    struct role *role = worker_role_new(&options);
    const int found = hear(role, JOB_PS, type, code, wanted);
    worker_role_free(role);
    return found;
}

static void roles_end_with_codes_of_the_table_and_pass_on_no_others(void **state)
{
    static const struct {
        uint32_t said;
        int expected;
    } cases[] = {{0, 0},
                 {3, 3},
                 {143, 143},
                 {8, EXIT_LOST_PEER},
                 {4, EXIT_LOST_PEER},
                 {UINT32_MAX, EXIT_LOST_PEER}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t said = cases[i].said;
        const int expected = cases[i].expected;
        assert_int_equal(ps_hears(MESSAGE_VERDICT, said, ACTION_END), expected);
        assert_int_equal(ps_hears(MESSAGE_VERDICT, said, ACTION_SEND), expected);
        assert_int_equal(ps_hears(MESSAGE_STOP, said, ACTION_SEND), expected);
        assert_int_equal(worker_hears(MESSAGE_VERDICT, said, ACTION_END), expected);
        assert_int_equal(worker_hears(MESSAGE_VERDICT, said, ACTION_SEND), expected);
    }
}

/* How many messages of the type were sent to this peer. */
static int count_sent(const struct outbox *out, int peer, uint32_t type)
{
    int count = 0;
    for (int i = 0; i < out->count; i++) {
        const struct action *a = &out->at[i];
        count += a->type == ACTION_SEND && a->send.peer == peer && a->send.message.type == type;
    }
    return count;
}

static void a_worker_answers_the_verdict_on_the_link_that_it_came_on(void **state)
{
    static const int64_t floats[1] = {1};
    const struct worker_options options = {
        .ps_count = 1, .workers = 2, .incarnation = 1, .block_floats = floats};
    struct role *role = worker_role_new(&options);
    struct outbox out = {0};
    const struct message m = saying(MESSAGE_VERDICT, 0, "");
    role->ops->start(role, 1, &out);
    role->ops->peer_up(role, JOB_PS, 0, 7, &out);
    outbox_empty(&out);
    role->ops->message(role, JOB_PS, 0, &m, &out);
    assert_int_equal(count_sent(&out, 0, MESSAGE_VERDICT), 1);
    outbox_free(&out);
    worker_role_free(role);
}

static void a_ps_awaits_an_answer_of_each_worker_and_tells_it_again(void **state)
{
    const struct ps_options options = {.workers = 3, .incarnation = 1};
    struct role *role = ps_role_new(&options);
    struct outbox out = {0};
    const struct message m = saying(MESSAGE_VERDICT, 0, "");
    role->ops->start(role, 1, &out);
    for (int w = 0; w < 3; w++) role->ops->peer_up(role, JOB_WORKER, w, 7, &out);
    for (int w = 0; w < 3; w++) assert_false(ps_role_awaits(role, w));
    role->ops->message(role, JOB_WORKER, 0, &m, &out);
    assert_false(ps_role_awaits(role, 0)); /* it has said so itself */
    role->ops->message(role, JOB_WORKER, 1, &m, &out);
    assert_false(ps_role_awaits(role, 1));
    outbox_empty(&out);
    assert_true(ps_role_awaits(role, 2));
    role->ops->peer_lost(role, JOB_WORKER, 2, "the link was reset", &out);
    role->ops->peer_up(role, JOB_WORKER, 2, 7, &out);
    assert_int_equal(count_sent(&out, 2, MESSAGE_VERDICT), 1);
    assert_true(ps_role_awaits(role, 2));
    role->ops->message(role, JOB_WORKER, 2, &m, &out);
    assert_false(ps_role_awaits(role, 2));
    outbox_free(&out);
    ps_role_free(role);
}

static void a_worker_tells_its_verdict_again_until_the_ps_has_said_that_it_knows(void **state)
{
    static const int64_t floats[2] = {1, 1};
    const struct worker_options options = {
        .ps_count = 2, .workers = 1, .incarnation = 1, .block_floats = floats};
    struct role *role = worker_role_new(&options);
    struct outbox out = {0};
    const struct message m = saying(MESSAGE_VERDICT, 0, "");
    role->ops->start(role, 1, &out);
    for (int ps = 0; ps < 2; ps++) role->ops->peer_up(role, JOB_PS, ps, 7, &out);
    for (int ps = 0; ps < 2; ps++) assert_false(worker_role_awaits(role, ps));
    role->ops->stop(role, EXIT_INPUT, "why", &out);
    for (int ps = 0; ps < 2; ps++) assert_int_equal(count_sent(&out, ps, MESSAGE_VERDICT), 1);
    for (int ps = 0; ps < 2; ps++) assert_true(worker_role_awaits(role, ps));
    role->ops->message(role, JOB_PS, 0, &m, &out);
    assert_false(worker_role_awaits(role, 0));
    outbox_empty(&out);
    role->ops->peer_lost(role, JOB_PS, 1, "the link was reset", &out);
    role->ops->peer_up(role, JOB_PS, 1, 7, &out);
    assert_int_equal(count_sent(&out, 1, MESSAGE_VERDICT), 1);
    assert_int_equal(out.at[0].send.message.verdict.exit_code, EXIT_INPUT);
    assert_true(worker_role_awaits(role, 1));
    role->ops->message(role, JOB_PS, 1, &m, &out);
    assert_false(worker_role_awaits(role, 1));
    outbox_free(&out);
    worker_role_free(role);
}

static void a_ps_says_that_it_knows_to_who_told_it(void **state)
{
    const struct ps_options options = {.workers = 2, .incarnation = 1};
    struct role *role = ps_role_new(&options);
    struct outbox out = {0};
    const struct message m = saying(MESSAGE_VERDICT, 0, "");
    role->ops->start(role, 1, &out);
    role->ops->peer_up(role, JOB_WORKER, 0, 7, &out);
    role->ops->message(role, JOB_WORKER, 0, &m, &out);
    assert_int_equal(count_sent(&out, 0, MESSAGE_VERDICT), 1);
    outbox_free(&out);
    ps_role_free(role);
}

/* As a task that a signal ends as soon as it has come: it needs no verdict, and is not back. */
static void a_ps_does_not_await_who_looked_in_and_said_nothing(void **state)
{
    const struct ps_options options = {.workers = 3, .incarnation = 1};
    struct role *role = ps_role_new(&options);
    struct outbox out = {0};
    const struct message heard = {.type = MESSAGE_LEADS, .leads.claims = LEADS_HEARD};
    role->ops->start(role, 1, &out);
    for (int w = 0; w < 3; w++) role->ops->peer_up(role, JOB_WORKER, w, 7, &out);
    role->ops->message(role, JOB_WORKER, 0, &heard, &out);
    role->ops->peer_lost(role, JOB_WORKER, 2, "closed the connection", &out);
    role->ops->leave(role, 130, "stopped by SIGINT", false, &out);
    for (int w = 0; w < 2; w++)
        role->ops->peer_lost(role, JOB_WORKER, w, "closed the connection", &out);
    assert_false(ps_role_awaits(role, 2));
    assert_true(ps_role_awaits(role, 0));
    assert_false(ps_role_awaits(role, 1));
    outbox_free(&out);
    ps_role_free(role);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_is_told_and_becomes_a_warning),
        cmocka_unit_test(codes_of_the_table_are_taken_as_they_are),
        cmocka_unit_test(what_a_task_fails_with_is_told_to_its_end),
        cmocka_unit_test(any_other_code_becomes_that_of_a_lost_peer),
        cmocka_unit_test(roles_end_with_codes_of_the_table_and_pass_on_no_others),
        cmocka_unit_test(a_worker_answers_the_verdict_on_the_link_that_it_came_on),
        cmocka_unit_test(a_ps_awaits_an_answer_of_each_worker_and_tells_it_again),
        cmocka_unit_test(a_worker_tells_its_verdict_again_until_the_ps_has_said_that_it_knows),
        cmocka_unit_test(a_ps_says_that_it_knows_to_who_told_it),
        cmocka_unit_test(a_ps_does_not_await_who_looked_in_and_said_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
