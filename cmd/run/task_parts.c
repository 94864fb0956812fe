/* task_parts.c - see task_parts.h. */
#include "cmd/run/task_parts.h"
#include "core/base/log.h"

static int threads_of(const struct run *run, bool is_ps)
{
    int threads = (int)run->flags.threads;
    if (!threads) threads = cores_here() / (is_ps ? 1 : cluster_workers_here(&run->cluster));
    return threads > 0 ? threads : 1;
}

/* Every worker says which GPU is its own; that there is none is said once for each host, by the
 * others at --log_level=debug only. */
void report_device(const struct device_answer *answer, const struct spec *spec, bool is_first)
{
    const enum log_level level = is_first ? LOG_INFO : LOG_DEBUG;
    const int precision = spec ? spec->precision : PRECISION_FLOAT32;
    if (answer->is_broken)
        log_line(LOG_WARNING, "computes on the CPU: %s", answer->text);
    else if (answer->is_gpu)
        log_line(LOG_INFO, "computes on %s", answer->text);
    else if (*answer->text)
        log_line(level, "%s", answer->text);
    if (precision != PRECISION_FLOAT32 && !answer->is_gpu)
        log_line(level, "precision %s has no effect on a CPU, which computes in float32",
                 precision_names[precision]);
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
    if (!is_ps(&run->cluster)) report_device(&answer, request.spec, request.local_index == 0);
    return OK;
}

struct task_options task_options_of(const struct run *run, struct loop *loop)
{
    const struct run_flags *flags = &run->flags;
    return (struct task_options){
        .cluster = &run->cluster,
        .loop = loop,
        .transport = (enum transport_choice)flags->transport,
        .parts = (enum parts_choice)flags->parts,
        .limits = flags->limits,
        .fingerprint = run->has_spec ? run->spec.fingerprint : NULL,
        .listen = flags->bind,
    };
}

int report_verdict(const struct task *t)
{
    if (t->code != EXIT_DONE)
        log_line(LOG_ERROR, "%s (exit code %d)", t->text[0] ? t->text : "the job failed", t->code);
    if (t->code == EXIT_TIMEOUT) log_line(LOG_INFO, "see dtrain help timeouts");
    return t->code;
}
