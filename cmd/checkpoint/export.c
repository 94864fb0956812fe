/* export.c - `dtrain checkpoint export CKPT FILE.npz`: for numpy.load. */
#include <stdio.h>
#include <stdlib.h>

#include "cmd/checkpoint/checkpoint.h"
#include "cmd/checkpoint/npz.h"
#include "core/base/files/url.h"
#include "core/base/log.h"

static const char *numpy_type(int dtype)
{
    switch (dtype) {
    case BUNDLE_FLOAT:
        return "<f4";
    case BUNDLE_DOUBLE:
        return "<f8";
    case BUNDLE_INT32:
        return "<i4";
    case BUNDLE_INT64:
        return "<i8";
    case BUNDLE_UINT8:
        return "|u1";
    default:
        return NULL;
    }
}

/* One tensor is in memory at a time. */
static err add(struct npz *npz, struct bundle *bundle, const struct bundle_entry *entry)
{
    struct elements elements;
    TRY(checkpoint_elements(bundle, entry, NULL, &elements));
    const struct npz_array array = {
        .name = entry->name,
        .type = numpy_type(entry->dtype),
        .rank = entry->shape.rank,
        .dim = entry->shape.dim,
        .elements = elements.at,
        .bytes = elements.bytes,
    };
    err e = npz_add(npz, &array);
    free(elements.at);
    return e;
}

/* Tensors of types that we cannot read (strings, float16) are reported, not silently skipped. */
static err add_all(struct npz *npz, struct bundle *bundle, int *ret_arrays)
{
    int arrays = 0;
    for (int i = 0; i < bundle_entries(bundle); i++) {
        const struct bundle_entry *entry = bundle_at(bundle, i);
        if (!numpy_type(entry->dtype)) {
            log_line(LOG_WARNING, "%s is left out: elements of type %s cannot be read", entry->name,
                     bundle_dtype_name(entry->dtype));
            continue;
        }
        TRY(add(npz, bundle, entry));
        arrays++;
    }
    *ret_arrays = arrays;
    return OK;
}

static err export(struct bundle *bundle, const char *path)
{
    struct npz *npz;
    char shown[PATH_BYTES_MAX];
    int arrays;
    TRY(npz_create(path, &npz));
    err e = add_all(npz, bundle, &arrays);
    if (e) {
        npz_abandon(npz);
        return e;
    }
    TRY(npz_finish(npz));
    printf("%s: %d arrays of %s\n", path, arrays, path_shown(bundle_prefix(bundle), shown));
    return OK;
}

err checkpoint_export(const struct checkpoint_call *call, int *ret_code)
{
    struct bundle *bundle;
    TRY(checkpoint_open(call->words[0], &bundle));
    err e = export(bundle, call->words[1]);
    bundle_close(bundle);
    return e;
}
