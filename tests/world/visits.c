/* visits.c - see visits.h. */
#include "tests/world/visits.h"

#include "tests/world/cluster.h"
#include "tests/world/files.h"
#include "tests/world/store.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { VISITORS_HOST = HOSTS_MAX - 1, TIMEOUT_S = 30, WORDS = 12, WORD_BYTES = 256 };
enum { TRIES_MOST = 100, AGAIN_MS = 20 };

static const char *const visit_names[] = {"var ls",    "var get", "var get global_step",
                                          "var add",   "var set", "var add 0",
                                          "var watch", "set",     "scale"};

/* ---- of a plan ---- */

void visits_draw(struct job_plan *plan, bool sets)
{
    const bool may_resize = !sets && draw_below(2) == 0;
    if (may_resize && draw_below(2) == 0) {
        plan->first_ps = 1 + (int)draw_below((uint64_t)plan->ps);
        plan->first_workers = 1 + (int)draw_below((uint64_t)plan->workers);
    }
    plan->visit_count = 1 + (int)draw_below(VISITS_MOST);
    for (int i = 0; i < plan->visit_count; i++) {
        struct visit *v = &plan->visits[i];
        v->kind = (enum visit_kind)draw_below(may_resize ? VISIT_KINDS : VISIT_SCALE);
        if (sets)
            v->kind = VISIT_RATE;
        else if (may_resize && draw_below(2))
            v->kind = VISIT_SCALE;
        v->at_ns = draw_below((UINT64_C(100) << draw_below(5)) * MS_NS);
        v->ps = (int)draw_below((uint64_t)plan->ps + 1);
        v->workers = (int)draw_below((uint64_t)plan->workers + 1);
        if (!v->ps && !v->workers) v->ps = 1;
    }
}

bool visits_resize(const struct job_plan *plan)
{
    bool ret = plan->first_ps > 0;
    for (int i = 0; i < plan->visit_count; i++) ret |= plan->visits[i].kind == VISIT_SCALE;
    return ret;
}

void visit_print(const struct visit *v, FILE *to)
{
    fprintf(to, "  at %.3f s: %s", (double)v->at_ns / 1e9, visit_names[v->kind]);
    if (v->kind == VISIT_SCALE) fprintf(to, " --ps=%d --workers=%d", v->ps, v->workers);
    fputc('\n', to);
}

/* ---- while it runs ---- */

struct words {
    char texts[WORDS][WORD_BYTES];
    const char *at[WORDS];
    int count;
};

/* With the number, unless it is 0. */
static void add_word(struct words *words, const char *text, int number)
{
    char *to = words->texts[words->count];
    if (number)
        snprintf(to, WORD_BYTES, "%s%d", text, number);
    else
        snprintf(to, WORD_BYTES, "%s", text);
    words->at[words->count++] = to;
}

static void add_command(struct words *words, const struct visit *v, const struct job_plan *plan)
{
    const bool is_counts = plan->model == MODEL_COUNTS;
    if (v->kind == VISIT_RATE) {
        add_word(words, "set", 0);
        add_word(words, "learning_rate", 0);
        add_word(words, "x1", 0);
        return;
    }
    add_word(words, v->kind == VISIT_SCALE ? "scale" : "var", 0);
    if (v->kind == VISIT_SCALE) {
        if (v->ps) add_word(words, "--ps=", v->ps);
        if (v->workers) add_word(words, "--workers=", v->workers);
        return;
    }
    const char *trained = is_counts ? "a/kernel" : "hidden/kernel";
    static const char *const verbs[] = {"ls", "get", "get", "add", "set", "add", "watch"};
    add_word(words, verbs[v->kind], 0);
    if (v->kind == VISIT_GET || v->kind == VISIT_TOUCH || v->kind == VISIT_WATCH)
        add_word(words, trained, 0);
    if (v->kind == VISIT_STEP) add_word(words, "global_step", 0);
    if (v->kind == VISIT_ADD || v->kind == VISIT_SET) add_word(words, "own", 0);
    if (v->kind == VISIT_ADD || v->kind == VISIT_SET) add_word(words, "1", 0);
    if (v->kind == VISIT_TOUCH) add_word(words, "0", 0);
    if (v->kind == VISIT_WATCH) add_word(words, "--every=0", 0), add_word(words, "--count=", 5);
}

static void look_again(void *subject, uint64_t of);

static void begin_visit(void *subject, uint64_t of)
{
    struct visit *v = subject;
    const struct cluster *cluster = (const struct cluster *)of;
    struct words words = {.count = 0};
    char hosts[WORD_BYTES] = "--ps_hosts=";
    for (int i = 0; i < cluster->plan->ps; i++)
        snprintf(hosts + strlen(hosts), sizeof hosts - strlen(hosts), "%sh%d:%d", i ? "," : "",
                 cluster->tasks[i].host, cluster->tasks[i].port);
    add_word(&words, "dtrain", 0);
    add_command(&words, v, cluster->plan);
    if (cluster->plan->coordinator) {
        snprintf(hosts, sizeof hosts, "--coordinator=%s", job_plan_coordinator(cluster->plan));
        add_word(&words, "--cluster=small", 0);
    }
    words.at[words.count++] = hosts;
    add_word(&words, "--timeout=", TIMEOUT_S);
    v->process = process_start("visitor", VISITORS_HOST, words.count, words.at);
    v->tries++;
    if (v->kind >= VISIT_RATE) event_at(machine.now_ns + AGAIN_MS * MS_NS, look_again, v, of);
}

