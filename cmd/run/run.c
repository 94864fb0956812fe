/* run.c - `dtrain [flags] SPEC.json`: a task, a local cluster, or one process alone. */
#include "cmd/proof.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cmd/device.h"
#include "cmd/launch/ready.h"
#include "cmd/launch/remote.h"
#include "cmd/registry/join.h"
#include "cmd/registry/registry.h"
#include "cmd/launch/place.h"
#include "cmd/run/absence.h"
#include "cmd/run/http.h"
#include "cmd/run/settings.h"
#include "cmd/run/task_parts.h"
#include "core/base/clock.h"
#include "core/base/files/file_system.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/cluster/runner/storage.h"
#include "core/cluster/runner/task.h"
#include "core/data/stats/label_words.h"
#include "kernels/kernels.h"
#include "net/coordinator/coordinator.h"
#include "net/http_server.h"

enum { CLASSES_TEXT_MAX = 400 };

/* 1 by default; an explicit 0 is an error, as such a cluster cannot run. */
static err open_job(const struct run *run, const char *flag, int64_t *count)
{
    if (*count == 0 && flags_given(&run_flags_object, run->argc, run->argv, flag))
        return fail(ERR_INPUT, "--%s=0: a cluster has at least 1 of them", flag);
    if (*count == 0) *count = 1;
    return OK;
}

static err open_local(struct run *run)
{
    run->is_local = true;
    TRY(open_job(run, "local_ps", &run->flags.local_ps));
    return open_job(run, "local_workers", &run->flags.local_workers);
}

/* Notes which words come from the environment, not from the command line. */
static void note_environment(struct run *run)
{
    struct cluster_flags *flags = &run->flags.cluster;
    for (enum cluster_word word = 0; word < WORD_COUNT; word++)
        flags->is_by_environment[word] =
            cluster_flags_say(flags, word) &&
            !flags_given(&run_flags_object, run->argc, run->argv, cluster_flag_names[word]);
}

/* Sets the task's name for log lines, unless it runs alone or the launcher adds names, which it
 * does not for JSON. */
static void name_task(const struct run *run)
{
    const struct cluster_spec *cluster = &run->cluster;
    char name[TASK_NAME_MAX] = "evaluator";
    if (run->flags.launched != LAUNCHED_NO && !log_is_json()) return;
    if (!cluster->is_evaluator) task_name(cluster->job, cluster->task, name);
    log_set_task(cluster->task < 0 ? job_name(cluster->job) : name); /* coordinator chooses it */
}

static err open_task(struct run *run)
{
    note_environment(run);
    struct utsname host;
    if (uname(&host) == 0) run->flags.cluster.host_name = arena_string(&run->arena, host.nodename);
    TRY(cluster_spec_make(&run->flags.cluster, getenv("TF_CONFIG"), &run->arena, &run->cluster));
    if (!run->cluster.is_distributed) return OK;
    name_task(run);
    return run->cluster.is_evaluator ? OK : environment_take_socket(run);
}

static err check_url(const char *flag, const char *path)
{
    if (strcmp(flag, "metrics_file") == 0)
        return fail(ERR_INPUT, "--%s: a file that grows line by line cannot be behind a URL", flag);
    if (strcmp(flag, "ready_file") == 0)
        return fail(ERR_INPUT, "--%s: a file that goes with its task cannot be behind a URL", flag);
    if (files_can_be_written(path)) return OK;
    return fail(ERR_INPUT, "--%s: nothing can be written behind such a URL", flag);
}

/* Fails now, not after hours of training, if the file cannot be written. */
static err check_writable(const char *flag, const char *path)
{
    if (!path) return OK;
    char folder[PATH_MAX];
    if (strlen(path) >= sizeof folder) return fail(ERR_INPUT, "--%s: the path is too long", flag);
    struct stat found;
    if (path_is_url(path)) return check_url(flag, path);
    bool is_there = stat(path, &found) == 0;
    if (is_there && S_ISDIR(found.st_mode))
        return fail(ERR_INPUT, "--%s: %s is a folder", flag, path);
    strcpy(folder, path);
    if (access(is_there ? path : dirname(folder), W_OK))
        return fail(ERR_INPUT, "--%s: cannot write %s: %s", flag, path, strerror(errno));
    return OK;
}

