/* help.c - prints the field tables: `dtrain help [TOPIC [NAME]]` as text, `dtrain help --json` all
 * of them for man pages and completions, `dtrain schema` as a JSON Schema of the spec.
 */
#include <string.h>

#include "cmd/cmd.h"
#include "core/base/fields/help.h"
#include "core/data/columns/column.h"
#include "core/data/labels.h"
#include "core/train/hooks/hook.h"

enum { TOPIC_TEXT_MAX = 256, KINDS_SHOWN_MAX = 512 };

/* A topic is a list of kinds (with the fields that all of them have), an object, or a text. */
struct topic {
    const char *name, *alias; /* alias: NULL: none */
    const char *summary;
    const struct kinds *kinds;
    const struct object *object;
    void (*print)(FILE *);
};

static void print_flags(FILE *out)
{
    flags_help(out, &run_flags_object);
    fputs("\nA flag is written --name=value or --name value. It beats its environment variable,\n"
          "which beats TF_CONFIG.\n",
          out);
}

static void print_cluster(FILE *out)
{
    fputs("Every task is started with the same lists of addresses, in any order:\n\n"
          "  dtrain --job_name=ps --task_index=0 --ps_hosts=a:2221,b:2222 \\\n"
          "         --worker_hosts=c:2223,d:2224\n"
          "  dtrain --job_name=worker --task_index=1 --ps_hosts=a:2221,b:2222 \\\n"
          "         --worker_hosts=c:2223,d:2224 SPEC.json\n\n"
          "Worker 0 is the chief: it initialises, prints the placement, evaluates at the end and\n"
          "writes --result. Every task ends by itself, with the same exit code.\n\n"
          "The environment variables JOB_NAME, TASK_INDEX, PS_HOSTS and WORKER_HOSTS say the same\n"
          "where a flag is absent, and so does TensorFlow's TF_CONFIG, whose chief is worker 0:\n\n"
          "  {\"cluster\": {\"chief\": [\"c:2223\"], \"worker\": [\"d:2224\"],\n"
          "               \"ps\": [\"a:2221\", \"b:2222\"]},\n"
          "   \"task\": {\"type\": \"worker\", \"index\": 0}}\n\n"
          "dtrain --job_name=evaluator with the same lists and SPEC.json stands beside it: it\n"
          "evaluates each new checkpoint, keeps the best (--keep_best, --best_metric), and ends\n"
          "with the job. dtrain help var: variables seen and changed from outside.\n\n"
          "dtrain --local_ps=2 --local_workers=2 SPEC.json starts such a cluster on this host,\n"
          "dtrain --ssh=ps=2 --hostfile=HOSTS SPEC.json one on the hosts of a file, by ssh.\n",
          out);
}

static void print_exit_codes(FILE *out)
{
    for (const struct exit_code_row *row = exit_code_table; row->text; row++)
        fprintf(out, "  %3d  %s\n", row->code, row->text);
    fputs("\n1 to 127: the same command fails again until something is changed.\n"
          "128 and above: the same command may succeed when it is started again.\n"
          "129 comes from a limit on waiting (dtrain help timeouts), 130 and 143 from a signal\n"
          "(dtrain help signals).\n",
          out);
}

