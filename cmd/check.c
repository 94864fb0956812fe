/* check.c - `dtrain check [FLAGS] SPEC.json`: everything a worker does before its first step, and
 * what came out of it: nodes, bytes, placement. The flags are those of a run, so a command line can
 * be checked by putting one word into it.
 */
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cmd/check.h"
#include "cmd/own_flags.h"
#include "cmd/planned.h"
#include "core/base/files/file_system.h"
#include "core/train/variables/growing/growing.h"

static const char *const graph_forms[] = {"none", "dot", "mermaid", NULL}; /* enum graph_form */

struct check_flags {
    int graph; /* enum graph_form */
    bool json;
};

/* Flags that a run does not have. */
static const struct field own_flags[] = {
    FIELD_OF("graph", ENUM, struct check_flags, graph, .fallback = "\"none\"",
             .choices = graph_forms,
             .help = "print only the model, as a graph for Graphviz (dot) or Mermaid"),
    FIELD_OF("json", BOOL, struct check_flags, json, .fallback = "false",
             .help = "print the plan as one JSON object"),
    {0},
};
static const struct object own_flags_object = {
    .name = "check", .summary = "", .fields = own_flags, .size = sizeof(struct check_flags)};

struct check {
    struct check_flags flags;
    struct planned planned;
    struct arena arena;
};

static void print_check_help(FILE *out)
{
    fputs("  dtrain check [FLAGS] SPEC.json\n\n"
          "Reads the spec and the data, makes everything that a worker makes before its first "
          "step,\nand prints what came out: nodes, bytes, which ps holds what. The flags are those "
          "of a run\n(dtrain help flags): put the word check into its command line. Beside "
          "them:\n\n",
          out);
    flags_help(out, &own_flags_object);
}

static int64_t count_params(const struct node *node)
{
    int64_t count = 0;
    for (int i = 0; i < node->param_count && !node->sharing.of; i++)
        count += shape_count(&node->param[i].shape);
    return count;
}

static int widest(int width, const char *text)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

static void print_head(const struct head *head)
{
    const struct loss_node *loss = &head->loss;
    const char *name = loss->loss->object.name;
    if (head->name)
        printf("head %s: %s of \"%s\", label \"%s\", weight %g\n", head->name, name,
               loss->logits->name, loss->labels.name, (double)loss->factor);
    else
        printf("loss: %s\n", name);
    if (loss->loss->predicts == PREDICTS_PROBABILITY && !loss->logits->is_shares)
        printf("warning: %s takes probabilities, and \"%s\" makes any numbers: it wants the "
               "activation sigmoid, or the loss to be sigmoid_cross_entropy\n",
               name, loss->logits->name);
}

/* A table: node, op, output [batch, ...], parameters */
static void print_nodes(const struct graph *graph)
{
    char shape[SHAPE_TEXT_MAX];
    int name = (int)strlen("node"), op = (int)strlen("op"), output = (int)strlen("output");
    for (int i = 0; i < graph->node_count; i++) {
        const struct node *node = &graph->nodes[i];
        name = widest(name, node->name);
        op = widest(op, node->op->object.name);
        output = widest(output, shape_text(&node->output.shape, shape));
    }
    printf("%-*s  %-*s  %-*s  %12s\n", name, "node", op, "op", output, "output", "parameters");
    for (int i = 0; i < graph->node_count; i++) {
        const struct node *node = &graph->nodes[i];
        printf("%-*s  %-*s  %-*s  %12lld\n", name, node->name, op, node->op->object.name, output,
               shape_text(&node->output.shape, shape), (long long)count_params(node));
    }
    for (int i = 0; i < graph->head_count; i++) print_head(&graph->heads[i]);
}

static void print_data(const struct batch_source *data, const char *role)
{
    char shape[SHAPE_TEXT_MAX];
    if (!data) return;
    const struct column *features = batch_source_column(data, FEATURES_NAME);
    if (data->rows)
        printf("%s: %lld rows of ", role, (long long)data->rows);
    else
        printf("%s: rows that come, of ", role);
    if (features)
        printf("%s %s, %s\n", shape_text(&features->shape, shape), dtype_name(features->dtype),
               data->name);
    else
        printf("%d columns, %s\n", data->column_count - 1, data->name);
    if (data->use && *data->use) printf("  %s\n", data->use);
}

static bool updates(const struct optimizers *list, int optimizer, const struct param *param)
{
    return optimizers_find(list, param->name, param->moving) == optimizer;
}

