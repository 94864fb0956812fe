/* restored_model.c - see restored_model.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/checkpoint/checkpoint.h"
#include "cmd/cores.h"
#include "cmd/restored_model.h"
#include "cmd/run/task_parts.h"
#include "core/base/log.h"
#include "core/train/checkpoint/checkpoints.h"

enum { THREADS_MAX = 1024, HOLDER_BYTES = 48 };

static const struct field shared[] = {
    {.name = "checkpoint",
     .type = FIELD_STRING,
     .offset = offsetof(struct restored_flags, checkpoint),
     .help = "a folder (its newest checkpoint), a prefix or an .index file; dtrain's or "
             "TensorFlow's"},
    {.name = "set",
     .type = FIELD_STRINGS,
     .offset = offsetof(struct restored_flags, set),
     .fallback = "[]",
     .help = "override a value of the spec, as in --set data.eval.take=1000; may be repeated"},
    {.name = "data_dir",
     .type = FIELD_STRING,
     .offset = offsetof(struct restored_flags, data_dir),
     .fallback = "null",
     .help =
         "folder that relative paths of data files start from; default: the folder of the spec"},
    CACHE_FLAGS(struct restored_flags),
    CHANGED_FEATURES_FLAG(struct restored_flags),
    {.name = "threads",
     .type = FIELD_INT,
     .offset = offsetof(struct restored_flags, threads),
     .fallback = "auto",
     .max = THREADS_MAX,
     .zero = "auto",
     .help = "threads for computation; auto: one per core"},
    {.name = "cpu_kernels",
     .type = FIELD_STRING,
     .offset = offsetof(struct restored_flags, cpu_kernels),
     .fallback = "null",
     .help = "instruction set to use: avx512, avx2 or sse2; default: the best available; also by "
             "the environment variable DTRAIN_CPU_KERNELS"},
    {.name = "device",
     .type = FIELD_STRING,
     .offset = offsetof(struct restored_flags, device),
     .fallback = "null",
     .help = "device to compute on: auto, cpu, gpu or gpu:N; overrides \"device\" of the spec"},
};
enum { SHARED = sizeof shared / sizeof *shared };

struct object restored_model_flags_with(const struct field *own, size_t size, struct arena *arena)
{
    int count = 0;
    while (own[count].name) count++;
    struct field *fields = arena_array(arena, (size_t)(SHARED + count + 1), sizeof *fields);
    memcpy(fields, shared, sizeof shared);
    memcpy(fields + SHARED, own, (size_t)count * sizeof *own);
    return (struct object){"flags", "", fields, size};
}

/* The command's name stands before every message, as its flags are not those of a run. */
err restored_model_parse(const struct restored_call *call, struct arena *arena, void *ret_flags,
                         const char **ret_path)
{
    int paths;
    const struct object object = restored_model_flags_with(call->own, call->size, arena);
    err e = flags_parse(&object, call->argc, call->argv, arena, ret_flags, ret_path, 1, &paths);
    if (!e && paths == 0) e = fail(ERR_INPUT, "no SPEC.json was named");
    return e ? fail_prefix(e, "%s", call->argv[0]) : OK;
}

/* Seed -1: the spec's own, so that made data are those of the run. */
err restored_model_load_spec(struct restored_model *r, const struct restored_flags *flags,
                             const char *path)
{
    const struct spec_options options = {
        .path = path,
        .overrides = flags->set,
        .data_dir = flags->data_dir,
        .seed = -1,
        .trains_nothing = true,
        .accepts_changed_features = flags->changed_features == CHANGED_FEATURES_ACCEPT,
    };
    r->flags = *flags;
    TRY(cache_flags_begin(&flags->cache));
    TRY(spec_load(&options, &r->spec));
    r->has_spec = true;
    return OK;
}

