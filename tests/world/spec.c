/* spec.c - what the job of a plan trains. Quotes are written as ' here. */
#include "tests/world/cluster.h"

#include "tests/world/files.h"

#include <string.h>

enum { TEXT_BYTES = 4096, LARGE_ROWS = 7 << 20, MANY_ROWS = 4096 };

/* Every gradient is -1 for each number, and -1 / batch for the row of each example: with a rate of
 * 1 values count them. */
static void counts_text(const struct job_plan *plan, const char *folder, char *ret, size_t size)
{
    static const char data[] = "'format': 'csv', 'label': 'y', 'label_type': 'number'";
    char eval[TEXT_BYTES / 8] = "", buckets[32], from[128];
    snprintf(buckets, sizeof buckets, ", 'buckets': %d", plan->is_large ? LARGE_ROWS : ROWS);
    if (plan->evaluates)
        snprintf(eval, sizeof eval, "'eval': {%s, 'file': '%s'},", data,
                 plan->training.evaluates_much ? "many.csv" : "rows.csv");
    snprintf(from, sizeof from, "'file': 'rows.csv', 'stream': '%s', 'shuffle_rows': 16",
             plan->is_streamed ? "always" : "never");
    if (job_plan_follows(plan))
        snprintf(from, sizeof from, "'file': '%s-new/*.csv', 'follow': true, 'settle_secs': 0.2",
                 folder);
    snprintf(ret, size,
             "'data': {'train': {%s, %s}, %s "
             "'batch_size': 4, "
             "'columns': [{'column': 'identity', 'name': 'id'%s}, {'column': 'numeric', 'name': "
             "'one'}]}, "
             "'model': [{'op': 'embedding', 'name': 'rows', 'inputs': ['id'], 'dimension': 1, "
             "'initializer': 'zeros'%s}, "
             "{'op': 'dense', 'name': 'a', 'inputs': ['one'], 'units': 1, "
             "'kernel_initializer': 'zeros'}, "
             "{'op': 'dense', 'name': 'b', 'inputs': ['one'], 'units': 1, "
             "'kernel_initializer': 'zeros'}, "
             "{'op': 'add', 'name': 'sum', 'inputs': ['rows', 'a', 'b']}], "
             "'loss': 'huber', 'optimizer': {'type': 'gradient_descent', 'learning_rate': 1}",
             data, from, eval, plan->grows ? "" : buckets,
             plan->grows ? ", 'capacity': 'dynamic'" : "");
}

static void digits_text(const struct job_plan *plan, char *ret, size_t size)
{
    snprintf(ret, size,
             "'data': {'train': {'format': 'digits', 'rows': 60}, %s 'batch_size': %d, 'scale': "
             "0.0039}, "
             "'model': [{'op': 'avg_pool', 'pool_size': 4}, {'op': 'flatten'}, "
             "{'op': 'dense', 'name': 'hidden', 'units': 6, 'activation': 'relu'}, "
             "{'op': 'dense', 'name': 'logits', 'units': 10}], "
             "'loss': 'softmax_cross_entropy', "
             "'optimizer': {'type': 'momentum', 'learning_rate': 0.01, 'momentum': 0.9}",
             plan->evaluates ? "'eval': {'format': 'digits', 'rows': 20, 'split': 'test'}," : "",
             plan->towers ? 6 : 5);
}

/* What the seed adds to how it trains, or nothing. */
static void add_keeping(const struct job_plan *plan, char *ret, size_t size)
{
    const struct training_plan *t = &plan->training;
    static const char *const averages[] = {
        "", ", 'average_decay': 0.9, 'average_num_updates': false", ", 'average_decay': 0.99"};
    static const char *const wires[WIRES] = {"float32", "bf16", "fp16"};
    static const char *const frozen[MODEL_KINDS][FROZEN] = {
        {"", "'b/*'", "'a/*', 'b/*'"}, {"", "'hidden/*'", "'hidden/*', '*bias'"}};
    snprintf(ret, size, "%s", averages[t->average]);
    if (t->frozen)
        snprintf(ret + strlen(ret), size - strlen(ret), ", 'freeze': [%s]",
                 frozen[plan->model][t->frozen]);
    if (t->wire)
        snprintf(ret + strlen(ret), size - strlen(ret), ", 'wire': '%s', 'wire_values': '%s'",
                 wires[t->wire], wires[t->wire]);
    if (t->is_held_twice) snprintf(ret + strlen(ret), size - strlen(ret), ", 'ps_replicas': 1");
    if (t->publish_ms)
        snprintf(ret + strlen(ret), size - strlen(ret), ", 'publish': {'every_secs': %d.%03d}",
                 t->publish_ms / 1000, t->publish_ms % 1000);
}