/* If there are several optimizers: which variables this one updates. */
static void print_updated(const struct graph *graph, const struct optimizers *list, int optimizer)
{
    const char *before = ", for ";
    for (int i = 0; list->count > 1 && i < graph->param_count; i++) {
        if (!updates(list, optimizer, graph->params[i])) continue;
        printf("%s%s", before, graph->params[i]->name);
        before = ", ";
    }
    puts("");
}

/* Warns of tables of 1 MB and more for which every step would update all rows. */
static void warn_of_sweeps(const struct graph *graph, const struct optimizers *list, int optimizer)
{
    const struct optimizer *by = optimizer_of(&list->at[optimizer]);
    int tables = 0;
    double bytes = 0;
    for (int i = 0; by->sweeps && i < graph->param_count; i++) {
        const struct param *param = graph->params[i];
        const int64_t own = shape_count(&param->shape) * (int64_t)sizeof(float);
        if (!param->held || own < LAYOUT_LARGE_BYTES) continue;
        if (!updates(list, optimizer, param)) continue;
        tables++;
        bytes += (double)own;
    }
    if (tables)
        printf("warning: %s changes all rows of %d table%s, %.1f MB, in every step: lazy_adam "
               "changes those that a batch names (\"optimizers\" may be several, by variable)\n",
               by->object.name, tables, tables == 1 ? "" : "s", bytes / 1e6);
}

static void print_optimizer(const struct graph *graph, const struct optimizers *list, int optimizer)
{
    const struct optimizer_spec *spec = &list->at[optimizer];
    const int slots = optimizer_slots(optimizer_of(spec), spec->optimizer.attributes);
    int64_t floats = 0;
    for (int i = 0; i < graph->param_count; i++)
        if (updates(list, optimizer, graph->params[i]))
            floats += shape_count(&graph->params[i]->shape);
    printf("optimizer: %s, %d %s, %lld bytes", optimizer_of(spec)->object.name, slots,
           slots == 1 ? "slot" : "slots", (long long)(slots * floats * (int64_t)sizeof(float)));
    print_updated(graph, list, optimizer);
    warn_of_sweeps(graph, list, optimizer);
}

static void print_frozen(const struct graph *graph, const struct optimizers *list)
{
    const char *before = "frozen: ";
    for (int i = 0; i < graph->param_count; i++) {
        if (!optimizers_freeze(list, graph->params[i]->name)) continue;
        printf("%s%s", before, graph->params[i]->name);
        before = ", ";
    }
    if (list->frozen.count) puts("");
}

static void print_decay(const struct graph *graph, const struct optimizers *list)
{
    if (!(list->decay.rate > 0)) return;
    printf("weight decay: %g times the learning rate", list->decay.rate);
    const char *before = ", of ";
    for (int i = 0; i < graph->param_count; i++) {
        const struct param *param = graph->params[i];
        const bool is_updated = optimizers_find(list, param->name, param->moving) >= 0;
        if (!is_updated || !(optimizers_decay(list, param->name) > 0)) continue;
        printf("%s%s", before, param->name);
        before = ", ";
    }
    puts("");
}

static void print_average(const struct graph *graph, const struct optimizers *list)
{
    int64_t floats = 0;
    bool has_tables = false;
    if (!(list->average.decay > 0)) return;
    for (int i = 0; i < graph->param_count; i++) {
        const struct param *param = graph->params[i];
        const bool is_kept = optimizers_find(list, param->name, param->moving) >= 0;
        has_tables |= param->held > 0;
        if (is_kept && !param->held) floats += shape_count(&param->shape);
    }
    printf("averages: decay %g%s, %lld bytes%s\n", list->average.decay,
           list->average.num_updates ? ", less in the first steps" : "",
           (long long)(floats * (int64_t)sizeof(float)), has_tables ? "; tables have none" : "");
}

/* Bytes per row of growing tables, whose number of rows is unknown. */
static void print_row_bytes(const struct graph *graph, const struct optimizers *list)
{
    for (int i = 0; i < graph->param_count; i++) {
        const struct param *param = graph->params[i];
        if (!param->growth) continue;
        const int64_t bytes = check_row_bytes(param, list);
        printf("%s grows: %lld bytes a row with slots and index, %.2f GB a million; at most %lld "
               "rows on a ps, as far as its memory goes\n",
               param->name, (long long)bytes, (double)bytes * 1e-3, (long long)GROWING_ROWS_MAX);
    }
}

/* Whether the optimizer has TensorFlow's defaults, by which rare ids hardly learn in a new model:
 * their steps are small from the first on, and their embeddings begin large. */
static bool begins_slowly(const struct optimizer_spec *by)
{
    const struct variant *v = &by->optimizer;
    const double *initial =
        fields_find(v->kind->object, v->attributes, "initial_accumulator_value", FIELD_FLOAT);
    return initial && *initial >= 0.1;
}

