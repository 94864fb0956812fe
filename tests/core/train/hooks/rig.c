/* rig.c - see rig.h. */
#include "tests/core/train/hooks/rig.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"
#include "tests/core/train/summary/reader.h"

enum { SETS_MAX = 16, TIME_LENGTH = 13 /* "12:34:56.789 " */ };

static const char spec_json[] =
    "{\"name\": \"rig\",\n"
    " \"data\": {\"train\": {\"format\": \"digits\", \"rows\": 48, \"take\": 32},\n"
    "          \"eval\": {\"format\": \"digits\", \"rows\": 48, \"skip\": 32},\n"
    "          \"batch_size\": 4, \"scale\": 0.00390625},\n"
    " \"model\": [{\"op\": \"flatten\"}, {\"op\": \"dense\", \"name\": \"logits\", \"units\": "
    "10}],\n"
    " \"loss\": \"softmax_cross_entropy\", \"metrics\": [\"accuracy\"],\n"
    " \"optimizer\": {\"type\": \"gradient_descent\", \"learning_rate\": 0.5},\n"
    " \"train\": {\"last_step\": 1000}}\n";

void rig_must(err e)
{
    if (e) fail_msg("%s", error_text());
}

/* Everything that is logged goes through a pipe, which no limit on files touches; what a failing
 * test logged is shown in the end. */