static const struct topic topics[] = {
    {.name = "spec", .summary = "all keys of SPEC.json", .object = &spec_object},
    {.name = "flags", .summary = "the flags of a run", .print = print_flags},
    {.name = "cluster",
     .alias = "TF_CONFIG",
     .summary = "how the tasks of a cluster are started and addressed",
     .print = print_cluster},
    {.name = "timeouts", .summary = "what tasks wait for, and how long", .print = print_timeouts},
    {.name = "signals", .summary = "what each signal does", .print = print_signals},
    {.name = "counters",
     .summary = "what tasks count: dtrain status, /metrics, SIGUSR1",
     .print = print_counters},
    {.name = "environment", .summary = "environment variables", .print = print_environment},
    {.name = "exit-codes", .summary = "what the exit codes mean", .print = print_exit_codes},
    {.name = "op",
     .summary = "the nodes of a model",
     .kinds = &node_kinds,
     .object = &node_spec_object},
    {.name = "repeat", .summary = "nodes several times", .object = &repeat_object},
    {.name = "block", .summary = "nodes that are used as an op", .object = &block_object},
    {.name = "loss",
     .summary = "the objective that training minimizes",
     .kinds = &loss_kinds,
     .object = &loss_spec_object},
    {.name = "head",
     .alias = "heads",
     .summary = "several outputs, each with its label, loss and metrics",
     .object = &head_spec_object},
    {.name = "metric", .summary = "metrics reported beside the loss", .kinds = &metric_kinds},
    {.name = "initializer", .summary = "initial values of variables", .kinds = &initializer_kinds},
    {.name = "regularizer", .summary = "weight penalties (L1, L2)", .object = &regularizer_object},
    {.name = "optimizer",
     .summary = "how gradients update the variables",
     .kinds = &optimizer_kinds,
     .object = &optimizer_spec_object},
    {.name = "schedule",
     .summary = "the learning rate of each step",
     .kinds = &schedule_kinds,
     .object = &schedule_spec_object},
    {.name = "clipping", .alias = "clip", .summary = "limits on gradients", .kinds = &clip_kinds},
    {.name = "partitioner",
     .summary = "how variables are split over ps",
     .kinds = &partitioner_kinds},
    {.name = "hook", .summary = "what else runs during training", .kinds = &hook_kinds},
    {.name = "column",
     .summary = "how cells of a row become inputs of the model",
     .kinds = &column_kinds,
     .object = &column_spec_object},
    {.name = "label",
     .alias = "labels",
     .summary = "several labels of a source, which heads learn",
     .object = &label_spec_object},
    {.name = "data format",
     .alias = "format",
     .summary = "formats of data files",
     .kinds = &format_kinds,
     .object = &source_spec_object},
};

enum { TOPIC_COUNT = sizeof topics / sizeof *topics, LEADING_TOPICS = 3 };

/* Topics of the table come first, then those of commands. false: there are no more. */
static bool topic_at(int index, struct topic *ret)
{
    int commands_seen = 0;
    for (const struct command *const *c = commands; *c; c++) {
        if (!(*c)->topic || index - LEADING_TOPICS != commands_seen++) continue;
        *ret =
            (struct topic){.name = (*c)->name, .summary = (*c)->topic, .print = (*c)->print_help};
        return true;
    }
    if (index >= LEADING_TOPICS) index -= commands_seen;
    if (index < TOPIC_COUNT) *ret = topics[index];
    return index < TOPIC_COUNT;
}

void print_usage(FILE *out)
{
    fputs("usage: dtrain [FLAGS] SPEC.json           train in this process\n"
          "       dtrain --local_ps=2 --local_workers=2 [FLAGS] SPEC.json  a whole cluster on this "
          "host\n"
          "       dtrain --job_name=ps|worker|evaluator --task_index=N --ps_hosts=HOST:PORT,...\n"
          "              --worker_hosts=HOST:PORT,... [FLAGS] [SPEC.json]\n"
          "                                         one task of a cluster\n",
          out);
    for (const struct command *const *c = commands; *c; c++) {
        char head[64];
        snprintf(head, sizeof head, "%s %s", (*c)->name, (*c)->arguments);
        fprintf(out, "       dtrain %-27s%s\n", head, (*c)->summary);
    }
}

static void print_topics(void)
{
    print_usage(stdout);
    struct topic topic;
    puts("\ntopics of dtrain help:");
    for (int i = 0; topic_at(i, &topic); i++)
        help_row(stdout, topic.name, topic.summary, HELP_SHORT_NAMES);
}

/* What follows the topic's name in `words`: the name of a kind, or ""; NULL: another topic. */
static const char *after(const char *words, const char *name)
{
    size_t length = name ? strlen(name) : 0;
    if (length == 0 || strncmp(words, name, length) != 0) return NULL;
    if (words[length] == ' ') return words + length + 1;
    return words[length] ? NULL : words + length;
}

