/* wiring.c - see wiring.h. */
#include <sched.h>

#include "cmd/wiring.h"
#include "core/base/log.h"

static int cores_here(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

/* The names stand in the help of the flag, too. */
err open_cpu(int threads, const char *instruction_set, struct device *ret)
{
    err e = device_open_cpu(threads, instruction_set, ret);
    if (!instruction_set || (e != ERR_INPUT && e != ERR_DEVICE)) return e;
    return fail(e, "--cpu_kernels: %s%s", error_text(),
                e == ERR_INPUT ? "; known are avx512, avx2, sse2" : "");
}

err open_device(const struct run *run, struct device *ret)
{
    int threads = (int)run->flags.threads;
    bool is_ps = run->cluster.is_distributed && run->cluster.job == JOB_PS;
    if (!threads) threads = cores_here() / (is_ps ? 1 : cluster_workers_here(&run->cluster));
    return open_cpu(threads > 0 ? threads : 1, run->flags.cpu_kernels, ret);
}

static uint64_t milliseconds(double seconds)
{
    return (uint64_t)(seconds * 1000);
}

struct task_options task_options_of(const struct run *run, struct loop *loop)
{
    const struct run_flags *flags = &run->flags;
    return (struct task_options){
        .cluster = &run->cluster,
        .loop = loop,
        .transport = (enum transport_choice)flags->transport,
        .limits = {.start_ms = milliseconds(flags->start_timeout),
                   .step_ms = milliseconds(flags->step_timeout),
                   .end_ms = milliseconds(flags->end_timeout),
                   .restart_ms = milliseconds(flags->restart_timeout),
                   .stop_ms = milliseconds(flags->stop_timeout),
                   .save_ms = milliseconds(flags->save_timeout)},
        .fingerprint = run->has_spec ? run->spec.fingerprint : NULL,
        .listen = flags->bind,
    };
}

int report_verdict(const struct task *t)
{
    if (t->code != EXIT_DONE)
        log_line(LOG_ERROR, "%s (exit code %d)", t->text[0] ? t->text : "the job failed", t->code);
    return t->code;
}
