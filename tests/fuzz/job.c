/* job.c - see job.h. */
#include "tests/fuzz/job.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/log.h"
#include "core/cluster/runner/runner_ps_inside.h"
#include "core/cluster/runner/runner_worker_inside.h"

/* Its block has more floats than a part: two parts (core/cluster/role/parts.c). */
#define DENSE                                                                                      \
    "\"data\":{\"train\":{\"format\":\"random\",\"rows\":16,\"shape\":[416],\"classes\":10},"      \
    "\"batch_size\":4},"                                                                           \
    "\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"name\":\"logits\",\"units\":10}],"        \
    "\"loss\":\"softmax_cross_entropy\",\"optimizer\":{\"type\":\"adam\",\"learning_rate\":0.01}"
#define TABLE                                                                                      \
    "\"data\":{\"train\":{\"format\":\"clicks\",\"rows\":16,\"buckets\":40,\"strength\":4},"       \
    "\"batch_size\":4,\"columns\":[{\"column\":\"hash\",\"name\":\"c1\"}]},"                       \
    "\"model\":[{\"op\":\"embedding\",\"name\":\"deep\",\"inputs\":[\"c1\"],\"dimension\":2,"      \
    "\"capacity\":\"dynamic\"},{\"op\":\"dense\",\"name\":\"logit\",\"units\":1}],"                \
    "\"loss\":\"sigmoid_cross_entropy\",\"optimizer\":{\"type\":\"adagrad\","                      \
    "\"learning_rate\":0.1}"
#define TRAIN(MODE)                                                                                \
    ",\"train\":{\"mode\":\"" MODE "\",\"last_step\":8,\"worker_timeout_secs\":0.02,"              \
    "\"log_every_steps\":1000}}"

static const char *const texts[] = {
    "{\"name\":\"job\",\"seed\":1," DENSE TRAIN("async"),
    "{\"name\":\"job\",\"seed\":1," DENSE TRAIN("sync"),
    "{\"name\":\"job\",\"seed\":1," TABLE TRAIN("async"),
    "{\"name\":\"job\",\"seed\":1," TABLE TRAIN("sync"),
};
enum {
    KINDS = sizeof texts / sizeof *texts,
    LIMIT_MS = 3000 /* more than an input takes */,
    FILES_LIMIT_MS = 600000 /* of the machine's time */
};

struct spec *job_spec(uint8_t kind)
{
    static struct spec specs[KINDS];
    struct spec *spec = &specs[kind % KINDS];
    const struct spec_options options = {.path = "memory://spec.json", .data_dir = "/", .seed = -1};
    if (spec->name) return spec;
    const uint8_t *text = (const uint8_t *)texts[kind % KINDS];
    memory_file("spec.json", (struct view){text, text + strlen((const char *)text)});
    fuzz_holds(spec_load(&options, spec) == OK, error_text());
    memory_clear();
    return spec;
}

struct device *job_device(void)
{
    static struct device device;
    static bool is_open;
    if (!is_open) fuzz_holds(device_open_cpu(1, NULL, &device) == OK, "there is a processor");
    is_open = true;
    return &device;
}

static const char *ps_hosts[] = {"ps:1"}, *worker_hosts[] = {"a:1", "b:1"};

struct cluster_spec job_cluster(enum job job, int task)
{
    return (struct cluster_spec){
        .hosts = {[JOB_PS] = {ps_hosts, 1}, [JOB_WORKER] = {worker_hosts, JOB_WORKERS}},
        .job = job,
        .task = task,
        .is_distributed = true,
    };
}

struct peer_place job_place(enum job job, int task)
{
    return (struct peer_place){job, task, "\"ps:1\"", "\"a:1\", \"b:1\""};
}

struct task_options job_options(const struct cluster_spec *cluster, struct loop *loop,
                                const struct spec *spec)
{
    return (struct task_options){
        .cluster = cluster,
        .loop = loop,
        .transport = &transport_inproc,
        .fingerprint = spec->as_written,
        .limits = {.start_ms = LIMIT_MS,
                   .step_ms = LIMIT_MS,
                   .end_ms = 2 * LIMIT_MS,
                   .restart_ms = LIMIT_MS,
                   .stop_ms = LIMIT_MS,
                   .save_ms = LIMIT_MS},
    };
}

static struct job_turns *turns;

bool __real_loop_poll(struct loop *, int timeout_ms);
bool __wrap_loop_poll(struct loop *, int timeout_ms);

static uint64_t real_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A turn that is none. */
static void await_files(struct job_turns *t)
{
    if (!t->waiting_ms) t->waiting_ms = real_ms();
    fuzz_holds(real_ms() - t->waiting_ms < FILES_LIMIT_MS, "files are read and written");
    (void)poll(NULL, 0, 1);
}

/* Nothing else is waited for: what comes comes of the turn before. */
bool __wrap_loop_poll(struct loop *loop, int timeout_ms)
{
    if (!turns) return __real_loop_poll(loop, timeout_ms);
    if (turns->waits && turns->waits(turns->context)) {
        await_files(turns);
        return __real_loop_poll(loop, 0);
    }
    turns->waiting_ms = 0;
    peer_pass(1);
    fuzz_holds(turns->count < turns->most, "a job ends, whatever its peers do");
    turns->drive(turns->context, turns->count++);
    return __real_loop_poll(loop, 0);
}

bool job_has_files_in_hand(const struct runner_ps *ps, const struct runner_worker *chief)
{
    const struct folder_jobs *j = &chief->folder.jobs;
    return j->opening.is_running || j->publishing.is_running || j->removing.is_running ||
           ps->saving.job;
}

void job_run(struct job_turns *t, struct task *const tasks[], int count)
{
    turns = t;
    fuzz_holds(tasks_run(tasks, count) == OK, "tasks can be run");
}

void job_remove(const char *folder)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    fuzz_holds(system(command) == 0, "a folder that a job has saved to can be removed");
}
