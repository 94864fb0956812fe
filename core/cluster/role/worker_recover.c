/* worker_recover.c - the chief brings all ps to serve one generation: from a checkpoint, or
 * from the start. */
#include <stdio.h>

#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_inside.h"

static void choose(struct worker_role *w, const char *why_again, struct outbox *out)
{
    const struct action_choose choose = {
        .generation = w->membership != IN_NONE || w->has_served ? w->generation : 0,
        .why_again = outbox_text(out, why_again),
    };
    outbox_add_choose(out, choose);
}

/* Those that have nothing: "ps/1, ps/3" */
static void name_empty(const struct worker_role *w, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int ps = 0; ps < w->options.ps_count && used + TASK_NAME_MAX < size; ps++)
        if (w->servers[ps].state == PS_EMPTY)
            used += (size_t)snprintf(text + used, size - used, "%sps/%d", used ? ", " : "", ps);
}

void worker_recover(struct worker_role *w, struct outbox *out)
{
    choose(w, "", out);
}

static void note_choice(const struct worker_role *w, const struct choice *choice,
                        struct outbox *out)
{
    char empty[ACTION_TEXT_MAX / 2];
    uint64_t lost = w->global_step > choice->step ? w->global_step - choice->step : 0;
    name_empty(w, empty, sizeof empty);
    if (w->membership != IN_NONE)
        outbox_log(out, "%s came back empty: all go back to step %llu, %llu step%s are lost",
                   empty[0] ? empty : "a ps", (unsigned long long)choice->step,
                   (unsigned long long)lost, lost == 1 ? "" : "s");
}

void worker_role_chosen(struct role *role, const struct choice *choice, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    if (w->phase == ENDED) return;
    if (choice->result) {
        worker_end(w, exit_code_of(choice->result), choice->text, NOBODY, out);
        return;
    }
    note_choice(w, choice, out);
    worker_abandon(w, "the ps begin again", out);
    w->generation = choice->generation;
    w->arrays = choice->arrays;
    w->saving.has_saved = choice->is_saved;
    w->saving.saved_step = choice->step;
    worker_enter(w, DESCRIBING);
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        server_set_setup(&w->servers[ps], NOT_READY);
        outbox_add_describe(out, (struct action_describe){ps});
    }
}

static void fill(struct worker_role *w, int ps, uint64_t array, struct outbox *out)
{
    outbox_add_fill(out, (struct action_fill){ps, (int)array});
    struct message *m = worker_send(w, ps, MESSAGE_INIT, out);
    m->code = (uint32_t)array;
    m->length = w->servers[ps].bytes;
}

static void serve_when_ready(struct worker_role *w, struct outbox *out)
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (w->servers[ps].setup != IS_READY) return;
    worker_enter(w, STARTING);
    worker_save_first(w, out);
    w->has_served = true;
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        worker_send(w, ps, MESSAGE_SERVE, out);
        server_set_setup(&w->servers[ps], WAS_TOLD);
    }
}

void worker_ready(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    if (w->phase != DESCRIBING || w->servers[ps].setup == IS_READY) return;
    if (m->code == READY_FAILED) {
        message_text(m, text);
        worker_enter(w, HOLDING);
        choose(w, text[0] ? text : "cannot be read", out);
        return;
    }
    if (m->code == READY_WANTS && m->sequence < (uint64_t)w->arrays) {
        fill(w, ps, m->sequence, out);
        return;
    }
    server_set_setup(&w->servers[ps], IS_READY);
    serve_when_ready(w, out);
}
