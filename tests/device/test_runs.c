/* test_runs.c - whole runs of real tasks: a single process whose variables live on the device, and
 * a worker on the device beside a ps on the CPU. Both end with the CPU's checkpoint. */
#include "core/cluster/runner/runner_ps.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/runner/runner_worker.h"
#include "net/transport.h"
#include "tests/device/rig.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 256, TEXT_BYTES = 2048, LIMIT_MS = 60000 };

#define MODEL                                                                                      \
    "\"data\":{\"train\":{\"format\":\"digits\",\"rows\":200},\"eval\":{\"format\":\"digits\","    \
    "\"rows\":60},\"batch_size\":10,\"scale\":0.0039},\"model\":[{\"op\":\"flatten\"},{\"op\":"    \
    "\"dense\",\"units\":30,\"activation\":\"relu\"},{\"op\":\"dense\",\"units\":10}],\"loss\":"   \
    "\"softmax_cross_entropy\",\"metrics\":[\"accuracy\"],\"optimizer\":{\"type\":\"rmsprop\","    \
    "\"learning_rate\":0.01,\"momentum\":0.5},"

/* A run of two tasks in this thread. */
struct run {
    struct spec spec;
    struct device device, host; /* of the worker; of a ps beside it */
    struct cluster_spec cluster[JOB_COUNT];
    char address[JOB_COUNT][ADDRESS_MAX];
    const char *hosts[JOB_COUNT];
    struct loop *loop;
    struct runner_ps *ps;
    struct runner_worker *worker;
    struct tape *tape;
    int evaluations;
};

static err computed(void *state, const struct run_view *view, const struct occasion *o)
{
    struct run *r = state;
    tape_add(r->tape, &view->global_step, sizeof view->global_step);
    tape_add(r->tape, &view->loss, sizeof view->loss);
    return OK;
}

static err evaluated(void *state, const struct run_view *view, const struct occasion *o)
{
    struct run *r = state;
    const struct evaluation *e = o->evaluated.evaluation;
    r->evaluations++;
    tape_add(r->tape, &e->loss, sizeof e->loss);
    tape_add(r->tape, e->metrics, sizeof *e->metrics);
    return OK;
}

static const struct hook recorder = {
    .on = {[OCCASION_COMPUTED] = computed, [OCCASION_EVALUATED] = evaluated}};

/* Two addresses: names where links stay inside, ports of this host otherwise. */
static void name_tasks(struct run *r, const struct transport *transport)
{
    for (int job = 0; job < JOB_COUNT; job++) {
        int fd = -1;
        snprintf(r->address[job], ADDRESS_MAX, "%s", job_name((enum job)job));
        if (transport == &transport_tcp && address_reserve("127.0.0.1:0", r->address[job], &fd))
            fail_msg("%s", error_text());
        if (fd >= 0) close(fd);
        r->hosts[job] = r->address[job];
    }
    for (int job = 0; job < JOB_COUNT; job++) {
        r->cluster[job] = (struct cluster_spec){.job = (enum job)job, .is_distributed = true};
        for (int i = 0; i < JOB_COUNT; i++)
            r->cluster[job].hosts[i] = (struct strings){.at = &r->hosts[i], .count = 1};
    }
}

#define EACH(...) LIMIT_MS

static struct task_options options_of(const struct run *r, enum job job,
                                      const struct transport *transport)
{
    return (struct task_options){
        .cluster = &r->cluster[job],
        .loop = r->loop,
        .transport = transport,
        .limits = {WAIT_LIMITS(EACH)},
        .fingerprint = job == JOB_WORKER ? r->spec.fingerprint : NULL,
    };
}

static void open_devices(struct run *r, enum place place)
{
    err e = place == APART ? device_open_apart(SIZE_MAX, &r->device)
                           : device_open_cpu(1, NULL, &r->device);
    if (!e) e = device_open_cpu(1, NULL, &r->host);
    if (e) fail_msg("%s", error_text());
}