/* Checked on a ps, too, although it ignores the flag. */
static err check_device(const struct run *run)
{
    struct device_choice choice;
    return run->flags.device ? device_flag_parse(run->flags.device, &choice) : OK;
}

static err check_coordinator(const struct run *run)
{
    const char *url = run->flags.cluster.coordinator;
    const err e = url ? coordinator_check(url) : OK;
    return e ? fail_prefix(e, "--coordinator") : OK;
}

static err check_http(const struct run *run)
{
    const err e = run->flags.listening.http ? http_server_check(run->flags.listening.http) : OK;
    return e ? fail_prefix(e, "--http") : OK;
}

/* Checks values that the flag tables cannot. */
static err check_words(const struct run *run)
{
    TRY(check_coordinator(run));
    TRY(check_writable("result", run->flags.result));
    TRY(check_writable("metrics_file", run->flags.metrics_file));
    TRY(check_writable("ready_file", run->flags.listening.ready_file));
    TRY(check_http(run));
    return check_device(run);
}

enum run_kind run_kind(const struct run *run)
{
    const struct cluster_spec *cluster = &run->cluster;
    if (run->is_local) return RUN_LAUNCHER;
    if (!cluster->is_distributed) return RUN_ALONE;
    if (cluster->is_evaluator) return RUN_EVALUATOR;
    if (cluster->job == JOB_PS) return RUN_PS;
    return cluster->task == 0 ? RUN_CHIEF : RUN_WORKER;
}

/* Names a flag without a value that took the spec as one: "--steps spec.json". */
static err fail_no_spec(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++) {
        const char *flag = argv[i], *value = argv[i + 1];
        if (flag[0] == '-' && !strchr(flag, '=') && text_ends_with(value, ".json"))
            return fail(ERR_INPUT, "no SPEC.json was named: \"%.64s\" is the value of %.64s here",
                        value, flag);
    }
    return fail(ERR_INPUT, "no SPEC.json was named (only a ps can do without)");
}

err run_read_flags(struct run *run, int argc, char **argv)
{
    *run = (struct run){.argc = argc, .argv = argv};
    int paths;
    TRY(settings_check_words(argc, argv));
    TRY(flags_parse(&run_flags_object, argc, argv, &run->arena, &run->flags, &run->spec_path, 1,
                    &paths));
    log_set_format((enum log_format)run->flags.log.format);
    log_set_level((enum log_level)run->flags.log.level);
    log_set_pace(run->flags.log.every_secs);
    if (run->flags.launched == LAUNCHED_TERMINAL) log_set_terminal();
    TRY(check_words(run));
    TRY(proof_open(&run->flags.cluster, &run->keys));
    if (run->flags.ssh)
        TRY(remote_open(run));
    else if (run->flags.local_ps || run->flags.local_workers)
        TRY(open_local(run));
    else
        TRY(open_task(run));
    if (!run->flags.ssh) TRY(remote_check_absent(run));
    return settings_check_flags(run);
}

err run_open(struct run *run, int argc, char **argv)
{
    TRY(run_read_flags(run, argc, argv));
    const bool needs_spec = run_kind(run) != RUN_PS; /* a ps gets what it needs from the chief */
    return !run->spec_path && needs_spec ? fail_no_spec(argc, argv) : OK;
}

err run_load_spec(struct run *run)
{
    environment_report_unused(run);
    const struct spec_options options = {
        .path = run->spec_path,
        .overrides = run->flags.set,
        .data_dir = run->flags.data_dir,
        .seed = run->flags.seed,
        .accepts_changed_features = run->flags.changed_features == CHANGED_FEATURES_ACCEPT,
    };
    TRY(cache_flags_begin(&run->flags.cache));
    TRY(spec_load(&options, &run->spec));
    run->has_spec = true;
    return settings_check_spec(run);
}

