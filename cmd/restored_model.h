/* restored_model.h - a model with the values of a checkpoint: shared by `dtrain eval`, `dtrain
 * predict`, `dtrain sample` and others. */
#ifndef CMD_RESTORED_MODEL_H
#define CMD_RESTORED_MODEL_H

#include "cmd/cmd.h"
#include "core/train/session/session.h"

struct restored_flags {
    const char *checkpoint;
    struct strings set;
    const char *data_dir;
    struct cache_flags cache;
    int changed_features; /* enum changed_features */
    int64_t threads;
    const char *cpu_kernels, *device;
};

struct restored_model {
    struct restored_flags flags;
    struct spec spec;
    struct bundle *bundle;
    int64_t step; /* of the checkpoint */
    struct device device;
    struct session session;
    struct lease
        *lease; /* rows of tables are read from the files; NULL: none, or none could be had */
    bool has_spec, has_device, has_session;
    bool feeds_rows; /* set by the command before it opens: rows are its own, not those of the data
                      */
    /* Set by the command before it opens, whose rows others bring: says, once the spec is measured,
     * what they are; data.eval is not opened. NULL: none are brought */
    err (*asks)(void *context, struct asked_rows *ret);
    void *asks_context;
};

/* flags, then own, a table of fields whose struct begins with a struct restored_flags of `size`
 * bytes: one table in the arena, for flags_parse and flags_help. */
struct object restored_model_flags_with(const struct field *own, size_t size, struct arena *);

/* argv[0] is the command's name; own: as above. ERR_INPUT unless exactly one word, the spec, comes
 * beside the flags. */
struct restored_call {
    int argc;
    char **argv;
    const struct field *own;
    size_t size;
};
err restored_model_parse(const struct restored_call *, struct arena *, void *ret_flags,
                         const char **ret_path);

/* The spec alone, so that its data can still be changed; then everything else. */
err restored_model_load_spec(struct restored_model *, const struct restored_flags *,
                             const char *path);
/* Rows are of the form of data.train, those that are there now where it is followed. */
void restored_model_use_train(struct restored_model *);
err restored_model_open(struct restored_model *, bool without_labels);
void restored_model_close(struct restored_model *); /* a zeroed one is fine */

#endif
