/* set.c - `dtrain set KEY VALUE`: changes a running job. */
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/json_print.h"
#include "cmd/status/visit_job.h"
#include "core/base/fields/help.h"
#include "core/base/standard_output.h"
#include "core/train/spec/settings.h"

enum { VALUES_COLUMN = 32 };

struct set_flags {
    struct job_flags job; /* first */
    bool json;
};

static const struct field fields[] = {
    FIELD_OF("json", BOOL, struct set_flags, json, .fallback = "false",
             .help = "print one JSON object instead"),
    JOB_FLAGS,
    {0},
};

static const struct object set_flags_object = {
    .name = "set",
    .summary = "Changes a running job",
    .fields = fields,
    .size = sizeof(struct set_flags),
};

/* ---- settings ---- */

static void print_keys(FILE *out)
{
    for (int key = 0; key < SETTING_KEYS; key++)
        help_row(out, setting_table[key].key, setting_table[key].help, VALUES_COLUMN);
}

/* ---- values of the job ---- */

static const char *text_of(const json_t *setting, const char *member)
{
    const char *text = json_string_value(json_object_get(setting, member));
    return text ? text : "";
}

static void print_one(const char *key, const json_t *setting)
{
    const char *value = text_of(setting, "value");
    const char *spec = text_of(setting, "spec");
    if (strcmp(spec, "null") == 0) spec = "(default)";
    if (!value[0])
        printf("%-28s %s\n", key, spec);
    else
        printf("%-28s %s since step %lld, set by %s; the spec says %s\n", key, value,
               (long long)json_integer_value(json_object_get(setting, "step")),
               text_of(setting, "by"), spec);
}

static err show(struct job_visit *v, bool json)
{
    json_t *answer;
    TRY(job_visit_ask(v, 0, json_pack("{ss}", "do", "setting"), &answer));
    json_t *settings = json_object_get(answer, "settings");
    if (!json_is_object(settings)) return fail(ERR_PROTOCOL, "an answer without settings");
    if (json) return json_print(json_incref(settings));
    for (int key = 0; key < SETTING_KEYS; key++)
        print_one(setting_table[key].key, json_object_get(settings, setting_table[key].key));
    return OK;
}

/* ---- setting ---- */

/* Adds to the error, unless the answer says what happened, that it may still be set. answer NULL:
 * none */
static err explain(err e, const json_t *answer)
{
    char why[ERROR_TEXT_MAX];
    if (answer && json_integer_value(json_object_get(answer, "code")) != EXIT_TIMEOUT) return e;
    snprintf(why, sizeof why, "%s", error_text());
    return fail(e, "%.400s; it may still be set: dtrain set without KEY shows it", why);
}

static err set(struct job_visit *v, enum setting_key which, const char *value, bool json)
{
    json_t *answer = NULL;
    const char *key = setting_table[which].key;
    const err e = job_visit_ask(
        v, 0, json_pack("{ss ss ss}", "do", "setting", "name", key, "to", value), &answer);
    if (e) return e == ERR_INPUT ? fail_prefix(e, "set") : explain(e, answer);
    if (json) return json_print(json_incref(answer));
    printf("%s is %s from step %lld on\n", key, value,
           (long long)json_integer_value(json_object_get(answer, "step")));
    return OK;
}

static err run(struct job_visit *v, int argc, char **argv)
{
    struct set_flags flags = {0};
    const char *words[2] = {NULL, NULL};
    TRY(job_visit_read(v, &set_flags_object, argc, argv, &flags, &flags.job, words, 2));
    const char *equals = words[0] ? strchr(words[0], '=') : NULL;
    if (equals)
        return fail(ERR_INPUT, "set: a key and its value are two words: dtrain set %.*s %.64s",
                    (int)(equals - words[0]), words[0], equals[1] ? equals + 1 : "VALUE");
    if (words[0] && !words[1])
        return fail(ERR_INPUT, "set: to which value? dtrain set %.64s VALUE", words[0]);
    struct setting_change change = {0};
    if (words[0]) TRY(setting_read(words[0], words[1], &change)); /* before connecting */
    TRY(job_visit_open(v, &flags.job, false));
    TRY(words[0] ? set(v, change.key, words[1], flags.json) : show(v, flags.json));
    return standard_output_flush();
}

/* Without arguments, and so without a job, prints what can be set. */
static int cmd_set(int argc, char **argv)
{
    struct job_visit v = {0};
    if (argc == 2) print_keys(stdout);
    const err e = argc == 2 ? standard_output_flush() : run(&v, argc - 1, argv + 1);
    const int code = e ? report_error(e) : EXIT_DONE;
    job_visit_close(&v);
    return code;
}

static void print_set_help(FILE *out)
{
    fputs("Changes a setting of a running job, without a restart. Keys are those of the spec\n"
          "(the part after the last dot is enough):\n\n",
          out);
    print_keys(out);
    fputs("\nVALUE \"spec\" goes back to what the spec says. Without KEY, prints what the job has\n"
          "now.\n\n"
          "The learning rate and the last step change on all parameter servers at the same\n"
          "global step: the chief saves a checkpoint, and all continue from it with the new\n"
          "value; no step is taken until that is there, at most for --save_timeout of the job,\n"
          "after up to as long for all parameter servers to be there. Whoever does not wait so\n"
          "long (--timeout) may find it set later: dtrain set without KEY shows it. The other\n"
          "keys take effect at once. Changes are kept in settings.json in the checkpoint\n"
          "directory, so that they survive restarts and the loss of the chief; a key whose value\n"
          "in the spec is changed later follows the spec again. The logs of ps/0 and of the chief\n"
          "say who changed what.\n\n"
          "  dtrain set learning_rate x0.5 --ps_hosts=HOST:PORT,...\n"
          "  dtrain set train.last_step 20000 --timeout=60 --ready_file=FILE\n"
          "  dtrain set --ps_hosts=HOST:PORT,...\n\n",
          out);
    flags_help(out, &set_flags_object);
}

const struct command command_set = {
    .name = "set",
    .arguments = "[KEY VALUE] [FLAGS]",
    .summary = "change the learning rate, ... of a running job",
    .run = cmd_set,
    .topic = "change the learning rate, the last step, ... of a running job",
    .print_help = print_set_help,
};
