/* test_fair.c - many links of one loop: who never stops talking keeps nobody from being heard, and
 * who asks for what takes long gets no more of the loop's time than who asks for it now and then.
 * Said in messages and looks, or in a time that is the test's own. */
#include "tests/net/pair.h"

#include <string.h>

#include "net/link.h"
#include "net/loop_inside.h"

enum {
    LINKS_MAX = 12,                            /* more than are looked at without epoll */
    LEFT = 256,                                /* of a link that talks, on their way at any time */
    ONE_LOOK = 2 * LINK_MESSAGES_PER_LOOK_MAX, /* by looking, and once more by epoll */
    TURNS = 50,
    LOOKS_MAX = 2, /* until a word in shared memory is heard; of a socket the system decides */
    TAKES_LONG_US = 700, /* to answer */
    WAYS = 3,            /* by which a link is looked at in one look: itself, and two sockets */
};

static uint64_t virtual_ns;

static uint64_t read_virtual(void)
{
    return virtual_ns;
}

/* The links of both sides; the first ones talk: what comes over them is followed by as much. */
struct crowd {
    int count, talking;
    struct link *near[LINKS_MAX], *far[LINKS_MAX];
    int heard_in_look[LINKS_MAX], heard_of_silent;
    int most_in_look;
    uint64_t costs_ns; /* of each message */
};

static void say(struct pair *pair, struct link *link)
{
    assert_int_equal(pair_send(&pair->client, link, &(struct message){.type = MESSAGE_JOIN}), OK);
}

static void hear(struct end *end, struct link *link, const struct message *message)
{
    struct crowd *crowd = end->own;
    int i = 0;
    while (crowd->far[i] != link) i++;
    assert_true(++crowd->heard_in_look[i] <= crowd->most_in_look);
    virtual_ns += crowd->costs_ns;
    if (i < crowd->talking)
        say(end->pair, crowd->near[i]);
    else
        crowd->heard_of_silent++;
}

static void gather(struct pair *pair, struct crowd *crowd)
{
    pair->server.own = crowd;
    pair->server.on_message = hear;
    loop_set_clock(pair->server_loop, read_virtual);
    for (int i = 0; i < crowd->count; i++) {
        pair_connect(pair);
        crowd->near[i] = pair->client.link;
        crowd->far[i] = pair->server.link;
    }
    for (int i = 0; i < crowd->talking; i++)
        for (int k = 0; k < LEFT; k++) say(pair, crowd->near[i]);
}

static void hear_one_look(struct pair *pair, struct crowd *crowd)
{
    memset(crowd->heard_in_look, 0, sizeof crowd->heard_in_look);
    pair_poll(pair);
}

/* The silent ones say a word each, again when all have been heard. */
static void check_turns(struct pair *pair, struct crowd crowd)
{
    const int silent = crowd.count - crowd.talking;
    pair_stop(pair);
    pair_start(pair, pair->transport);
    gather(pair, &crowd);
    for (int turn = 1; turn <= TURNS; turn++) {
        int looks = 0;
        for (int i = crowd.talking; i < crowd.count; i++) say(pair, crowd.near[i]);
        while (crowd.heard_of_silent < turn * silent) {
            hear_one_look(pair, &crowd);
            looks++;
        }
        if (pair->transport == &transport_shm) assert_true(looks <= LOOKS_MAX);
    }
}

static void who_talks_without_end_leaves_others_their_turn(void **state)
{
    check_turns(*state, (struct crowd){.count = 4, .talking = 1, .most_in_look = ONE_LOOK});
}

static void many_who_talk_leave_one_its_turn(void **state)
{
    check_turns(
        *state,
        (struct crowd){.count = LINKS_MAX, .talking = LINKS_MAX - 1, .most_in_look = ONE_LOOK});
}

/* As a worker that joins again and again, for which all values are copied each time. */
static void who_asks_for_much_gets_one_answer_a_turn(void **state)
{
    const struct crowd crowd = {.most_in_look = WAYS, .costs_ns = TAKES_LONG_US * 1000};
    struct crowd few = crowd, many = crowd;
    few.count = 4, few.talking = 1;
    many.count = LINKS_MAX, many.talking = LINKS_MAX - 1;
    check_turns(*state, few);
    check_turns(*state, many);
}

/* Whatever the messages cost: no look takes longer than a slice of each, and what came last. */
static void a_turn_is_as_long_as_a_slice(void **state)
{
    const int slice = LINK_SLICE_US;
    for (int cost_us = 1; cost_us <= 2 * slice; cost_us *= 3)
        check_turns(*state, (struct crowd){.count = 2,
                                           .talking = 1,
                                           .most_in_look = WAYS * ((slice + cost_us - 1) / cost_us),
                                           .costs_ns = (uint64_t)cost_us * 1000});
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(who_talks_without_end_leaves_others_their_turn),
        cmocka_unit_test(many_who_talk_leave_one_its_turn),
        cmocka_unit_test(who_asks_for_much_gets_one_answer_a_turn),
        cmocka_unit_test(a_turn_is_as_long_as_a_slice),
    };
    const size_t count = sizeof tests / sizeof tests[0];
    return run_over(&transport_tcp, tests, count) + run_over(&transport_shm, tests, count) +
           run_over_tls(tests, count);
}
