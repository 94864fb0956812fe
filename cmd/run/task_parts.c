/* task_parts.c - see task_parts.h. */
#include "cmd/run/http.h"
#include "cmd/run/task_parts.h"
#include "cmd/cores.h"
#include "cmd/launch/ready.h"
#include "cmd/registry/registry.h"
#include "core/base/log.h"
#include "core/train/checkpoint/checkpoints.h"

static int threads_of(const struct run *run, bool is_ps)
{
    int threads = (int)run->flags.threads;
    if (!threads) threads = cores_here() / (is_ps ? 1 : cluster_workers_here(&run->cluster));
    return threads > 0 ? threads : 1;
}

/* Logs, in the first computing task of a host, that a CPU quota leaves some cores unused. */
static void report_quota(const struct run *run, const struct device_request *request)
{
    const struct cores cores = cores_find("");
    if (run->flags.threads || request->local_index || cores_count(&cores) == cores.affinity) return;
    log_line(LOG_INFO, "uses %d of %d cores: its control group has a CPU quota of %.3g",
             cores_count(&cores), cores.affinity, cores.quota);
}

/* Every worker logs its GPU; that there is none is logged once per host, and by the others only
 * with
 * --log_level=debug. */
void report_device(const struct device_answer *answer, bool is_first)
{
    const enum log_level level = is_first ? LOG_INFO : LOG_DEBUG;
    if (answer->is_broken)
        log_line(LOG_WARNING, "computes on the CPU: %s", answer->text);
    else if (answer->is_gpu)
        log_line(LOG_INFO, "computes on %s", answer->text);
    else if (*answer->text)
        log_line(level, "%s", answer->text);
    if (*answer->precision) log_line(level, "%s", answer->precision);
}

static bool is_ps(const struct cluster_spec *cluster)
{
    return cluster->is_distributed && !cluster->is_evaluator && cluster->job == JOB_PS;
}

struct device_request request_of(const struct run *run)
{
    return (struct device_request){
        .flag = is_ps(&run->cluster) ? "cpu" : run->flags.device,
        .spec = run->has_spec ? &run->spec : NULL,
        .local_index = cluster_local_index(&run->cluster),
        .threads = threads_of(run, is_ps(&run->cluster)),
        .cpu_kernels = run->flags.cpu_kernels,
    };
}

err open_device(const struct run *run, struct device *ret)
{
    const struct device_request request = request_of(run);
    struct device_answer answer;
    TRY(device_request_open(&request, ret, &answer));
    report_version(run);
    if (!is_ps(&run->cluster)) report_device(&answer, request.local_index == 0);
    return OK;
}

/* Tower k computes where the spec's list says, else on the task's kind of device: its own GPU, or a
 * share of the threads. */
static struct device_request request_of_tower(const struct device_request *task, int k)
{
    const struct tower_spec *towers = &task->spec->train.towers;
    struct device_request request = *task;
    request.local_index = task->local_index * towers->count + k;
    if (towers->devices.count) request.tower = towers->devices.at[k];
    request.threads = (task->threads + towers->count - 1 - k) / towers->count;
    if (request.threads < 1) request.threads = 1;
    return request;
}

/* The first GPU is the task's own device, which keeps what all share; CPUs see what is there. */
static err open_tower(struct task_devices *d, const struct device_request *task, int k)
{
    struct device_answer answer;
    const struct device_request request = request_of_tower(task, k);
    if (k == 0 && d->device.is_separate) {
        d->at[k] = &d->device;
        return OK;
    }
    TRY(device_request_open(&request, &d->own[d->own_count], &answer));
    d->at[k] = &d->own[d->own_count++];
    return OK;
}

static err open_towers(struct task_devices *d, const struct device_request *task)
{
    const int count = task->spec->train.towers.count;
    for (int k = 0; k < count; k++) {
        const err e = open_tower(d, task, k);
        if (e) return fail_prefix(e, "train.towers: tower %d", k);
    }
    d->towers = (struct tower_devices){d->at, count};
    return OK;
}