/* Logs the class names, as many as fit in a line. */
static void report_classes(const struct strings *words)
{
    char list[CLASSES_TEXT_MAX];
    size_t used = 0;
    for (int i = 0; i < words->count && used < sizeof list; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", words->at[i]);
    log_line(LOG_INFO, "labels are %d classes: %s%s", words->count, list,
             used < sizeof list ? "" : "...");
}

/* Retries storage errors until a limit, as for a checkpoint. */
static err take_kept(struct run *run)
{
    const char *folder = run->spec.train.checkpoint.dir;
    const uint64_t since_ms = clock_ms();
    err e = spec_take_kept(&run->spec, folder, false);
    while (folder &&
           storage_is_asked_again(e, folder, &run->flags.limits, since_ms)) /* ends: in time */
        e = spec_take_kept(&run->spec, folder, false);
    return e;
}

err run_measure(struct run *run)
{
    const bool names_classes = label_words_are_wanting(&run->spec.data);
    TRY(take_kept(run));
    TRY(spec_measure(&run->spec));
    if (names_classes) report_classes(label_words_of(&run->spec.data.train));
    return OK;
}

err run_open_loop(const struct run *run, struct loop **ret)
{
    TRY(loop_open(ret));
    loop_set_keys(*ret, run->keys);
    loop_set_insecure(*ret, run->flags.cluster.insecure);
    return OK;
}

void run_close(struct run *run)
{
    registry_leave(run->registry);
    tls_keys_close(run->keys);
    if (run->has_spec) spec_free(&run->spec);
    arena_free(&run->arena);
}

static int run_task(struct run *run)
{
    bool has_place;
    int code = EXIT_DONE;
    const err e = run_await_place(run, &has_place, &code);
    if (e == ERR_TIMEOUT && job_had_ended(run)) return EXIT_DONE;
    if (e) return report_error(e);
    if (!has_place) return code;
    return run_kind(run) == RUN_PS ? run_ps(run) : run_worker(run);
}

static int run_by_kind(struct run *run)
{
    switch (run_kind(run)) {
    case RUN_ALONE:
        return run_single(run);
    case RUN_LAUNCHER:
        return run_local(run);
    case RUN_EVALUATOR:
        return run_evaluator(run);
    default:
        return run_task(run);
    }
}

static bool listens(const struct run *run)
{
    return run_kind(run) & RUN_TASKS;
}

static int dispatch(struct run *run)
{
    err e = run->is_local ? OK : task_http_open(run, &run->http);
    if (!e) e = ready_open(run, &run->ready);
    if (!e && !listens(run)) e = ready_tell(run->ready, NULL);
    const int code = e ? report_error(e) : run_by_kind(run);
    ready_close(run->ready);
    task_http_close(run->http);
    return code;
}

/* May execute the program again, so nothing may be read before. The launcher computes nothing and
 * handles signals its own way; its tasks call this themselves. */
static void prepare(const struct run *run)
{
    if (run->is_local) {
        tasks_are_started_here();
        return;
    }
    cpu_environment_prepare(run->argv);
    tasks_prepare();
}

bool run_has_remote_input(const struct run *run)
{
    return run_kind(run) == RUN_WORKER && spec_is_in_graph(&run->spec);
}

/* A launcher, a ps and a worker with remote input do not read data. */
static bool opens_data(const struct run *run)
{
    const enum run_kind kind = run_kind(run);
    return run->has_spec && kind != RUN_LAUNCHER && kind != RUN_PS && !run_has_remote_input(run);
}

int cmd_run(int argc, char **argv)
{
    struct run run;
    tasks_hold_signals();
    err e = run_open(&run, argc, argv);
    if (!e) prepare(&run);
    if (!e) e = run_join(&run);
    if (!e && run.spec_path) e = run_load_spec(&run);
    if (!e) e = ready_check(&run);
    if (!e) run_tell_signal(&run);
    if (!e && opens_data(&run)) e = run_measure(&run);
    const int code = e ? report_error(e) : dispatch(&run);
    if (e) run_tell_absence(&run, code, error_text());
    run_tell_signal(NULL);
    run_close(&run);
    return code;
}
