/* worker_states.c - the states of a worker role: allowed transitions, and invariants. */
#include "core/cluster/role/worker_role_inside.h"

/* ---- which may follow which ---- */

void worker_set_phase(struct worker_role *w, enum worker_phase phase)
{
    enum { ANY = MAY(HOLDING) | MAY(JOINING) | MAY(ENDED) }; /* after news of a ps's state */
    static const uint16_t follows[] = {
        [HOLDING] = MAY(DESCRIBING) | ANY,
        [DESCRIBING] = MAY(STARTING) | ANY,
        [STARTING] = ANY,
        [JOINING] = MAY(COMPUTING) | MAY(DEPARTING) | MAY(FINISHING) | ANY,
        [ASKING] = MAY(WAITING) | MAY(DEPARTING) | MAY(FINISHING) | ANY,
        [WAITING] = MAY(COMPUTING) | MAY(DEPARTING) | MAY(FINISHING) | ANY,
        [COMPUTING] = MAY(ASKING) | MAY(WAITING) | MAY(DEPARTING) | MAY(FINISHING) | ANY,
        [DEPARTING] = MAY(FINISHING) | ANY,
        [FINISHING] = MAY(DEPARTING) | MAY(SAVING_LAST) | ANY,
        [SAVING_LAST] = MAY(FINISHING) | MAY(EVALUATING) | ANY,
        [EVALUATING] = MAY(FINISHING) | ANY, /* another worker leads */
        [ENDED] = 0,
    };
    w->phase = state_after(follows, w->phase, phase);
}

void worker_set_participation(struct worker_role *w, enum participation participation)
{
    static const uint16_t follows[] = {
        [IN_NONE] = MAY(IN_CURRENT),
        [IN_EARLIER] = MAY(IN_CURRENT),
        [IN_CURRENT] = MAY(IN_EARLIER),
    };
    w->participation = state_after(follows, w->participation, participation);
}

void worker_set_ending(struct worker_role *w, enum ending ending)
{
    static const uint16_t follows[] = {
        [GOES_ON] = MAY(STOPS) | MAY(DEPARTS) | MAY(LEAVES),
        [DEPARTS] = MAY(STOPS) | MAY(LEAVES),
        [STOPS] = MAY(LEAVES),
        [LEAVES] = 0,
    };
    w->ending = state_after(follows, w->ending, ending);
}

void worker_set_save(struct worker_role *w, enum save_phase phase)
{
    static const uint16_t follows[] = {
        [SAVE_IDLE] = MAY(SAVE_FIRST),
        [SAVE_FIRST] = MAY(SAVE_REST) | MAY(SAVE_IDLE),
        [SAVE_REST] = MAY(SAVE_PUBLISHING) | MAY(SAVE_IDLE),
        [SAVE_PUBLISHING] = MAY(SAVE_IDLE),
    };
    w->saving.phase = state_after(follows, w->saving.phase, phase);
}

void server_set_contact(struct server *s, enum contact contact)
{
    static const uint16_t follows[] = {
        [GONE] = MAY(FOUND),
        [FOUND] = MAY(KNOWN) | MAY(GONE),
        [KNOWN] = MAY(GONE) | MAY(FOUND), /* over a better link */
    };
    s->contact = state_after(follows, s->contact, contact);
}

void server_set_inquiry(struct server *s, enum inquiry inquiry)
{
    static const uint16_t follows[] = {
        [NOT_ASKED] = MAY(ASKED),
        [ASKED] = MAY(ANSWERED) | MAY(NOT_ASKED),
        [ANSWERED] = MAY(ASKED) | MAY(NOT_ASKED),
    };
    s->join.inquiry = state_after(follows, s->join.inquiry, inquiry);
}

void server_set_setup(struct server *s, enum setup_phase phase)
{
    static const uint16_t follows[] = {
        [NOT_READY] = MAY(IS_READY),
        [IS_READY] = MAY(WAS_TOLD) | MAY(NOT_READY),
        [WAS_TOLD] = MAY(NOT_READY),
    };
    s->setup = state_after(follows, s->setup, phase);
}

void server_set_shard(struct server *s, enum shard_phase phase)
{
    static const uint16_t follows[] = {
        [NO_SHARD] = MAY(SHARD_WANTED),
        [SHARD_WANTED] = MAY(SHARD_COPIED) | MAY(NO_SHARD),
        [SHARD_COPIED] = MAY(SHARD_SAVED) | MAY(NO_SHARD),
        [SHARD_SAVED] = MAY(NO_SHARD),
    };
    s->shard_phase = state_after(follows, s->shard_phase, phase);
}