int rig_setup(void **state)
{
    int ends[2];
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    scratch_make(rig->folder);
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    rig->log_pipe = ends[0];
    rig->real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    assert_true(rig->real_stderr >= 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    *state = rig;
    return 0;
}

int rig_teardown(void **state)
{
    struct rig *rig = *state;
    char bytes[4096];
    ssize_t got;
    dup2(rig->real_stderr, STDERR_FILENO);
    while ((got = read(rig->log_pipe, bytes, sizeof bytes)) > 0)
        if (write(STDERR_FILENO, bytes, (size_t)got) < 0) break;
    close(rig->real_stderr);
    close(rig->log_pipe);

    hooks_close(&rig->view);
    if (rig->values) rig->device.kernels->release(&rig->device, rig->values);
    if (rig->gradients) rig->device.kernels->release(&rig->device, rig->gradients);
    if (rig->session.graph) session_close(&rig->session);
    if (rig->device.kernels) device_close(&rig->device);
    spec_free(&rig->spec);
    scratch_remove(rig->folder);
    free(rig);
    return 0;
}

/* ---- what hooks ask for ---- */

static bool save(void *asker)
{
    struct rig *rig = asker;
    rig->saves += !rig->is_saving;
    return !rig->is_saving;
}

static void stop(void *asker, err kind, const char *why)
{
    struct rig *rig = asker;
    rig->stops++;
    rig->stop_kind = kind;
    snprintf(rig->stop_why, sizeof rig->stop_why, "%s", why);
}

static err evaluate(void *asker, struct evaluation *ret)
{
    struct rig *rig = asker;
    rig->evaluations++;
    *ret = rig->answer;
    return OK;
}

static err restore(void *asker, const char *prefix)
{
    struct rig *rig = asker;
    snprintf(rig->restored, sizeof rig->restored, "%s", prefix);
    return OK;
}

static const struct run_asks asks = {
    .save = save, .stop = stop, .evaluate = evaluate, .restore = restore};

/* ---- life ---- */

err rig_load(struct rig *rig, const char *const sets[])
{
    char path[128];
    const char *at[SETS_MAX];
    int count = 0;
    for (; sets[count]; count++) {
        assert_true(count < SETS_MAX);
        at[count] = sets[count];
    }
    snprintf(path, sizeof path, "%s/spec.json", rig->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(spec_json, file);
    assert_int_equal(fclose(file), 0);
    const struct spec_options options = {
        .path = path, .overrides = {.at = at, .count = count}, .seed = -1};
    return spec_load(&options, &rig->spec);
}

static float *allocate(struct rig *rig)
{
    void *memory;
    const size_t bytes = (size_t)rig->session.layout->block_floats[0] * sizeof(float);
    rig_must(rig->device.kernels->allocate(&rig->device, bytes, &memory));
    return memory;
}

/* One real step, so that there are metrics to be read. */
static void open_session(struct rig *rig)
{
    const struct session_options options = {.spec = &rig->spec,
                                            .device = &rig->device,
                                            .workers = 1,
                                            .ps_count = 1,
                                            .batches_per_push = 1};
    double loss;
    rig_must(device_open_cpu(1, NULL, &rig->device));
    rig_must(session_open(&options, &rig->session));
    rig->values = allocate(rig);
    rig->gradients = allocate(rig);
    session_bind(&rig->session, 0, rig->values, rig->gradients);
    rig_must(session_initial_values(&rig->session, 0, rig->values));
    rig_must(session_step(&rig->session, &loss));
}

void rig_prepare(struct rig *rig, const char *const sets[])
{
    rig_must(rig_load(rig, sets));
    open_session(rig);
    const struct train_spec *train = &rig->spec.train;
    rig->view = (struct run_view){
        .spec = &rig->spec,
        .session = &rig->session,
        .is_chief = true,
        .workers = 1,
        .ps_count = 1,
        .last_step = 1000,
        .loss = 0.25,
        .learning_rate = 0.5,
        .wall_s = 1700000000,
        .checkpoint_dir = train->checkpoint.dir,
        .summary_dir = train->summary.dir ? train->summary.dir : train->checkpoint.dir,
        .asks = &asks,
        .asker = rig,
    };
}

err rig_open(struct rig *rig)
{
    return hooks_open(&rig->view, &(struct own_hook){0});
}

err rig_tell(struct rig *rig, enum occasion_kind kind)
{
    return hooks_tell(&rig->view, &(struct occasion){kind});
}

void rig_saved(struct rig *rig, const char *prefix, const char *why)
{
    rig_must(hooks_tell(&rig->view, &(struct occasion){OCCASION_SAVED, .saved = {prefix, why}}));
}

void rig_start(struct rig *rig, const char *const sets[])
{
    rig_prepare(rig, sets);
    rig_must(rig_open(rig));
}

static void set_time(struct rig *rig, double seconds)
{
    rig->view.now_ns = SECOND + (uint64_t)(seconds * SECOND);
    rig->view.wall_s = 1700000000 + seconds;
}

void rig_step(struct rig *rig, uint64_t step, double seconds)
{
    rig_step_from(rig, step, seconds, seconds);
}

void rig_step_from(struct rig *rig, uint64_t step, double begin_seconds, double seconds)
{
    set_time(rig, begin_seconds);
    rig->view.global_step = step - 1;
    rig_must(rig_tell(rig, OCCASION_BEFORE));
    set_time(rig, seconds);
    rig->view.global_step = step;
    rig->view.own_steps++;
    rig_must(rig_tell(rig, OCCASION_COMPUTED));
    rig_must(rig_tell(rig, OCCASION_STEPPED));
}

void rig_adopt(struct rig *rig, uint64_t step, double seconds)
{
    set_time(rig, seconds);
    rig->view.global_step = step;
    rig_must(rig_tell(rig, OCCASION_ADOPTED));
}

void rig_evaluated(struct rig *rig, uint64_t step, double loss, double accuracy)
{
    const struct evaluation evaluation = {16, loss, &accuracy};
    rig->view.global_step = step;
    rig_must(
        hooks_tell(&rig->view, &(struct occasion){OCCASION_EVALUATED, .evaluated = {&evaluation}}));
}

void rig_end(struct rig *rig, int code)
{
    rig_must(hooks_tell(&rig->view, &(struct occasion){OCCASION_END, .end = {code, ""}}));
    hooks_close(&rig->view);
}

/* ---- the log ---- */

const char *rig_log(struct rig *rig)
{
    char bytes[RIG_TEXT_MAX];
    const ssize_t got = read(rig->log_pipe, bytes, sizeof bytes - 1);
    bytes[got > 0 ? got : 0] = '\0';

    size_t used = 0;
    rig->log[0] = '\0';
    for (char *line = bytes, *end; (end = strchr(line, '\n')); line = end + 1) {
        const bool has_time = end - line > TIME_LENGTH && line[2] == ':' && line[8] == '.';
        if (has_time) line += TIME_LENGTH;
        used += (size_t)snprintf(rig->log + used, sizeof rig->log - used, "%.*s\n",
                                 (int)(end - line), line);
    }
    return rig->log;
}
