/* test_order.c - in which order a GPU does a step of a worker, on the emulated one: a node waits
 * for its own values alone, and gradients are on their way while backward goes on. */
#include "tests/cuda/emulator/emulated.h"
#include "tests/device/scenes.h"

#include <string.h>

enum { WARM_UP = 3, LOG_MAX = 400, HANDED = 'h', KERNEL = 'k', UP = 'u', DOWN = 'd' };

/* Five layers, of which each is worth a transfer of its own */
static const struct scene deep = {
    "{\"data\":{\"train\":{\"format\":\"digits\",\"rows\":200},\"batch_size\":10},\"model\":[{"
    "\"op\":"
    "\"flatten\"},{\"op\":\"dense\",\"units\":100},{\"op\":\"dense\",\"units\":700},{\"op\":"
    "\"dense\",\"units\":100},{\"op\":\"dense\",\"units\":700},{\"op\":\"dense\",\"units\":100},{"
    "\"op\":\"dense\",\"units\":10}],\"loss\":\"softmax_cross_entropy\",\"optimizer\":\"adam\","
    "\"train\":{\"mode\":\"sync\",\"last_step\":100}}",
    1, 2, 1};
enum { LAYERS = 5 };

/* A letter for each of what is done to a worker's values and gradients */
static struct {
    const struct rig *rig;
    char at[LOG_MAX + 1];
    int count;
} noted;

static void note(char what)
{
    assert_in_range(noted.count, 0, LOG_MAX - 1);
    noted.at[noted.count++] = what;
}

/* Batches and losses cross, too. */
static bool is_in(const float *block, int ps, const void *host)
{
    const float *at = host;
    return at >= block && at < block + noted.rig->store[ps].floats;
}

static void see(const struct emulated_done *done)
{
    if (done->what == EMULATED_KERNEL) note(KERNEL);
    for (int ps = 0; ps < noted.rig->ps_count; ps++) {
        if (done->what == EMULATED_UP && is_in(noted.rig->values[ps], ps, done->host)) note(UP);
        if (done->what == EMULATED_DOWN && is_in(noted.rig->gradients[ps][0], ps, done->host))
            note(DOWN);
    }
}

static void see_handed(struct rig *r, int worker, int ps)
{
    note(HANDED);
}

/* Of one step, which is recorded or not */
static void note_step(const struct scene *scene, bool is_hasty, bool is_recorded)
{
    static struct rig r;
    struct tape tape = {0};
    rig_open(&r, scene, ON_GPU);
    for (int step = 0; step < (is_recorded ? WARM_UP : 0); step++) rig_step(&r, step, &tape);
    emulated_set_hasty_copies(is_hasty);
    memset(&noted, 0, sizeof noted);
    noted.rig = &r;
    r.meanwhile = see_handed;
    emulated_tell(see);
    rig_step(&r, WARM_UP, &tape);
    emulated_tell(NULL);
    r.meanwhile = NULL;
    emulated_set_hasty_copies(true);
    rig_close(&r);
    tape_free(&tape);
}

static int how_many(char what)
{
    int count = 0;
    for (int i = 0; i < noted.count; i++) count += noted.at[i] == what;
    return count;
}

/* Copies come as late as they may: whatever could be computed before one has been. */
static void a_node_waits_for_its_own_values_alone(void **state)
{
    for (int is_recorded = 0; is_recorded < 2; is_recorded++) {
        note_step(&deep, false, is_recorded);
        const char *at = noted.at;
        for (int layer = 0; layer < LAYERS; layer++) {
            assert_int_equal(*at, UP);
            at += strspn(at, "u");
            assert_int_equal(*at, KERNEL);
            at += strspn(at, "k");
        }
    }
}

/* And as early as they may: what follows a piece has not been computed when it is handed on. */
static void gradients_travel_on_before_the_last_kernel(void **state)
{
    for (int is_recorded = 0; is_recorded < 2; is_recorded++) {
        note_step(&deep, true, is_recorded);
        const int pieces = how_many(DOWN);
        assert_int_equal(how_many(HANDED), pieces);
        assert_true(pieces >= LAYERS);
        const char *last = strrchr(noted.at, KERNEL), *at = noted.at;
        for (int i = 0; i + 1 < pieces; i++, at++) {
            at = strchr(at, HANDED);
            assert_non_null(at);
            assert_true(at < last);
        }
    }
}

/* ---- how values are cut ---- */

/* The mark of the piece in which this float of a block goes up */
static int mark_of(const struct ascent *a, int ps, int64_t at)
{
    int mark = -1, times = 0;
    for (int i = 0; i < a->piece_count; i++) {
        const struct rising *piece = &a->pieces[i];
        if (piece->ps != ps || at < piece->range.begin || at >= piece->range.end) continue;
        mark = piece->mark;
        times++;
    }
    assert_int_equal(times, 1);
    return mark;
}

static void check_node(const struct session *s, int node)
{
    const struct node *n = &s->graph->nodes[node];
    const int first = graph_first_param(s->graph, n);
    const int end = layout_first_slice(s->layout, first + n->param_count);
    int last = -1;
    for (int i = layout_first_slice(s->layout, first); i < end; i++) {
        const struct slice *slice = &s->layout->slices[i];
        const int from = mark_of(&s->replica.ascent, slice->ps, slice->offset);
        const int to = mark_of(&s->replica.ascent, slice->ps, slice->offset + slice->count - 1);
        if (from > last) last = from;
        if (to > last) last = to;
    }
    assert_true(s->replica.ascent.of_node[node] >= last);
}

/* Every float once, by marks that do not come before those of other nodes that are wanted first */
static void all_values_go_up_once_and_before_the_mark_of_their_node(void **state)
{
    static const struct scene *const scenes[] = {
        &deep,          &scene_mlp_momentum, &scene_cnn_adam,
        &scene_all_ops, &scene_partitioned,  &scene_narrow_parts};
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        static struct rig r;
        rig_open(&r, scenes[i], ON_GPU);
        const struct session *s = &r.session[0];
        const struct ascent *a = &s->replica.ascent;
        for (int ps = 0; ps < r.ps_count; ps++)
            for (int64_t at = 0; at < s->layout->block_floats[ps]; at++) (void)mark_of(a, ps, at);
        for (int node = 0; node < s->graph->node_count; node++)
            if (s->graph->nodes[node].param_count && !s->graph->nodes[node].sharing.of)
                check_node(s, node);
        for (int piece = 1; piece < a->piece_count; piece++)
            assert_true(a->pieces[piece].mark >= a->pieces[piece - 1].mark);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_waits_for_its_own_values_alone),
        cmocka_unit_test(gradients_travel_on_before_the_last_kernel),
        cmocka_unit_test(all_values_go_up_once_and_before_the_mark_of_their_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
