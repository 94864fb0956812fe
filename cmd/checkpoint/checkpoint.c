/* checkpoint.c - `dtrain checkpoint VERB ...`: finds the verb and parses its arguments. */
#include <string.h>

#include "cmd/checkpoint/checkpoint.h"
#include "cmd/cmd.h"

struct checkpoint_subcommand {
    const char *name, *arguments, *summary;
    int words, words_max;
    const struct field *flags; /* of struct checkpoint_call */
    err (*run)(const struct checkpoint_call *, int *ret_code);
};

static const struct field no_flags[] = {{0}};
static const struct field json_flags[] = {
    {.name = "json",
     .type = FIELD_BOOL,
     .offset = offsetof(struct checkpoint_call, json),
     .fallback = "false",
     .help = "print it as one JSON object"},
    {0},
};
static const struct field reshard_flags[] = {
    {.name = "ps",
     .type = FIELD_INT,
     .offset = offsetof(struct checkpoint_call, ps),
     .min = 1,
     .max = PS_MAX,
     .help = "number of shards to write, one for each parameter server"},
    {0},
};

static const struct field rows_flags[] = {
    {.name = "vocabulary",
     .type = FIELD_STRING,
     .offset = offsetof(struct checkpoint_call, vocabulary),
     .fallback = "null",
     .help = "vocabulary file, one word per line, id 0 first: name rows by words instead of ids"},
    {.name = "delta",
     .type = FIELD_BOOL,
     .offset = offsetof(struct checkpoint_call, delta),
     .fallback = "false",
     .help = "rows with what the run has published since that checkpoint (train.publish)"},
    {0},
};

static const struct checkpoint_subcommand verbs[] = {
    {"ls", "DIR", "list the checkpoints of a folder", 1, 1, json_flags, checkpoint_ls},
    {"show", "CKPT [NAME]", "list all tensors, or print one with its values", 1, 2, json_flags,
     checkpoint_show},
    {"verify", "CKPT", "check all checksums, and that steps agree", 1, 1, json_flags,
     checkpoint_verify},
    {"diff", "A B", "list differences; exit code 1 unless bitwise equal", 2, 2, json_flags,
     checkpoint_diff},
    {"reshard", "CKPT --ps=N DIR", "write the same values in N shards to a new folder", 2, 2,
     reshard_flags, checkpoint_reshard},
    {"export", "CKPT FILE.npz", "write all tensors as numpy arrays", 2, 2, no_flags,
     checkpoint_export},
    {"rows", "CKPT TABLE OUT", "write the rows of one table with their ids", 3, 3, rows_flags,
     checkpoint_rows},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static const char *checkpoint_verb(int index)
{
    return index < VERBS ? verbs[index].name : NULL;
}

static void print_checkpoint_help(FILE *out)
{
    for (int i = 0; i < VERBS; i++)
        fprintf(out, "  dtrain checkpoint %-7s %-16s %s\n", verbs[i].name, verbs[i].arguments,
                verbs[i].summary);
    fputs(
        "\nCKPT is a folder (its newest checkpoint), a prefix such as run/model.ckpt-300, or an\n"
        ".index file; dtrain's own or TensorFlow's (V2). Nothing is changed but what `reshard`,\n"
        "`export` and `rows` write. To resume from what reshard wrote, name its folder as\n"
        "train.checkpoint_dir. rows writes OUT.npy, and the ids to OUT.ids.npy; OUT.csv or\n"
        "OUT.tsv, with the id in the first column; or, where OUT is a folder, the files that\n"
        "TensorBoard's projector shows (tensorboard --logdir OUT, or a folder above it). A table\n"
        "is a variable with two axes; of one that grows, the admitted rows are written.\n"
        "ls, show, verify and diff take --json, reshard --ps, rows --vocabulary and --delta:\n\n",
        out);
    flags_help(out, &(struct object){.fields = json_flags});
    flags_help(out, &(struct object){.fields = reshard_flags});
    flags_help(out, &(struct object){.fields = rows_flags});
}

/* ERR_INPUT suggests the nearest verb. */
static err find_verb(const char *name, const struct checkpoint_subcommand **ret)
{
    const char *names[VERBS];
    for (int i = 0; i < VERBS; i++) {
        names[i] = verbs[i].name;
        if (strcmp(name, verbs[i].name) != 0) continue;
        *ret = &verbs[i];
        return OK;
    }
    if (*name == '-')
        return fail(ERR_INPUT,
                    "checkpoint: expected a verb, got %.64s; dtrain save has a running "
                    "job save a checkpoint, and `dtrain help checkpoint` has the verbs",
                    name);
    const struct suggestion near = suggest(name, names, VERBS);
    return fail(ERR_INPUT, "checkpoint: unknown \"%.64s\"%s; see `dtrain help checkpoint`", name,
                near.text);
}

/* argv[0]: the verb's name. */
static err parse(const struct checkpoint_subcommand *verb, int argc, char **argv,
                 struct arena *arena, struct checkpoint_call *ret)
{
    const struct object object = {"checkpoint", verb->summary, verb->flags, sizeof *ret};
    const char *words[CALL_WORDS_MAX] = {0};
    int count;
    err e = flags_parse(&object, argc, argv, arena, ret, words, verb->words_max, &count);
    if (!e && count < verb->words)
        e = fail(ERR_INPUT, "expected dtrain checkpoint %s %s", verb->name, verb->arguments);
    if (e) return fail_prefix(e, "checkpoint %s", verb->name);
    memcpy(ret->words, words, sizeof words);
    ret->arena = arena;
    return OK;
}

static err run(int argc, char **argv, struct arena *arena, int *ret_code)
{
    const struct checkpoint_subcommand *verb = NULL;
    struct checkpoint_call call;
    if (argc < 3) return fail(ERR_INPUT, "checkpoint: do what? See `dtrain help checkpoint`");
    TRY(find_verb(argv[2], &verb));
    TRY(parse(verb, argc - 2, argv + 2, arena, &call));
    return verb->run(&call, ret_code);
}

static int cmd_checkpoint(int argc, char **argv)
{
    struct arena arena = {0};
    int code = EXIT_DONE;
    err e = run(argc, argv, &arena, &code);
    arena_free(&arena);
    return e ? report_error(e) : code;
}

const struct command command_checkpoint = {
    .name = "checkpoint",
    .arguments = "VERB ...",
    .summary = "ls, show, verify, diff, reshard and export checkpoints",
    .run = cmd_checkpoint,
    .topic = "inspect, verify and convert checkpoints",
    .print_help = print_checkpoint_help,
    .verb = checkpoint_verb,
};