/* ---- which go together ---- */

static bool is_chiefs(enum worker_phase phase)
{
    return phase == DESCRIBING || phase == STARTING || phase == SAVING_LAST || phase == EVALUATING;
}

static const char *check_server(const struct worker_role *w, int ps)
{
    const struct server *s = &w->servers[ps];
    bool is_out = w->phase == ASKING || w->phase == WAITING;
    if (s->contact == GONE && (s->join.inquiry != NOT_ASKED || s->push.has_answered))
        return "a ps that is gone was asked or has answered";
    if (s->join.inquiry == ANSWERED && !worker_is_asked(w, ps))
        return "a ps answers that is not asked";
    if (s->push.is_out && !is_out) return "a push is out of a step that is not";
    if (s->push.is_out && s->push.number != w->now.push) return "a push is out of another step";
    if (s->ledger.taken > s->ledger.received) return "a push was taken that did not come";
    if (s->setup != NOT_READY && !worker_is_chief(w)) return "not the chief, and sets up";
    if (s->setup == IS_READY && w->phase > DESCRIBING) return "a ps is ready and was not told";
    return NULL;
}

static const char *check_steps(const struct worker_role *w)
{
    const struct server *first = &w->servers[0];
    bool is_in_step = w->phase == ASKING || w->phase == WAITING || w->phase == COMPUTING;
    if (is_in_step && (w->participation != IN_CURRENT || !w->now.push)) return "a step of nothing";
    if (w->phase == COMPUTING && first->push.is_target && !w->now.has_ticket && !w->now.in_doubt)
        return "no ticket to compute";
    if ((w->phase == FINISHING || w->phase == DEPARTING) && w->participation != IN_CURRENT)
        return "finished what it was not in";
    if (w->phase != ASKING) return NULL;
    if (!w->options.drops_gradients || !first->push.is_out)
        return "asks ps/0 what it does not decide";
    return first->push.has_answered ? "asks ps/0, which has answered" : NULL;
}

static const char *check_saving(const struct worker_role *w)
{
    static const struct {
        enum shard_phase least, most; /* range for ps/0, which makes the first snapshot */
    } firsts[] = {
        [SAVE_IDLE] = {NO_SHARD, NO_SHARD},
        [SAVE_FIRST] = {SHARD_WANTED, SHARD_WANTED},
        [SAVE_REST] = {SHARD_COPIED, SHARD_SAVED},
        [SAVE_PUBLISHING] = {SHARD_SAVED, SHARD_SAVED},
    };
    const enum save_phase phase = w->saving.phase;
    const enum shard_phase first = w->servers[0].shard_phase;
    if (first < firsts[phase].least || first > firsts[phase].most) return "ps/0 saves otherwise";
    for (int ps = 1; ps < w->options.ps_count; ps++) {
        const enum shard_phase rest = w->servers[ps].shard_phase;
        bool is_early = first <= SHARD_WANTED && rest > first;
        bool is_missing = phase == SAVE_PUBLISHING && rest != NO_SHARD && rest != SHARD_SAVED;
        if (is_early || is_missing) return "a shard is not where the checkpoint is";
    }
    if (phase != SAVE_IDLE && !worker_is_chief(w)) return "not the chief, and saves";
    bool is_old = w->saving.generation != w->generation;
    return phase != SAVE_IDLE && is_old ? "saves what is lost" : NULL;
}

const char *worker_role_check(const struct role *role)
{
    const struct worker_role *w = (const struct worker_role *)role;
    const char *wrong = NULL;
    if (w->phase == ENDED) return NULL; /* it stays as it was */
    if (is_chiefs(w->phase) && !worker_is_chief(w)) return "does what the chief does";
    if (w->phase >= DESCRIBING && !w->generation) return "takes part in no generation";
    if (w->phase == DEPARTING && w->ending < STOPS) return "leaves, and is not to";
    if (w->ending >= DEPARTS && !w->stop.code) return "leaves for no reason";
    for (int ps = 0; ps < w->options.ps_count && !wrong; ps++) wrong = check_server(w, ps);
    if (!wrong) wrong = check_steps(w);
    return wrong ? wrong : check_saving(w);
}
