/* test_spans.c - what a task records. */
#include "tests/core/train/hooks/rig.h"

enum { SMALL = 4 };

static void spans_are_kept_in_their_order(void **state)
{
    struct trace trace;
    rig_must(trace_open(&trace, SMALL));
    trace.step = 7;
    for (int i = 0; i < SMALL; i++) {
        const uint64_t begin_ns = trace_begin(&trace);
        trace_end(&trace, SPAN_FORWARD, i, begin_ns);
    }
    assert_int_equal(trace.count, SMALL);
    for (int i = 0; i < SMALL; i++) {
        const struct span *s = &trace.spans[i];
        assert_true(s->subject == (uint32_t)i && s->step == 7 && s->kind == SPAN_FORWARD);
        assert_true(s->begin_ns > 0 && s->end_ns >= s->begin_ns);
        assert_true(i == 0 || s->begin_ns >= trace.spans[i - 1].end_ns);
    }
    trace_close(&trace);
}

static void what_does_not_fit_is_counted(void **state)
{
    struct trace trace;
    rig_must(trace_open(&trace, SMALL));
    for (int i = 0; i < SMALL + 3; i++) trace_end(&trace, SPAN_DATA, i, trace_begin(&trace));
    assert_int_equal(trace.count, SMALL);
    assert_int_equal(trace.dropped, 3);
    assert_int_equal(trace.spans[SMALL - 1].subject, SMALL - 1);
    trace_clear(&trace);
    assert_true(trace.count == 0 && trace.dropped == 0);
    trace_close(&trace);
}

static void without_a_trace_no_clock_is_read(void **state)
{
    assert_int_equal(trace_begin(NULL), 0);
    trace_end(NULL, SPAN_STEP, 0, 0); /* must not fall */
}

static int count_of(const struct trace *trace, enum span_kind kind, int subject)
{
    int count = 0;
    for (int i = 0; i < trace->count; i++)
        count += trace->spans[i].kind == kind && trace->spans[i].subject == (uint32_t)subject;
    return count;
}

static void a_step_shows_every_node_that_computes_and_the_batch(void **state)
{
    struct rig *rig = *state;
    struct trace trace;
    double loss;
    rig_prepare(rig, (const char *const[]){
                         "optimizer.clip={\"type\": \"global_norm\", \"norm\": 1.0}", NULL});
    rig_must(trace_open(&trace, TRACE_SPANS_MAX));
    session_watch(&rig->session, &trace);
    rig_must(session_step(&rig->session, &loss));
    session_watch(&rig->session, NULL);
    rig_must(session_step(&rig->session, &loss)); /* of which nothing is recorded */

    const struct graph *graph = rig->session.graph;
    for (int i = 0; i < graph->node_count; i++) {
        const bool computes = !graph->nodes[i].is_view;
        assert_int_equal(count_of(&trace, SPAN_FORWARD, i), computes);
        assert_int_equal(count_of(&trace, SPAN_BACKWARD, i),
                         computes && graph->nodes[i].output.gradient);
    }
    assert_int_equal(count_of(&trace, SPAN_DATA, 0), 1);
    assert_int_equal(count_of(&trace, SPAN_LOSS, 0), 1);
    assert_int_equal(count_of(&trace, SPAN_CLIP, 0), 1);
    assert_int_equal(count_of(&trace, SPAN_BACKWARD, graph->node_count - 1), 1);
    trace_close(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_kept_in_their_order),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(without_a_trace_no_clock_is_read),
        cmocka_unit_test_setup_teardown(a_step_shows_every_node_that_computes_and_the_batch,
                                        rig_setup, rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