/* One kind: its own fields, then those that every kind of the topic has. */
static void print_kind(const struct topic *topic, const struct kind *kind)
{
    const struct object *own = kind->object;
    char name[128];
    snprintf(name, sizeof name, "%s %s", topic->name, own->name);
    help_title(stdout, name, own->summary);
    if (own->fields && own->fields->name) {
        puts("");
        fields_help(stdout, own, 2);
    }
    if (!topic->object) return;
    printf("\nEvery %s has also:\n", topic->name);
    fields_help(stdout, topic->object, 2);
}

/* A list of kinds comes with the fields that all of them have; an object with its fields. */
static void print_topic(const struct topic *topic)
{
    help_title(stdout, topic->name, topic->summary);
    puts("");
    if (topic->print) topic->print(stdout);
    if (topic->kinds) {
        kinds_help(stdout, topic->kinds);
        if (topic->object) printf("\nEvery %s has also:\n", topic->name);
    }
    if (topic->object) fields_help(stdout, topic->object, 2);
    if (topic->kinds) printf("\nMore: dtrain help %s NAME\n", topic->name);
}

static int list_kinds(const struct kinds *kinds, const char **ret, int max)
{
    int count = 0;
    for (const struct kind *kind; kinds && count < max && (kind = kinds->at(count)); count++)
        ret[count] = kind->object->name;
    return count;
}

static int report_unknown_kind(const struct topic *topic, const char *name)
{
    const char *names[KINDS_SHOWN_MAX];
    const int count = list_kinds(topic->kinds, names, KINDS_SHOWN_MAX);
    const struct suggestion near = suggest(name, names, count);
    return report_error(fail(ERR_INPUT,
                             "help: unknown %s \"%.64s\"%s; dtrain help %s lists "
                             "them",
                             topic->name, name, near.text, topic->name));
}

static int help_topic(const struct topic *topic, const char *name)
{
    if (*name == '\0') {
        print_topic(topic);
        return EXIT_DONE;
    }
    if (!topic->kinds)
        return report_error(fail(ERR_INPUT, "help: %s has no \"%.64s\"", topic->name, name));
    const struct kind *kind = kinds_find(topic->kinds, name);
    if (!kind) return report_unknown_kind(topic, name);
    print_kind(topic, kind);
    return EXIT_DONE;
}

/* `dtrain help conv2d`: a kind by its name alone, wherever there is one. */
static bool help_kind(const char *name)
{
    bool is_found = false;
    for (int i = 0; i < TOPIC_COUNT; i++) {
        const struct kind *kind = topics[i].kinds ? kinds_find(topics[i].kinds, name) : NULL;
        if (!kind) continue;
        if (is_found) puts("");
        print_kind(&topics[i], kind);
        is_found = true;
    }
    return is_found;
}

/* ---- keys and flags ---- */

/* Of an object of the spec, or of the spec itself. */
static bool help_member(const struct object *object, const char *owner, const char *name)
{
    const struct field *field = object_field(object, name);
    if (!field) return false;
    const struct field alone[] = {*field, {0}};
    printf("%s: a key of %s\n\n", name, owner);
    fields_help(stdout, &(struct object){.name = name, .fields = alone}, 2);
    return true;
}

static bool help_flag(const char *name)
{
    const struct field *flag = object_field(&run_flags_object, name);
    if (!flag || !flag->help) return false;
    const struct field alone[] = {*flag, {0}};
    printf("%s: a flag of a run\n\n", name);
    flags_help(stdout, &(struct object){.name = name, .fields = alone});
    return true;
}

/* Lists the kinds that have this key; its meaning is in each one's own help. */
static bool help_key_of_kinds(const char *name)
{
    const struct kind *kind;
    bool is_found = false;
    for (int i = 0; i < TOPIC_COUNT; i++) {
        for (int at = 0; topics[i].kinds && (kind = topics[i].kinds->at(at)); at++) {
            if (!object_field(kind->object, name)) continue;
            if (!is_found) printf("%s: a key of these (dtrain help NAME says more)\n\n", name);
            printf("  %s %s\n", topics[i].name, kind->object->name);
            is_found = true;
        }
    }
    return is_found;
}