/* Most jobs begin too late for it, or end too early. */
static void look_again(void *subject, uint64_t of)
{
    struct visit *v = subject;
    struct cluster *cluster = (struct cluster *)of;
    const bool has_ended = v->process->state == PROCESS_ENDED;
    if (cluster->done_ns || v->tries >= TRIES_MOST) return;
    if (!has_ended)
        event_at(machine.now_ns + AGAIN_MS * MS_NS, look_again, v, of);
    else if (v->process->said && (strstr(v->process->said, "try again") ||
                                  strstr(v->process->said, "has not begun to train")))
        begin_visit(v, of);
}

void visits_begin(struct cluster *cluster)
{
    memcpy(cluster->visits, cluster->plan->visits, sizeof cluster->visits);
    for (int i = 0; i < cluster->plan->visit_count && !cluster->is_calm; i++) {
        struct visit *v = &cluster->visits[i];
        const uint64_t at_ns = machine.now_ns + v->at_ns;
        event_at(at_ns, begin_visit, v, (uint64_t)cluster);
        if (at_ns > cluster->calm_ns) cluster->calm_ns = at_ns;
    }
}

bool visits_have_ended(const struct cluster *cluster)
{
    for (int i = 0; i < cluster->plan->visit_count && !cluster->is_calm; i++) {
        const struct process *process = cluster->visits[i].process;
        if (!process || process->state != PROCESS_ENDED) return false;
    }
    return true;
}

/* ---- what was set is what is kept ---- */

enum { STEPS_MOST = 64 };

struct steps_set {
    int at[STEPS_MOST], count;
};

static struct steps_set steps_kept(const struct cluster *cluster)
{
    char path[FILE_PATH_BYTES];
    size_t bytes = 0;
    const bool is_url = cluster->plan->is_url;
    struct steps_set ret = {.count = 0};
    snprintf(path, sizeof path, "%s/%s/settings.json", is_url ? "bucket" : "/disk",
             cluster->folder);
    const char *text = is_url ? store_bytes(path, &bytes) : files_text(path, &bytes);
    json_t *json = text ? json_loadb(text, bytes, 0, NULL) : NULL;
    const json_t *list = json_object_get(json, "changes");
    if (text && !json_is_array(list)) machine_fail("settings.json cannot be read");
    for (size_t i = 0; i < json_array_size(list) && ret.count < STEPS_MOST; i++)
        ret.at[ret.count++] =
            (int)json_integer_value(json_object_get(json_array_get(list, i), "step"));
    json_decref(json);
    return ret;
}

/* One of a step, which is taken out. */
static bool take_step(struct steps_set *steps, int step)
{
    for (int i = 0; i < steps->count; i++) {
        if (steps->at[i] != step) continue;
        steps->at[i] = steps->at[--steps->count];
        return true;
    }
    return false;
}

/* A visitor that was not answered knows nothing. */
static bool may_be_set(const struct visit *v)
{
    static const char *const unknown[] = {"it may still be set", "it may hold when",
                                          "dtrain set shows", "it holds when it is started again"};
    const char *said = v->process ? v->process->said : NULL;
    if (!said || v->process->killed_by) return true;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (strstr(said, unknown[i])) return true;
    return false;
}

/* What visitors were told holds is kept, and nothing else but what they were not told of. */
static void check_settings(const struct cluster *cluster)
{
    static const char from[] = " from step ";
    struct steps_set kept = steps_kept(cluster);
    int unknown = 0;
    for (int i = 0; i < cluster->plan->visit_count; i++) {
        const struct visit *v = &cluster->visits[i];
        if (v->kind != VISIT_RATE) continue;
        const char *step = v->process && v->process->said ? strstr(v->process->said, from) : NULL;
        if (!step || v->process->code)
            unknown += may_be_set(v);
        else if (!take_step(&kept, atoi(step + strlen(from))) &&
                 !cluster_says(cluster, "by dtrain set after step"))
            machine_fail("what holds%.20s is not kept", step);
    }
    if (kept.count > unknown)
        machine_fail("%d changes are kept of which nobody heard; from step %d on", kept.count,
                     kept.at[0]);
}

/* What is asked for is there, or the visitor says why not. */
void visits_check(const struct cluster *cluster)
{
    const struct job_plan *plan = cluster->plan;
    for (int i = 0; i < plan->visit_count && !cluster->is_calm; i++) {
        const struct visit *v = &cluster->visits[i];
        const char *said = v->process && v->process->said ? v->process->said : "";
        if (!v->process || v->process->killed_by == SIGKILL) continue;
        if (!*said)
            machine_fail("%s says nothing, and ends with %d", visit_names[v->kind],
                         v->process->code);
        if (v->kind != VISIT_STEP || v->process->code) continue;
        const double step = strtod(said, NULL);
        const bool has_end = !job_plan_has_epochs(plan) && !job_plan_counts_from_start(plan);
        if (step < 0 || (step > plan->last_step && has_end))
            machine_fail("global_step was %s, and the last one is %d", said, plan->last_step);
    }
    if (!cluster->is_calm) check_settings(cluster);
}
