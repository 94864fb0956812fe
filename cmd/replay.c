/* replay.c - `dtrain replay --record=PATH --out=FOLDER SPEC.json`: an asynchronous run once more,
 * as it was recorded: a cluster on this host, whose ps take every gradient in its turn. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/own_flags.h"
#include "core/base/files/file_system.h"
#include "core/base/log.h"
#include "core/cluster/role/role.h"
#include "core/cluster/runner/record.h"
#include "core/train/checkpoint/checkpoints.h"

struct replay_flags {
    const char *record, *out;
    int64_t to_step;
};

static const struct field own_fields[] = {
    FIELD_OF("record", STRING, struct replay_flags, record, .fallback = "null",
             .help =
                 "what --record of the run was; its files PATH.ps-0, PATH.ps-1, ... are read here"),
    FIELD_OF(
        "out", STRING, struct replay_flags, out, .fallback = "null",
        .help =
            "folder for the checkpoint of the last step, in place of train.checkpoint_dir; where "
            "the record begins at a later step than 0, it has the checkpoint of that step"),
    FIELD_OF("to_step", INT, struct replay_flags, to_step, .fallback = "0", .max = 0x1p53,
             .help = "stop at the first step from this one on at which all ps had the same "
                     "gradients; 0: go to the end"),
    {0},
};

static const struct object own_object = {
    .name = "replay", .summary = "", .fields = own_fields, .size = sizeof(struct replay_flags)};

/* What would look at the values meanwhile, have all wait for it, or write where the run itself may
 * still write, and makes no difference to the values. */
static const char *const left_out[] = {
    "train.save_checkpoint_secs=0", "train.save_checkpoint_steps=0", "train.summary_dir=null",
    "train.log_step_count_steps=0", "train.save_summaries_secs=0",   "train.save_summaries_steps=0",
    "train.evaluate_every_steps=0", "train.evaluate_every_secs=0",   "train.keep_best=0",
    "train.restore_best=false",     "train.best_metric=null",
};

enum { LEFT_OUT = sizeof left_out / sizeof left_out[0], OWN_WORDS = 8 + 2 * (LEFT_OUT + 1) };

/* Those that change what is pushed. */
static err keep_hooks(const struct run *run, struct arena *arena, char **ret)
{
    const json_t *hooks = json_object_get(json_object_get(run->spec.json, "train"), "hooks");
    json_t *kept = json_array(), *hook;
    size_t i;
    json_array_foreach(hooks, i, hook)
    {
        const char *type = json_string_value(json_object_get(hook, "type"));
        if (type && strcmp(type, "nan") == 0) json_array_append(kept, hook);
    }
    char *text = json_dumps(kept, JSON_COMPACT);
    json_decref(kept);
    if (!text) return fail(ERR_MEMORY, "no memory for the hooks");
    *ret = arena_format(arena, "train.hooks=%s", text);
    free(text);
    return OK;
}

/* A folder whose checkpoints cannot be read is an error, not an empty one. */
static err find_checkpoint(const char *folder, bool *ret_is_any, char ret[CHECKPOINT_PATH_MAX])
{
    struct file_state state;
    char *list = path_join(folder, "checkpoint");
    if (!list) return fail(ERR_MEMORY, "no memory for the name of a file");
    const err e = file_find(list, ret_is_any, &state);
    free(list);
    if (e) return fail_prefix(e, "--out=%s", folder);
    return *ret_is_any ? checkpoint_find(folder, ret) : OK;
}

/* Where the record begins, the run does too. */
static err check_folder(const struct replay_flags *flags, const struct replay *r)
{
    char prefix[CHECKPOINT_PATH_MAX];
    bool is_any = false;
    TRY(find_checkpoint(flags->out, &is_any, prefix));
    const uint64_t begin = r->section.step;
    if (!begin && !is_any) return OK;
    if (is_any && checkpoint_step(prefix) == begin) return OK;
    if (!begin)
        return fail(ERR_INPUT,
                    "--out=%s: there is a checkpoint already, and the record begins at "
                    "step 0: give another folder",
                    flags->out);
    return fail(
        ERR_INPUT,
        "--out=%s: the record begins at step %llu: copy the checkpoint of that step there "
        "first (its files model.ckpt-%llu.*, and the file \"checkpoint\", of which it is the "
        "newest; settings.json too where there is one)",
        flags->out, (unsigned long long)begin, (unsigned long long)begin);
}

static void tell(const struct replay *r, const struct run *run)
{
    const struct record_section *s = &r->section;
    const long long batch = (long long)run->spec.data.batch_size;
    const long long first = ((long long)r->bad.batch - 1) * batch;
    log_line(LOG_INFO, "replays steps %llu to %llu of %d ps and %d workers",
             (unsigned long long)s->step, (unsigned long long)r->end, s->ps_count, s->workers);
    if (r->left_out)
        log_line(LOG_INFO, "%llu steps that were recorded after that are left out",
                 (unsigned long long)r->left_out);
    if (!r->fails) return;
    log_line(LOG_INFO, "the run ended with a number that is not finite");
    if (r->bad.worker == NOBODY) return;
    if (r->bad.batch)
        log_line(
            LOG_INFO,
            "it came from push %llu of worker/%d, of batch %llu: rows %lld to %lld of the data, "
            "counted from 0 in the order in which they are handed out, epoch after epoch",
            (unsigned long long)r->bad.push, r->bad.worker, (unsigned long long)r->bad.batch - 1,
            first, first + batch - 1);
    else
        log_line(LOG_INFO, "it came from push %llu of worker/%d", (unsigned long long)r->bad.push,
                 r->bad.worker);
}