/* `dtrain help data`, `dtrain help epochs`, `dtrain help steps`. */
static bool help_key(const char *name)
{
    bool is_found = help_member(&spec_object, "the spec", name);
    for (const struct field *section = spec_object.fields; section->name; section++) {
        char owner[TOPIC_TEXT_MAX];
        snprintf(owner, sizeof owner, "\"%s\"", section->name);
        is_found |= help_member(section->object, owner, name);
    }
    is_found |= help_flag(name);
    return is_found || help_key_of_kinds(name);
}

static int list_fields(const struct object *object, const char **ret, int max)
{
    int count = 0;
    for (const struct field *field = object ? object->fields : NULL;
         field && field->name && count < max; field++)
        if (field->help) ret[count++] = field->name;
    return count;
}

/* Of all kinds of a topic, each once. */
static int list_keys_of_kinds(const struct kinds *kinds, const char **ret, int max)
{
    const struct kind *kind;
    int count = 0;
    for (int at = 0; kinds && (kind = kinds->at(at)); at++) {
        const char *keys[KINDS_SHOWN_MAX];
        const int found = list_fields(kind->object, keys, KINDS_SHOWN_MAX);
        for (int i = 0; i < found && count < max; i++)
            if (text_find(ret, count, keys[i]) < 0) ret[count++] = keys[i];
    }
    return count;
}

/* All that `dtrain help WORD` knows, but for most keys of kinds. An optimizer's come first: "lr".
 */
static int list_words(const char *ret[KINDS_SHOWN_MAX])
{
    int count = 0;
    struct topic topic;
    for (const struct command *const *c = commands; *c; c++) ret[count++] = (*c)->name;
    for (int i = 0; topic_at(i, &topic); i++) ret[count++] = topic.name;
    count += list_fields(&spec_object, ret + count, KINDS_SHOWN_MAX - count);
    count += list_keys_of_kinds(&optimizer_kinds, ret + count, KINDS_SHOWN_MAX - count);
    for (int i = 0; i < TOPIC_COUNT; i++)
        count += list_kinds(topics[i].kinds, ret + count, KINDS_SHOWN_MAX - count);
    for (const struct field *section = spec_object.fields; section->name; section++)
        count += list_fields(section->object, ret + count, KINDS_SHOWN_MAX - count);
    return count + list_fields(&run_flags_object, ret + count, KINDS_SHOWN_MAX - count);
}

static int report_unknown_topic(const char *words)
{
    const char *names[KINDS_SHOWN_MAX];
    const struct suggestion near = suggest(words, names, list_words(names));
    return report_error(fail(ERR_INPUT,
                             "help: unknown topic \"%.64s\"%s; dtrain help lists "
                             "them",
                             words, near.text));
}

static bool find_topic(const char *words, struct topic *ret, const char **ret_name)
{
    for (int i = 0; topic_at(i, ret); i++) {
        *ret_name = after(words, ret->name);
        if (!*ret_name) *ret_name = after(words, ret->alias);
        if (*ret_name) return true;
    }
    return false;
}

bool help_knows(const char *word)
{
    const char *names[KINDS_SHOWN_MAX], *rest;
    struct topic topic;
    if (find_topic(word, &topic, &rest)) return true;
    return text_find(names, list_words(names), word) >= 0;
}

extern const struct command command_help;

/* A command without a topic has only its line of the list; `help` itself lists everything. */
int help_command(const struct command *command)
{
    const char *rest;
    struct topic topic;
    if (command && find_topic(command->name, &topic, &rest)) return help_topic(&topic, "");
    if (!command || command == &command_help)
        print_topics();
    else
        printf("dtrain %s %s\n  %s\n", command->name, command->arguments, command->summary);
    return EXIT_DONE;
}

/* ---- as JSON ---- */

