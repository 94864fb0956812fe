/* settings.c - see settings.h. */
#include "cmd/run/settings.h"

#include <stdio.h>
#include <string.h>

#include "cmd/read_files.h"
#include "core/train/checkpoint/checkpoints.h"

enum { WORD_MAX = 64 }; /* a longer one is no key */

/* ---- keys of the spec as flags ---- */

static const struct field *find_field_of_kinds(const struct kinds *kinds, const char *name)
{
    const struct field *field = NULL;
    const struct kind *kind;
    for (int i = 0; !field && (kind = kinds->at(i)); i++) field = object_field(kind->object, name);
    return field;
}

/* A key in an object of the spec, such as "train", whose name goes to *section; NULL: none */
static const struct field *find_key(const char *name, const char **section)
{
    const struct field *field = NULL;
    for (const struct field *at = spec_object.fields; !field && at->name; at++) {
        if (at->type == FIELD_OBJECT) field = object_field(at->object, name);
        if (at->type == FIELD_VARIANT) field = find_field_of_kinds(at->kinds, name);
        if (field) *section = at->name;
    }
    return field;
}

/* Whether values may also be named differently in other frameworks. */
static bool has_own_values(const struct field *field)
{
    return field->type == FIELD_ENUM || field->type == FIELD_OBJECT;
}

/* A flag of another framework (name_of_others) counts as the key of the same meaning. */
static err check_word(const char *word)
{
    const size_t length = strcspn(word, "=");
    const char *value = word[length] && word[length + 1] ? word + length + 1 : "...", *section;
    char name[WORD_MAX];
    if (length >= sizeof name) return OK;
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    if (object_field(&run_flags_object, name)) return OK;
    const struct field *key = find_key(name, &section);
    const char *ours = key ? NULL : name_of_others(name);
    if (ours && !object_field(&run_flags_object, ours)) key = find_key(ours, &section);
    if (!key && help_knows(name))
        return fail(ERR_INPUT, "unknown flag \"%s\": it belongs in the spec; see dtrain help %s",
                    name, name);
    if (!key) return OK;
    return fail(ERR_INPUT, "unknown flag \"%s\": it is a key of the spec (--set %s.%s=%.64s)", name,
                section, key->name, ours && has_own_values(key) ? "..." : value);
}

err settings_check_words(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strncmp(argv[i], "--", 2) == 0) TRY(check_word(argv[i] + 2));
    return OK;
}

/* ---- flags ---- */

/* For a given flag. As one command line may start every task of a cluster, flags without effect in
 * some tasks are accepted there, and so is --local_ps=0. */
static err check_flag(const struct field *flag, enum run_kind kind, bool is_by_ssh)
{
    if (!flag->takers || flag->takers & kind) return OK;
    if (flag->takers == RUN_EVALUATOR)
        return fail(ERR_INPUT,
                    "--%s goes with --job_name=evaluator only; a run itself keeps the best by "
                    "train.keep_best and train.best_metric of the spec",
                    flag->name);
    if (kind == RUN_LAUNCHER)
        return fail(ERR_INPUT, "%s: --%s does not go with %s",
                    is_by_ssh ? "--ssh starts tasks of its own"
                              : "--local_ps and --local_workers start tasks of their own",
                    flag->name, is_by_ssh ? "it" : "them");
    if (kind == RUN_ALONE && flag->takers & RUN_PS)
        return fail(ERR_INPUT, "--%s needs --job_name: a single process listens nowhere",
                    flag->name);
    return OK;
}

err settings_check_flags(const struct run *run)
{
    for (const struct field *flag = run_flags_object.fields; flag->name; flag++)
        if (flags_given(&run_flags_object, run->argc, run->argv, flag->name))
            TRY(check_flag(flag, run_kind(run), run->flags.ssh));
    return OK;
}

/* ---- keys ---- */

/* null counts as absent, as in the table. */
static bool is_given(const struct spec *spec, const char *key)
{
    const json_t *value = json_object_get(json_object_get(spec->json, "train"), key);
    return value && !json_is_null(value);
}

/* Saving needs a folder, unless it is off (0). */
static err check_saving(const struct run *run)
{
    const struct train_spec *train = &run->spec.train;
    const bool saves = run_kind(run) & (RUN_ALONE | RUN_LAUNCHER | RUN_CHIEF);
    if (train->checkpoint.dir || !saves) return OK; /* others need not know the folder */
    if (train->evaluation.keep_best)
        return fail(ERR_INPUT, "train.%s: needs train.checkpoint_dir",
                    train->evaluation.restore_best ? "restore_best" : "keep_best");
    const bool is_by_steps = train->checkpoint.every_steps > 0;
    const bool is_by_time =
        train->checkpoint.every_secs > 0 && is_given(&run->spec, "save_checkpoint_secs");
    if (!is_by_steps && !is_by_time) return OK;
    return fail(ERR_INPUT, "train.save_checkpoint_%s: needs train.checkpoint_dir",
                is_by_steps ? "steps" : "secs");
}

/* min_workers must not exceed the workers of the cluster; a single process ignores it. */
static err check_workers(const struct run *run)
{
    const long long wanted = run->spec.train.absence.min_workers;
    const long long workers =
        run->is_local ? run->flags.local_workers : run->cluster.hosts[JOB_WORKER].count;
    if (!(run->is_local || run->cluster.is_distributed) || wanted <= workers) return OK;
    return fail(ERR_INPUT, "train.min_workers: %lld, but the cluster has %lld %s", wanted, workers,
                workers == 1 ? "worker" : "workers");
}

/* ---- outputs ---- */

static err check_unread(const struct run *run, const char *flag, const char *path)
{
    const struct train_spec *train = &run->spec.train;
    const struct written_file out = {flag, path};
    char best[CHECKPOINT_PATH_MAX];
    if (!path) return OK;
    TRY(output_check(&out, "is the spec", run->spec_path));
    TRY(output_check_folder(&out, train->checkpoint.publish.to));
    TRY(output_check_folder(&out, train->warm_start.checkpoint));
    if (train->checkpoint.dir && !folder_join(train->checkpoint.dir, "best", best)) {
        TRY(output_check_folder(&out, train->checkpoint.dir));
        TRY(output_check_folder(&out, best));
    }
    return output_check_data(&out, &run->spec);
}

static err check_record(const struct run *run)
{
    const long long ps = run->is_local ? run->flags.local_ps : run->cluster.hosts[JOB_PS].count;
    char path[PATH_BYTES_MAX];
    if (!run->flags.record.to) return OK;
    for (long long i = 0; i < ps || i == 0; i++) {
        const int length = snprintf(path, sizeof path, "%s.ps-%lld", run->flags.record.to, i);
        if (length < (int)sizeof path) TRY(check_unread(run, "record", path));
    }
    return OK;
}

static err check_outputs_unread(const struct run *run)
{
    TRY(check_unread(run, "result", run->flags.result));
    TRY(check_unread(run, "metrics_file", run->flags.metrics_file));
    TRY(check_unread(run, "ready_file", run->flags.listening.ready_file));
    return check_record(run);
}

err settings_check_spec(const struct run *run)
{
    TRY(check_outputs_unread(run));
    err e = check_saving(run);
    if (!e) e = check_workers(run);
    if (!e) return OK;
    return fail_prefix(e, "%s", run->spec.source);
}