static bool begins_large(const struct param *table)
{
    const struct object *object = &table->initializer->object;
    const double by_default = 1 / sqrt((double)table->shape.dim[1]);
    return strcmp(object->name, "truncated_normal") == 0 &&
           *(double *)fields_at(object, table->initializer_attributes, "stddev") >= by_default;
}

static bool says_yes_or_no(const struct graph *graph)
{
    for (int i = 0; i < graph->head_count; i++) {
        const enum prediction predicts = graph->heads[i].loss.loss->predicts;
        if (predicts == PREDICTS_CLASS || predicts == PREDICTS_NUMBER) return false;
    }
    return true;
}

static void print_advice(const struct graph *graph, const struct optimizers *list)
{
    const struct param *slow = NULL, *large = NULL;
    if (!says_yes_or_no(graph)) return;
    for (int i = 0; i < graph->param_count; i++) {
        const struct param *param = graph->params[i];
        if (!param->ids) continue;
        if (!slow && begins_slowly(&list->at[optimizers_find(list, param->name, 0)])) slow = param;
        if (!large && begins_large(param)) large = param;
    }
    if (slow)
        printf(
            "advice: %s: with TensorFlow's initial_accumulator_value 0.1 ids that are rare learn "
            "slowly; a new click model does better with 0.0001\n",
            slow->name);
    if (large)
        printf("advice: %s: embeddings begin with TensorFlow's stddev 1 / sqrt(dimension); a new "
               "click model does better with \"initializer\": {\"type\": \"truncated_normal\", "
               "\"stddev\": 0.01}\n",
               large->name);
}

/* Parameters and slots are spread over the ps; "one step" is the memory of each worker. */
static void print_bytes(const struct session *session, const struct spec *spec)
{
    const struct graph *graph = session->graph;
    const struct plan_size *size = &session_plan(session)->size;
    printf("parameters: %lld, %lld bytes\n", (long long)graph->param_floats,
           (long long)graph->param_floats * (long long)sizeof(float));
    for (int i = 0; i < spec->optimizers.count; i++) print_optimizer(graph, &spec->optimizers, i);
    print_frozen(graph, &spec->optimizers);
    print_decay(graph, &spec->optimizers);
    print_average(graph, &spec->optimizers);
    print_row_bytes(graph, &spec->optimizers);
    print_advice(graph, &spec->optimizers);
    printf("one step: values %zu, gradients %zu, saved %zu bytes; placed in %zu bytes\n",
           size->values, size->gradients, size->saved, size->block);
}

static void print_placement(const struct session *session)
{
    double times_share;
    int ps = layout_overloaded(session->layout, &times_share);
    layout_print(session->layout, stdout);
    if (ps >= 0) printf("warning: ps %d carries %.1f times its share\n", ps, times_share);
    if (session->layout->all_ps > session->layout->ps_count)
        puts("ps 0 has no follower: if it dies, all return to the last checkpoint");
}

static err print_memory(const struct check *check)
{
    struct ps_memory *memory;
    TRY(check_memory(&check->planned.run.spec, check->planned.session.layout,
                     &check->planned.session.rows, check->planned.workers, &memory));
    for (int ps = 0; ps < check->planned.ps_count; ps++) {
        const struct ps_memory *m = &memory[ps];
        char few[64] = "";
        if (m->gradients_at_once < check->planned.workers)
            snprintf(few, sizeof few, "; over tcp %d gradients at a time", m->gradients_at_once);
        printf(
            "ps %d needs: values %lld, slots %lld, windows %lld (%d x %lld%s), and %lld bytes more "
            "while it saves\n",
            ps, (long long)m->values, (long long)m->slots, (long long)m->windows,
            check->planned.workers, (long long)m->windows_each, few, (long long)m->save);
    }
    free(memory);
    return OK;
}

/* Where a run would save; relative to the working directory, not to the spec. */
static void print_folder(const char *directory)
{
    char here[PATH_MAX], shown[PATH_BYTES_MAX];
    if (!directory) return;
    if (path_is_relative(directory) && getcwd(here, sizeof here))
        printf("checkpoints: %s/%s\n", here, directory);
    else
        printf("checkpoints: %s\n", path_shown(directory, shown));
}

/* The scheduled learning rates of the first and the last step: to notice a decay in steps that was
 * chosen for one worker, and is only half done when two workers end. */