static json_t *kind_json(const struct kind *kind)
{
    const struct object *own = kind->object;
    return json_pack("{s:s, s:s, s:o}", "name", own->name, "summary",
                     own->summary ? own->summary : "", "fields", fields_json(own));
}

static json_t *text_parts(void (*print)(FILE *))
{
    FILE *out = help_document_open();
    if (out) print(out);
    return help_document_close();
}

static json_t *topic_json(const struct topic *topic)
{
    const struct kind *kind;
    json_t *kinds = json_array();
    json_t *json = json_pack("{s:s, s:s}", "name", topic->name, "summary", topic->summary);
    for (int i = 0; topic->kinds && (kind = topic->kinds->at(i)); i++)
        json_array_append_new(kinds, kind_json(kind));
    if (topic->print) json_object_set_new(json, "parts", text_parts(topic->print));
    if (topic->object) json_object_set_new(json, "fields", fields_json(topic->object));
    if (topic->kinds) json_object_set(json, "kinds", kinds);
    json_decref(kinds);
    return json;
}

static json_t *command_json(const struct command *command)
{
    const char *verb;
    json_t *verbs = json_array();
    for (int i = 0; command->verb && (verb = command->verb(i)); i++)
        json_array_append_new(verbs, json_string(verb));
    return json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", command->name, "arguments",
                     command->arguments, "summary", command->summary, "takes_run_flags",
                     command->takes_run_flags, "verbs", verbs);
}

/* Of the flags of a run those of the topic. */
static json_t *document(void)
{
    json_t *list = json_array(), *all = json_array();
    struct topic topic;
    for (const struct command *const *c = commands; *c; c++)
        json_array_append_new(list, command_json(*c));
    for (int i = 0; topic_at(i, &topic); i++) json_array_append_new(all, topic_json(&topic));
    return json_pack("{s:s, s:o, s:o, s:o}", "version", version_text(), "usage",
                     text_parts(print_usage), "commands", list, "topics", all);
}

static int help_json(void)
{
    json_t *json = document();
    const bool is_printed = json && !json_dumpf(json, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    json_decref(json);
    if (!is_printed) return report_error(fail(ERR_MEMORY, "help: no memory for its JSON"));
    putchar('\n');
    return EXIT_DONE;
}

/* Joins the arguments, since a topic such as "data format" is two words. */
static int cmd_help(int argc, char **argv)
{
    char words[TOPIC_TEXT_MAX] = "";
    size_t used = 0;
    for (int i = 2; i < argc && used < sizeof words; i++)
        used +=
            (size_t)snprintf(words + used, sizeof words - used, "%s%s", i > 2 ? " " : "", argv[i]);
    if (!*words) return help_command(NULL);
    if (strcmp(words, "--json") == 0) return help_json();
    const char *name;
    struct topic topic;
    if (find_topic(words, &topic, &name)) return help_topic(&topic, name);
    const struct command *command = find_command(words);
    if (command) return help_command(command);
    return help_kind(words) || help_key(words) ? EXIT_DONE : report_unknown_topic(words);
}

static int cmd_schema(int argc, char **argv)
{
    if (argc > 2)
        return report_error(fail(ERR_INPUT, "schema: unexpected argument \"%.64s\"", argv[2]));
    json_t *schema = fields_schema(&spec_object);
    bool is_complete = schema && !json_object_set_new(schema, "title", json_string("dtrain spec"));
    err e = is_complete ? OK : fail(ERR_MEMORY, "no memory for the schema");
    if (!e && json_dumpf(schema, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER))
        e = fail(ERR_MEMORY, "no memory to print the schema");
    json_decref(schema);
    if (e) return report_error(e);
    putchar('\n');
    return EXIT_DONE;
}

const struct command command_help = {
    .name = "help",
    .arguments = "[TOPIC [NAME]]",
    .summary = "explain a topic (--json: all topics, for programs)",
    .run = cmd_help,
};

const struct command command_schema = {
    .name = "schema",
    .arguments = "",
    .summary = "print a JSON Schema of the spec, for editors",
    .run = cmd_schema,
};
