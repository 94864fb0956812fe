/* test_settings.c - what a worker says is set, in each state of a job: nothing where it has not
 * opened the folder that says so.
 */
#include "core/base/log.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_role.h"
#include "core/cluster/runner/runner_ps.h"
#include "core/cluster/runner/runner_worker_inside.h"
#include "tests/fuzz/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* last: it has a macro named fail */

enum { TURNS_MAX = 20000, WAITED_MS = 20, ASKING = 77 };

static struct scene {
    struct runner_ps *ps;
    struct runner_worker *workers[JOB_WORKERS];
    json_t *said; /* to the last request */
    int listed, refused;
} scene;

void __wrap_runner_worker_reply(struct runner_worker *, uint64_t request_id, json_t *);
void __wrap_runner_worker_refuse(struct runner_worker *, uint64_t request_id, int code,
                                 const char *);

void __wrap_runner_worker_reply(struct runner_worker *w, uint64_t request_id, json_t *json)
{
    (void)w;
    assert_int_equal(request_id, ASKING);
    json_decref(scene.said);
    scene.said = json;
}

void __wrap_runner_worker_refuse(struct runner_worker *w, uint64_t request_id, int code,
                                 const char *why)
{
    __wrap_runner_worker_reply(w, request_id, json_pack("{si ss}", "code", code, "error", why));
}

static void ask(int worker, bool keeps)
{
    const struct message m = {
        .type = MESSAGE_REQUEST, .request.request_id = ASKING, .body = "{}", .body_bytes = 2};
    struct runner_worker *w = scene.workers[worker];
    const bool knows = !keeps || (runner_worker_leads(w) && w->folder.checkpoints);
    runner_worker_heard_setting(w, &m);
    const char *error = json_string_value(json_object_get(scene.said, "error"));
    if (knows != (error == NULL))
        fail_msg("worker/%d, which %s: %s", worker, knows ? "knows" : "does not know",
                 error ? error : "a list");
    if (error) assert_non_null(strstr(error, "try again later"));
    if (!error) assert_true(json_is_object(json_object_get(scene.said, "settings")));
    scene.listed += knows;
    scene.refused += !knows;
}

/* Before each look at the links, whether or not the folder is being opened */
static bool has_files_in_hand(void *context)
{
    const bool *keeps = context;
    for (int i = 0; i < JOB_WORKERS; i++)
        if (!runner_worker_task(scene.workers[i])->has_ended) ask(i, *keeps);
    return job_has_files_in_hand(scene.ps, scene.workers[0]);
}

static void drive(void *context, int turn)
{
    (void)context;
    (void)turn;
    if (runner_worker_task(scene.workers[0])->has_ended) peer_pass(WAITED_MS);
}

static void run_job(const char *folder)
{
    struct spec spec = *job_spec(0);
    struct cluster_spec clusters[1 + JOB_WORKERS] = {job_cluster(JOB_PS, 0)};
    struct task *tasks[1 + JOB_WORKERS];
    struct loop *loop;
    bool keeps = folder != NULL;
    scene = (struct scene){0};
    spec.train.checkpoint.dir = (char *)folder;
    assert_int_equal(loop_open(&loop), OK);
    const struct task_options of_ps = job_options(&clusters[0], loop, &spec);
    assert_int_equal(runner_ps_open(&of_ps, job_device(), &scene.ps), OK);
    tasks[0] = runner_ps_task(scene.ps);
    for (int i = 0; i < JOB_WORKERS; i++) {
        clusters[1 + i] = job_cluster(JOB_WORKER, i);
        struct runner_worker_options options = {.task = job_options(&clusters[1 + i], loop, &spec),
                                                .spec = &spec,
                                                .device = job_device()};
        if (runner_worker_open(&options, &scene.workers[i])) fail_msg("%s", error_text());
        tasks[1 + i] = runner_worker_task(scene.workers[i]);
    }
    struct job_turns turns = {
        .drive = drive, .context = &keeps, .most = TURNS_MAX, .waits = has_files_in_hand};
    job_run(&turns, tasks, 1 + JOB_WORKERS);
    for (int i = 0; i < JOB_WORKERS; i++) {
        assert_int_equal(tasks[1 + i]->code, EXIT_DONE);
        assert_int_equal(runner_worker_end(scene.workers[i]), OK);
        runner_worker_close(scene.workers[i]);
    }
    runner_ps_close(scene.ps);
    loop_close(loop);
    json_decref(scene.said);
}

static void a_worker_that_does_not_know_what_is_set_says_so(void **state)
{
    char folder[] = "/tmp/settings-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    run_job(folder);
    assert_true(scene.listed > 0 && scene.refused > scene.listed / 2);
    job_remove(folder);
}

static void nothing_is_set_where_no_checkpoints_are_kept(void **state)
{
    (void)state;
    run_job(NULL);
    assert_int_equal(scene.refused, 0);
    assert_true(scene.listed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_does_not_know_what_is_set_says_so),
        cmocka_unit_test(nothing_is_set_where_no_checkpoints_are_kept),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