static void put_rows(const char *path, int first, int count)
{
    static char text[MANY_ROWS * 16];
    char *to = stpcpy(text, "id,one,y\n");
    for (int i = 0; i < count; i++) to += sprintf(to, "%d,1,1000000\n", (first + i) % ROWS);
    files_put(path, text);
}

/* All ids in turn, and batches that begin in one file and end in the next. */
void job_put_file(const struct job_plan *plan, const char *folder, int number)
{
    enum { MORE = 2 };
    const bool is_last = number + 1 == plan->training.files;
    const int first = number * ROWS + (number % 2 ? MORE : 0);
    const int end = (number + 1) * ROWS + (number % 2 || is_last ? 0 : MORE);
    char path[FILE_PATH_BYTES];
    snprintf(path, sizeof path, "/job/%s-new/%03d.csv", folder, number);
    put_rows(path, first, end - first);
    snprintf(path, sizeof path, "/job/%s-new/_SUCCESS", folder);
    if (is_last) files_put(path, "");
}

void job_put(const struct job_plan *plan, const char *folder)
{
    char what[TEXT_BYTES / 2], text[TEXT_BYTES], path[FILE_PATH_BYTES];
    if (plan->model == MODEL_COUNTS)
        counts_text(plan, folder, what, sizeof what);
    else
        digits_text(plan, what, sizeof what);
    char towers[64] = "", best[64] = "", pins[96] = "", keeping[256], ways[256], end[64];
    const struct training_plan *t = &plan->training;
    if (job_plan_has_epochs(plan))
        snprintf(end, sizeof end, "'epochs': %d", t->epochs);
    else
        snprintf(end, sizeof end, "'%s': %d",
                 job_plan_counts_from_start(plan) ? "num_steps" : "last_step",
                 job_plan_follows(plan) ? 0 : plan->last_step);
    snprintf(ways, sizeof ways, "'accumulate': %d, 'max_staleness': %d, 'worker_timeout_secs': %d",
             t->accumulate, t->staleness, t->worker_timeout_s ? t->worker_timeout_s : 60);
    if (t->replicas && !visits_resize(plan))
        snprintf(ways + strlen(ways), sizeof ways - strlen(ways), ", 'replicas_to_aggregate': %d",
                 t->replicas);
    add_keeping(plan, keeping, sizeof keeping);
    if (plan->towers) snprintf(towers, sizeof towers, ", 'towers': %d", plan->towers);
    if (t->is_held_twice && plan->model == MODEL_COUNTS &&
        !plan->grows) /* of which all have a part */
        snprintf(pins, sizeof pins, "'placement': {'pins': [{'match': 'rows/*', 'ps': 1}]}, ");
    if (plan->keep_best) snprintf(best, sizeof best, ", 'keep_best': %d", plan->keep_best);
    snprintf(text, sizeof text,
             "{'name': 'job', 'seed': 7, %s, %s'train': {'mode': '%s', %s, %s, "
             "'log_every_steps': 10, 'checkpoint_dir': '%s', 'save_checkpoint_steps': %d, "
             "'evaluate_every_steps': %d, 'replication': '%s'%s%s%s}}",
             what, pins, plan->is_sync ? "sync" : "async", end, ways, job_folder(plan, folder),
             plan->save_steps, plan->evaluates ? 13 : 0,
             plan->is_in_graph ? "in_graph" : "between_graph", towers, best, keeping);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    snprintf(path, sizeof path, "/job/%s.json", folder);
    files_put(path, text);
    snprintf(path, sizeof path, "/job/%s-new", folder);
    files_make_folder(path);
    put_rows("/job/rows.csv", 0, ROWS);
    if (t->evaluates_much) put_rows("/job/many.csv", 0, MANY_ROWS);
}