/* As many threads as a run alone would have. */
static err open_restored_device(struct restored_model *r)
{
    const struct device_request request = {
        .flag = r->flags.device,
        .spec = &r->spec,
        .threads = r->flags.threads ? (int)r->flags.threads : cores_here(),
        .cpu_kernels = r->flags.cpu_kernels,
    };
    struct device_answer answer;
    TRY(device_request_open(&request, &r->device, &answer));
    r->has_device = true;
    report_device(&answer, false); /* a result, not a log, is what was asked for */
    return OK;
}

/* How many features the first layer has in the checkpoint, where that is what does not fit; else
 * -1. Its kernel is [features, units]. */
static int64_t wanted_features(const struct restored_model *r, int64_t features)
{
    const struct graph *g = r->session.graph;
    if (g->param_count == 0) return -1;
    const struct param *first = g->params[0];
    const struct bundle_entry *entry = bundle_find(r->bundle, first->name);
    if (!entry || entry->shape.rank != 2 || first->shape.rank != 2) return -1;
    if (first->shape.dim[0] != features || entry->shape.dim[0] == features) return -1;
    return entry->shape.dim[1] == first->shape.dim[1] ? entry->shape.dim[0] : -1;
}

/* Where rows are too wide or too narrow, the data are most likely wrong, and not the variable. */
static err restore_values(struct restored_model *r)
{
    const struct batch_source *data = r->session.data.evaluation;
    const struct column *column = batch_source_column(data, FEATURES_NAME);
    const int64_t features = column ? column_width(column) : -1;
    err e = session_restore(&r->session, r->bundle);
    const int64_t wanted = e == ERR_INPUT ? wanted_features(r, features) : -1;
    if (wanted < 0) return e;
    return fail(e, "%s: %lld %s, the model wants %lld: %s", data->name, (long long)features,
                features == 1 ? "feature column" : "feature columns", (long long)wanted,
                error_text());
}

/* By what lies beside the checkpoint. */
static err measure(struct restored_model *r)
{
    TRY(spec_take_kept(&r->spec, checkpoint_folder(r->bundle, &r->spec.arena), true));
    return spec_measure(&r->spec);
}

/* So that a run does not remove what is read. A folder that cannot be written to is not a run's. A
 * server may read a checkpoint twice, as what is newest and as what has a label. */
static void take_lease(struct restored_model *r)
{
    char holder[HOLDER_BYTES];
    snprintf(holder, sizeof holder, "reader-%ld-%zx", (long)getpid(), (size_t)r);
    if (!rows_are_used(&r->session.rows)) return;
    if (lease_take(bundle_prefix(r->bundle), holder, &r->lease))
        log_line(LOG_DEBUG, "%s", error_text());
}

void restored_model_use_train(struct restored_model *r)
{
    r->spec.data.eval = r->spec.data.train;
    r->spec.data.eval.follow = false;
}

/* The checkpoint first: it is the word that is most often wrong, and the cheapest to look at. */
err restored_model_open(struct restored_model *r, bool without_labels)
{
    TRY(checkpoint_open(r->flags.checkpoint, &r->bundle));
    TRY(checkpoint_global_step(r->bundle, &r->step));
    TRY(measure(r));
    if (without_labels && !r->asks)
        spec_leave_measures(&r->spec); /* rows may be sent as they are */
    TRY(open_restored_device(r));
    struct asked_rows asked;
    if (r->asks) TRY(r->asks(r->asks_context, &asked));
    const struct session_options options = {
        .spec = &r->spec,
        .device = &r->device,
        .workers = 1,
        .ps_count = 1,
        .batches_per_push = 1,
        .only_evaluates = true,
        .without_labels = without_labels,
        .feeds_rows = r->feeds_rows,
        .asked = r->asks ? &asked : NULL,
    };
    TRY(session_open(&options, &r->session));
    r->has_session = true;
    take_lease(r);
    return restore_values(r);
}

void restored_model_close(struct restored_model *r)
{
    lease_drop(r->lease);
    if (r->has_session) session_close(&r->session);
    if (r->has_device) device_close(&r->device);
    if (r->has_spec) spec_free(&r->spec);
    bundle_close(r->bundle);
    *r = (struct restored_model){0};
}
