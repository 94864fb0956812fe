/* defects.c - see defects.h. What is not here is in the code that it breaks (is_broken). */
#include "tests/simulate/defects.h"

#include <string.h>

#include "tests/simulate/world.h"

enum { SOMETIMES_PERCENT = 15 };

static const char *const names[DEFECTS] = {
    [DEFECT_NONE] = "none",
    [DEFECT_LEDGER_LOST] = "ledger_lost",
    [DEFECT_APPLIED_LATER] = "applied_later",
    [DEFECT_PUBLISHED_EARLY] = "published_early",
    [DEFECT_PUSH_FORGOTTEN] = "push_forgotten",
    [DEFECT_STEP_WRONG] = "step_wrong",
    [DEFECT_GENERATION_OPEN] = "generation_open",
    [DEFECT_RESUME_LOST] = "resume_lost",
    [DEFECT_TICKET_TWICE] = "ticket_twice",
    [DEFECT_PUSH_TWICE] = "push_twice",
    [DEFECT_SNAPSHOT_EARLY] = "snapshot_early",
    [DEFECT_RESTORED_OFF] = "restored_off",
    [DEFECT_FINISHED_LOST] = "finished_lost",
    [DEFECT_DROP_HIDDEN] = "drop_hidden",
    [DEFECT_OLD_CHECKPOINT] = "old_checkpoint",
    [DEFECT_VALUES_OLD] = "values_old",
    [DEFECT_BATCH_AGAIN] = "batch_again",
    [DEFECT_ARRAYS_MISSING] = "arrays_missing",
    [DEFECT_VERDICT_LOST] = "verdict_lost",
    [DEFECT_ANSWER_MISSED] = "answer_missed",
    [DEFECT_WORD_MISSED] = "word_missed",
    [DEFECT_SHARD_OF_ANOTHER] = "shard_of_another",
    [DEFECT_DELTA_OF_OLD] = "delta_of_old",
    [DEFECT_NUMBERS_FORGOTTEN] = "numbers_forgotten",
    [DEFECT_ADVANCE_KEPT] = "advance_kept",
    [DEFECT_PART_LOST] = "part_lost",
    [DEFECT_ROWS_OLD] = "rows_old",
    [DEFECT_ROWS_NOT_KEPT] = "rows_not_kept",
    [DEFECT_ROWS_EARLY] = "rows_early",
    [DEFECT_ROWS_ANSWER_OLD] = "rows_answer_old",
    [DEFECT_ROWS_IDS_OLD] = "rows_ids_old",
    [DEFECT_ROWS_STAY] = "rows_stay",
    [DEFECT_ROWS_PLANNED] = "rows_planned",
    [DEFECT_COVERAGE_LOST] = "coverage_lost",
    [DEFECT_QUEUE_LOST] = "queue_lost",
    [DEFECT_FED_AGAIN] = "remote_input_again",
    [DEFECT_FENCE_OPEN] = "fence_open",
    [DEFECT_SUM_LOST] = "sum_lost",
    [DEFECT_RESUME_MISSED] = "resume_missed",
    [DEFECT_KEPT_BY_LEDGER] = "kept_by_ledger",
    [DEFECT_COPY_OLD] = "copy_old",
    [DEFECT_FOLLOWER_LOSES] = "follower_loses",
};

const char *defect_name(enum defect defect)
{
    return names[defect];
}

enum defect defect_find(const char *name)
{
    int defect = 0;
    while (defect < DEFECTS && strcmp(names[defect], name) != 0) defect++;
    return (enum defect)defect;
}

static void touch_values(struct world *world, struct message *m)
{
    if (is_broken(world, DEFECT_STEP_WRONG) && chance(world, SOMETIMES_PERCENT)) m->values.step++;
    if (is_broken(world, DEFECT_DROP_HIDDEN)) m->values.flags &= ~(uint32_t)VALUES_DROPPED;
    if (is_broken(world, DEFECT_TICKET_TWICE) && !(m->values.flags & VALUES_FINAL) &&
        m->task == 0 && chance(world, SOMETIMES_PERCENT))
        m->values.flags |= VALUES_TICKET;
}