static void print_rates(const struct optimizers *list, int64_t last_step)
{
    for (int i = 0; i < list->count; i++) {
        const struct schedule_spec *schedule = optimizer_learning_rate(&list->at[i]);
        const double first = schedule_rate(schedule, 0);
        const double last = schedule_rate(schedule, last_step - 1);
        if (first == last) continue;
        printf("learning rate%s%s: %.3g at the first step, %.3g at the last\n",
               list->count > 1 ? " of " : "",
               list->count > 1 ? optimizer_of(&list->at[i])->object.name : "", first, last);
    }
}

static void print_steps(const struct check *check)
{
    const struct spec *spec = &check->planned.run.spec;
    int64_t rows = check->planned.session.data.train->rows;
    int64_t gradients = spec_replicas(spec, check->planned.workers);
    bool is_sync = spec->train.mode == MODE_SYNC;
    printf("run: %s, %d ps, %d worker%s, batch size %lld, %.6g steps per epoch, last step %lld\n",
           is_sync ? "sync" : "async", check->planned.ps_count, check->planned.workers,
           check->planned.workers == 1 ? "" : "s", (long long)spec->data.batch_size,
           (double)rows / (double)(gradients * spec->data.batch_size),
           (long long)spec_last_step(spec, rows, check->planned.workers));
    if (!rows) printf("data: followed, there are no epochs\n");
    print_rates(&spec->optimizers, spec_last_step(spec, rows, check->planned.workers));
    print_folder(spec->train.checkpoint.dir);
    if (spec_is_in_graph(spec) && check->planned.workers > 1)
        printf("data: worker 0 reads them for all %d workers, up to %lld batches ahead\n",
               check->planned.workers, (long long)spec->data.prefetch);
}

/* Each tower needs the memory of "one step"; towers on one device share the values. */
static void print_towers(const struct session *session)
{
    const struct towers *towers = &session->towers;
    for (int i = 0; i < towers->count; i++) {
        const struct tower *t = &towers->at[i];
        const int64_t floats = t->gradients ? session->graph->param_floats : 0;
        char where[32] = "CPU";
        if (t->device->is_separate) snprintf(where, sizeof where, "GPU %d", t->device->index);
        printf("tower %d: %lld of %lld rows on %s (%s), %lld bytes\n", i,
               (long long)t->graph->batch, (long long)session->graph->batch, where,
               t->device->kernels->name,
               (long long)t->plan->size.block +
                   (t->values ? 2 : 1) * floats * (long long)sizeof(float));
    }
}

static void print_device(const struct check *check)
{
    const struct device_answer *answer = &check->planned.answer;
    if (answer->is_gpu)
        printf("device: %s\n", answer->text);
    else
        printf("device: CPU%s%s\n", *answer->text ? ", " : "", answer->text);
    if (*answer->precision) puts(answer->precision);
}

static err print_all(const struct check *check)
{
    const struct session *session = &check->planned.session;
    char shown[PATH_BYTES_MAX];
    printf("%s: \"%s\", fingerprint %s\n", path_shown(check->planned.run.spec_path, shown),
           check->planned.run.spec.name, check->planned.run.spec.fingerprint);
    print_data(session->data.train, "training data");
    print_data(session->data.evaluation, "evaluation data");
    puts("");
    print_nodes(session->graph);
    puts("");
    print_bytes(session, &check->planned.run.spec);
    puts("");
    print_placement(session);
    TRY(print_memory(check));
    puts("");
    print_device(check);
    print_towers(session);
    print_steps(check);
    puts("ok");
    return OK;
}

static err print(const struct check *check)
{
    const struct session *session = &check->planned.session;
    if (check->flags.json)
        return check_print_json(&check->planned.run.spec, session, check->planned.ps_count,
                                check->planned.workers);
    if (!check->flags.graph) return print_all(check);
    check_print_graph(session->graph, (enum graph_form)check->flags.graph, stdout);
    return OK;
}

static int cmd_check(int argc, char **argv)
{
    struct check check = {0};
    cpu_environment_prepare(argv);
    argc--;
    argv++;
    err e = own_flags_take(&own_flags_object, &argc, argv, &check.arena, &check.flags);
    if (!e) e = planned_open(&check.planned, "check", argc, argv);
    if (!e) e = check_warm_start(&check.planned.run.spec, &check.planned.session);
    if (!e) e = print(&check);
    int code = e ? report_error(e) : EXIT_DONE;
    planned_close(&check.planned);
    arena_free(&check.arena);
    return code;
}

const struct command command_check = {
    .name = "check",
    .arguments = "[FLAGS] SPEC.json",
    .summary = "validate and print the plan of a run without running it",
    .run = cmd_check,
    .topic = "show the plan of a run without running it",
    .print_help = print_check_help,
    .takes_run_flags = true,
};