err task_devices_open(const struct device_request *request, struct task_devices *ret,
                      struct device_answer *ret_answer)
{
    struct device_request own = *request;
    *ret = (struct task_devices){0};
    if (request->spec->train.towers.count) own = request_of_tower(request, 0);
    own.threads = request->threads;
    TRY(device_request_open(&own, &ret->device, ret_answer));
    const err e = open_towers(ret, request);
    if (e) task_devices_close(ret);
    return e;
}

err open_training_devices(const struct run *run, struct task_devices *ret)
{
    const struct device_request request = request_of(run);
    struct device_answer answer;
    TRY(task_devices_open(&request, ret, &answer));
    report_version(run);
    report_device(&answer, request.local_index == 0);
    if (!answer.is_gpu) report_quota(run, &request);
    return OK;
}

void task_devices_close(struct task_devices *d)
{
    for (int i = 0; i < d->own_count; i++) device_close(&d->own[i]);
    device_close(&d->device);
}

static err listens(void *context, const char *address)
{
    return ready_tell(context, address);
}

struct task_options task_options_of(const struct run *run, struct loop *loop)
{
    const struct run_flags *flags = &run->flags;
    return (struct task_options){
        .cluster = &run->cluster,
        .loop = loop,
        .transport = flags->transport ? transports[flags->transport - 1] : NULL,
        .parts = (enum parts_choice)flags->parts,
        .limits = flags->limits,
        .fingerprint = run->has_spec ? run->spec.fingerprint : NULL,
        .listen = flags->listening.at,
        .leaves_alone = flags->on_sigterm == SIGTERM_LEAVES && flags->launched == LAUNCHED_NO &&
                        run->cluster.is_distributed,
        .is_launched = flags->launched != LAUNCHED_NO,
        .listens = run->ready ? listens : NULL,
        .listens_context = run->ready,
        .record = flags->record.to,
        .replay = flags->record.from,
        .replay_to = (uint64_t)flags->record.to_step,
        .board = task_http_board(run->http),
    };
}

bool job_had_ended(const struct run *run)
{
    const struct train_spec *train = &run->spec.train;
    char prefix[CHECKPOINT_PATH_MAX];
    if (!train->checkpoint.dir || !train->last_step ||
        checkpoint_find(train->checkpoint.dir, prefix) ||
        checkpoint_step(prefix) < train->last_step)
        return false;
    log_line(LOG_INFO, "no other task answers, and %s is of the last step: the job is done",
             prefix);
    return true;
}

err run_resize(struct run *run, struct next_life *next)
{
    char text[MEMBERSHIP_TEXT_MAX];
    next->goes_on = false;
    if (!next->membership.count[JOB_PS]) return OK;
    TRY(cluster_resize(&run->cluster, &next->membership));
    next->goes_on = cluster_has_place(&run->cluster);
    registry_resized(run->registry);
    if (!next->goes_on)
        log_line(LOG_INFO, "ends: the job goes on with %s",
                 membership_text(&next->membership, text));
    return OK;
}

void report_version(const struct run *run)
{
    static bool is_told;
    if (!is_told && run->flags.launched == LAUNCHED_NO)
        log_line(LOG_INFO, "dtrain %s", version_text());
    is_told = true;
}

void report_end(int code, const char *text)
{
    const bool is_asked_for = code == EXIT_INTERRUPTED || code == EXIT_TERMINATED;
    if (code == EXIT_DONE) return;
    log_line(is_asked_for ? LOG_INFO : LOG_ERROR, "%s (exit code %d)",
             text[0] ? text : "the job failed", code);
}

int report_verdict(const struct task *t)
{
    report_end(t->code, t->text);
    if (t->code == EXIT_TIMEOUT) log_line(LOG_INFO, "see dtrain help timeouts");
    return t->code;
}