/* A message that is like another but for its type and number. */
static void repeat(struct world *world, struct link *link, enum direction direction,
                   const struct parcel *parcel, enum message_type type)
{
    struct parcel *again = network_post(world, link, direction, PARCEL_MESSAGE);
    again->message = parcel->message;
    again->message.type = type;
    if (type == MESSAGE_SAVED) again->message.saved.tag = parcel->message.snapshot.tag;
    if (type == MESSAGE_PUSH) again->message.push.push++;
    if (type == MESSAGE_ROWS) /* and no more of them */
        again->message.rows = (struct message_rows){.push = parcel->message.push.push + 1};
    again->content = parcel->content;
    again->source = parcel->source;
    again->pieces = parcel->pieces;
    if (type == MESSAGE_SAVED) again->message.body_bytes = 0;
}

void defects_touch_parcel(struct world *world, struct link *link, enum direction direction,
                          struct parcel *parcel)
{
    struct message *m = &parcel->message;
    if (m->type == MESSAGE_VALUES) touch_values(world, m);
    if (is_broken(world, DEFECT_PUBLISHED_EARLY) && m->type == MESSAGE_SNAPSHOT &&
        !m->snapshot.exit_code)
        repeat(world, link, direction, parcel, MESSAGE_SAVED);
    if (is_broken(world, DEFECT_PUSH_TWICE) && m->type == MESSAGE_PUSH &&
        chance(world, SOMETIMES_PERCENT)) {
        if (world->profile.has_rows) repeat(world, link, direction, parcel, MESSAGE_ROWS);
        repeat(world, link, direction, parcel, MESSAGE_PUSH);
    }
}

/* The ps believes that everything has come which it was told to wait for. */
static void forge_save(struct world *world, struct actor *ps, struct message *m)
{
    uint64_t numbers[1 + WORKERS_MAX * LEDGER_NUMBERS];
    struct ledger ledgers[WORKERS_MAX];
    int workers = world->profile.workers;
    if (m->body_bytes != (1 + (size_t)workers * LEDGER_NUMBERS) * sizeof *numbers) return;
    memcpy(numbers, m->body, m->body_bytes);
    for (int w = 0; w < workers; w++) ledgers[w] = *ps_role_ledger(ps->role, w);
    ledger_pack(ledgers, workers, numbers + 1);
    memcpy((void *)(uintptr_t)m->body, numbers, m->body_bytes);
}

static bool is_lost(struct world *world, const struct actor *to, const struct message *m)
{
    if (m->type == MESSAGE_RESUME)
        return is_broken(world, DEFECT_RESUME_LOST) ||
               (is_broken(world, DEFECT_RESUME_MISSED) && chance(world, SOMETIMES_PERCENT));
    if (m->type == MESSAGE_FINISHED) return is_broken(world, DEFECT_FINISHED_LOST);
    bool is_last_worker = to->job == JOB_WORKER && to->index == world->profile.workers - 1;
    return m->type == MESSAGE_VERDICT && is_last_worker && is_broken(world, DEFECT_VERDICT_LOST);
}

bool defects_touch_message(struct world *world, struct actor *to, struct message *m)
{
    if (is_lost(world, to, m)) return false;
    if (is_broken(world, DEFECT_GENERATION_OPEN))
        m->generation =
            to->job == JOB_PS ? to->config.generation : worker_role_generation(to->role);
    if (is_broken(world, DEFECT_SNAPSHOT_EARLY) && m->type == MESSAGE_SAVE && to->index != 0)
        forge_save(world, to, m);
    if (is_broken(world, DEFECT_NUMBERS_FORGOTTEN) && m->type == MESSAGE_LEDGER) {
        m->ledger.push = 0;
        memset((void *)(uintptr_t)m->body, 0, m->body_bytes);
    }
    return true;
}

void defects_lose_worker(struct world *world, struct actor *ps, int worker)
{
    if (is_broken(world, DEFECT_PUSH_FORGOTTEN) && ps->windows[worker])
        ps->windows[worker]->gradient[0].kind = CONTENT_NONE;
}