static err add_words(const struct replay_flags *flags, const struct replay *r,
                     const struct run *run, struct arena *arena, char **words, int *count)
{
    char *hooks = NULL;
    TRY(keep_hooks(run, arena, &hooks));
    words[(*count)++] = arena_format(arena, "--replay=%s", flags->record);
    words[(*count)++] = arena_format(arena, "--replay_to=%lld", (long long)flags->to_step);
    words[(*count)++] = arena_format(arena, "--local_ps=%d", r->section.ps_count);
    words[(*count)++] = arena_format(arena, "--local_workers=%d", r->section.workers);
    for (int i = 0; i < LEFT_OUT; i++) {
        words[(*count)++] = "--set";
        words[(*count)++] = arena_string(arena, left_out[i]);
    }
    words[(*count)++] = "--set";
    words[(*count)++] = hooks;
    words[(*count)++] = arena_format(arena, "--checkpoint_dir=%s", flags->out);
    return OK;
}

/* Its settings need not fit a process alone. */
static err load_spec(struct run *run)
{
    const struct spec_options options = {
        .path = run->spec_path,
        .overrides = run->flags.set,
        .data_dir = run->flags.data_dir,
        .seed = run->flags.seed,
        .trains_nothing = true, /* its folder comes later */
    };
    TRY(spec_load(&options, &run->spec));
    run->has_spec = true;
    return OK;
}

/* The words of a run: the flags that were given, behind them what makes it this one, which counts
 * where both are given, and what is no flag. */
static err make_words(const struct replay_flags *flags, int argc, char **argv, struct arena *arena,
                      char ***ret, int *ret_count)
{
    struct run run;
    struct replay r = {0};
    int count = 1;
    char **words = arena_array(arena, (size_t)argc + OWN_WORDS, sizeof *words);
    err e = run_open(&run, argc, argv);
    if (!e) e = load_spec(&run);
    if (!e) e = replay_read(flags->record, 0, (uint64_t)flags->to_step, &r);
    if (!e) e = check_folder(flags, &r);
    words[0] = argv[0];
    int at = 1;
    while (at < argc && strcmp(argv[at], "--") != 0) words[count++] = argv[at++];
    if (!e) e = add_words(flags, &r, &run, arena, words, &count);
    if (!e) tell(&r, &run);
    replay_free(&r);
    run_close(&run);
    while (at < argc) words[count++] = argv[at++];
    words[count] = NULL;
    *ret = words;
    *ret_count = count;
    return e;
}

static err read_words(int *argc, char **argv, struct arena *arena, struct replay_flags *ret)
{
    TRY(own_flags_take(&own_object, argc, argv, arena, ret));
    if (!ret->record) return fail(ERR_INPUT, "replay: --record=PATH: of which run?");
    if (!ret->out) return fail(ERR_INPUT, "replay: --out=FOLDER: where is the checkpoint to go?");
    return OK;
}

static int cmd_replay(int argc, char **argv)
{
    struct arena arena = {0};
    struct replay_flags flags;
    char **words;
    int count;
    argc--;
    argv++;
    err e = read_words(&argc, argv, &arena, &flags);
    if (!e) e = make_words(&flags, argc, argv, &arena, &words, &count);
    const int code = e ? report_error(e) : cmd_run(count, words);
    arena_free(&arena);
    return code;
}

static void print_help(FILE *out)
{
    fputs(
        "Does an asynchronous run once more, with the same bits. In such a run gradients arrive\n"
        "in an order of chance; one that was started with --record=PATH has kept that order.\n\n"
        "  dtrain --local_ps=2 --local_workers=3 --record=run.record SPEC.json\n"
        "  dtrain replay --record=run.record --out=again SPEC.json\n"
        "  dtrain replay --record=run.record --to_step=1200 --out=until-1200 SPEC.json\n\n"
        "It starts a cluster of as many ps and workers on this host, whichever hosts the run had;\n"
        "each worker computes what it computed, and each ps applies it in its turn. A run that\n"
        "ended because a number was not finite does so again, and this command says of which\n"
        "worker, push and rows of the data that was. Give the same --set, --seed, --data_dir and\n"
        "--threads as the run had; the bits are the same on processors of the same kind.\n\n"
        "A checkpoint is written at the end alone; evaluations, summaries and hooks but nan are\n"
        "left out. A record starts over whenever all ps are filled again (a ps was lost, the job\n"
        "was resized, or started again): the last of these sections is replayed, from the\n"
        "checkpoint that it began with. A section ends early where a worker was started again,\n"
        "or was lost between its pushes to two ps and never came back, and may lack its last\n"
        "tenth of a second where a ps was killed; then the replay ends at the last step before\n"
        "that at which all ps had the same gradients. With train.max_staleness and more than\n"
        "one ps nothing is recorded. Not in a record: what dtrain set or var changed, and the\n"
        "arrival of followed files. Synchronous runs need none.\n\n"
        "Beside the flags of a run:\n\n",
        out);
    flags_help(out, &own_object);
}

const struct command command_replay = {
    .name = "replay",
    .arguments = "[FLAGS] SPEC.json",
    .summary = "do an asynchronous run once more, with the same bits",
    .run = cmd_replay,
    .topic = "do an asynchronous run once more, with the same bits",
    .print_help = print_help,
    .takes_run_flags = true,
};