static void run_tasks(struct run *r, const struct transport *transport)
{
    err e = loop_open(&r->loop);
    if (e) fail_msg("%s", error_text());
    const struct task_options ps_options = options_of(r, JOB_PS, transport);
    const struct runner_worker_options worker_options = {
        .task = options_of(r, JOB_WORKER, transport),
        .spec = &r->spec,
        .device = &r->device,
        .own_hook = {&recorder, r},
    };
    e = runner_ps_open(&ps_options, transport == &transport_inproc ? &r->device : &r->host, &r->ps);
    if (!e) e = runner_worker_open(&worker_options, &r->worker);
    if (e) fail_msg("%s", error_text());
    struct task *tasks[] = {runner_ps_task(r->ps), runner_worker_task(r->worker)};
    if (tasks_run(tasks, 2)) fail_msg("%s", error_text());
    if (tasks[1]->code != EXIT_DONE) fail_msg("%s", tasks[1]->text);
    runner_worker_close(r->worker);
    runner_ps_close(r->ps);
    loop_close(r->loop);
}

static void run_once(const char *train, enum place place, const struct transport *transport,
                     struct tape *tape)
{
    static struct run r;
    char text[TEXT_BYTES];
    r = (struct run){.tape = tape};
    snprintf(text, sizeof text, "{%s\"train\":%s}", MODEL, train);
    rig_load_spec(text, &r.spec);
    open_devices(&r, place);
    name_tasks(&r, transport);
    run_tasks(&r, transport);
    assert_int_equal(r.evaluations, 1);
    if (place == APART) assert_int_equal(device_apart_in_use(&r.device), 0);
    device_close(&r.device);
    device_close(&r.host);
    spec_free(&r.spec);
}

/* The data file of the last checkpoint: values, slots, powers, ledger. */
static void add_checkpoint(const char *folder, int step, struct tape *tape)
{
    char path[PATH_BYTES], piece[4096];
    snprintf(path, sizeof path, "%s/model.ckpt-%d.data-00000-of-00001", folder, step);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is not there", path);
    size_t got;
    while ((got = fread(piece, 1, sizeof piece, file)) > 0) tape_add(tape, piece, got);
    fclose(file);
}

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *at)
{
    (void)found, (void)kind, (void)at;
    return remove(path);
}

static void remove_folder(const char *folder)
{
    enum { OPEN_FOLDERS_MAX = 16 };
    assert_int_equal(nftw(folder, remove_one, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS), 0);
}

/* To a first end, and from its checkpoint to a second one. */
static void record(const char *mode, enum place place, const struct transport *transport,
                   struct tape *tape)
{
    char folder[] = "/tmp/device-run-XXXXXX", train[TEXT_BYTES];
    assert_non_null(mkdtemp(folder));
    for (int last = 7; last <= 12; last += 5) {
        snprintf(train, sizeof train,
                 "{%s,\"last_step\":%d,\"checkpoint_dir\":\"%s\",\"save_summaries_steps\":0}", mode,
                 last, folder);
        run_once(train, place, transport, tape);
        add_checkpoint(folder, last, tape);
    }
    remove_folder(folder);
}

static void check(const char *mode, const struct transport *transport)
{
    struct tape cpu = {0}, apart = {0};
    record(mode, ON_CPU, transport, &cpu);
    record(mode, APART, transport, &apart);
    assert_same_tape(&cpu, &apart);
    tape_free(&cpu);
    tape_free(&apart);
}

static void a_single_process_keeps_variables_and_slots_on_the_device(void **state)
{
    check("\"mode\":\"sync\"", &transport_inproc);
    check("\"mode\":\"async\"", &transport_inproc);
    check("\"mode\":\"sync\",\"replicas_to_aggregate\":3", &transport_inproc);
}

static void a_worker_on_the_device_exchanges_with_a_ps_on_the_cpu(void **state)
{
    check("\"mode\":\"sync\"", &transport_tcp);
    check("\"mode\":\"async\"", &transport_tcp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_process_keeps_variables_and_slots_on_the_device),
        cmocka_unit_test(a_worker_on_the_device_exchanges_with_a_ps_on_the_cpu),
    };
    tasks_prepare();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
