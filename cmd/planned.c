/* planned.c - see planned.h. */
#include "cmd/planned.h"

#include "core/cluster/description/setup.h"
#include "core/train/hooks/hook.h"

static void count_tasks(struct planned *p)
{
    const struct run *run = &p->run;
    const bool is_distributed = run->cluster.is_distributed;
    int ps = is_distributed ? run->cluster.hosts[JOB_PS].count : 1,
        workers = is_distributed ? run->cluster.hosts[JOB_WORKER].count : 1;
    if (run->is_local) {
        ps = (int)run->flags.local_ps;
        workers = (int)run->flags.local_workers;
    }
    if (!p->ps_count) p->ps_count = ps;
    if (!p->workers) p->workers = workers;
}

/* Between hosts values and gradients travel while it computes; nobody moves them here. */
static const struct exchange between_hosts;

static err open_session(struct planned *p)
{
    const struct run *run = &p->run;
    const struct session_options options = {
        .spec = &run->spec,
        .device = &p->devices.device,
        .towers = p->devices.towers,
        .workers = p->workers,
        .ps_count = p->ps_count,
        .balances = p->is_spread || (!run->is_local && cluster_gains_by_balance(&run->cluster)),
        .batches_per_push = (int)setup_gradients_per_push(&run->spec, p->workers, 0),
        .batches_per_round = (int)spec_replicas(&run->spec, p->workers),
        .is_handed_out = !p->is_spread && spec_hands_out(&run->spec),
        .exchange = p->is_spread ? &between_hosts : NULL,
        .number = p->is_spread ? (enum number)run->spec.train.wire : NUMBER_FLOAT32,
        .value_number = p->is_spread ? (enum number)run->spec.train.wire_values : NUMBER_FLOAT32,
        .binds_device_memory = !p->is_spread && !run->cluster.is_distributed && !run->is_local,
    };
    TRY(session_open(&options, &p->session));
    p->has_session = true;
    return OK;
}

err planned_open(struct planned *p, const char *command, int argc, char **argv)
{
    struct run *run = &p->run;
    TRY(run_open(run, argc, argv));
    if (!run->spec_path) return fail(ERR_INPUT, "%s: no SPEC.json was named", command);
    TRY(run_load_spec(run));
    run->flags.limits.restart_ms = 0; /* it holds up no job, and says at once what is wrong */
    TRY(run_measure(run));
    count_tasks(p);
    struct device_request request = request_of(run);
    request.threads = 1;
    TRY(task_devices_open(&request, &p->devices, &p->answer));
    p->has_device = true;
    TRY(open_session(p));
    const struct run_view view = {.spec = &run->spec, .session = &p->session};
    const err e = hooks_check(&view);
    return e ? fail_prefix(e, "%s", run->spec.source) : OK;
}

void planned_close(struct planned *p)
{
    if (p->has_session) session_close(&p->session);
    if (p->has_device) task_devices_close(&p->devices);
    run_close(&p->run);
}
