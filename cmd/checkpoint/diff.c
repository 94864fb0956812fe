/* diff.c - `dtrain checkpoint diff A B`: what differs between two checkpoints.
 *
 * Elements are compared bitwise: -0 differs from 0, and a NaN equals the same NaN.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/checkpoint/checkpoint.h"
#include "cmd/json_print.h"
#include "core/base/files/url.h"

enum { CODE_EQUAL = 0, CODE_DIFFERENT = 1 };

struct diff {
    struct bundle *a, *b;
    int differences; /* tensors */
    json_t *json;    /* --json: the list of them, instead of lines; NULL: none */
};

/* Steals the reference `how`. */
static void add_json(struct diff *d, const char *name, json_t *how)
{
    json_object_set_new(how, "name", json_string(name));
    json_array_append_new(d->json, how);
}

static void report_missing(struct diff *d, const struct bundle *here, const char *name)
{
    char shown[PATH_BYTES_MAX];
    if (d->json)
        add_json(d, name, json_pack("{ss}", "only_in", bundle_prefix(here)));
    else
        printf("%s: only in %s\n", name, path_shown(bundle_prefix(here), shown));
    d->differences++;
}

/* Compares types and shapes; false: they differ, which it has reported. */
static bool compare_forms(struct diff *d, const struct bundle_entry *a,
                          const struct bundle_entry *b)
{
    char left[TENSOR_SHAPE_TEXT_MAX], right[TENSOR_SHAPE_TEXT_MAX];
    if (a->dtype == b->dtype && checkpoint_same_shape(&a->shape, &b->shape)) return true;
    if (d->json)
        add_json(d, a->name,
                 json_pack("{s[ss] s[oo]}", "types", bundle_dtype_name(a->dtype),
                           bundle_dtype_name(b->dtype), "shapes", checkpoint_shape_json(&a->shape),
                           checkpoint_shape_json(&b->shape)));
    else
        printf("%s: %s %s and %s %s\n", a->name, bundle_dtype_name(a->dtype),
               checkpoint_shape_text(&a->shape, left), bundle_dtype_name(b->dtype),
               checkpoint_shape_text(&b->shape, right));
    d->differences++;
    return false;
}

/* Types and shapes are known to be equal. */
static void compare_elements(struct diff *d, const struct bundle_entry *entry,
                             const struct elements *a, const struct elements *b)
{
    const size_t size = bundle_dtype_size(entry->dtype);
    int64_t count = 0;
    double largest = 0;
    for (int64_t i = 0; i < a->count; i++) {
        const size_t at = (size_t)i * size;
        if (memcmp((const char *)a->at + at, (const char *)b->at + at, size) == 0) continue;
        const double by =
            fabs(checkpoint_number(a, entry->dtype, i) - checkpoint_number(b, entry->dtype, i));
        count++;
        if (isnan(by) || by > largest) largest = by; /* once NaN, always */
    }
    if (count == 0) return;
    if (d->json)
        add_json(d, entry->name,
                 json_pack("{sI sI so}", "elements", (json_int_t)a->count, "different",
                           (json_int_t)count, "by_at_most",
                           isfinite(largest) ? json_real(largest) : json_null()));
    else
        printf("%s: %lld of %lld elements differ, by %.9g at most\n", entry->name, (long long)count,
               (long long)a->count, largest);
    d->differences++;
}

static err compare_tensor(struct diff *d, const struct bundle_entry *entry)
{
    const struct bundle_entry *other = bundle_find(d->b, entry->name);
    struct elements a, b;
    if (!other) {
        report_missing(d, d->a, entry->name);
        return OK;
    }
    if (!compare_forms(d, entry, other)) return OK;
    TRY(checkpoint_elements(d->a, entry, NULL, &a));
    err e = checkpoint_elements(d->b, other, NULL, &b);
    if (!e) {
        compare_elements(d, entry, &a, &b);
        free(b.at);
    }
    free(a.at);
    return e;
}

/* In order of names: first all of A, then those that only B has. */
static err compare_all(struct diff *d)
{
    for (int i = 0; i < bundle_entries(d->a); i++) TRY(compare_tensor(d, bundle_at(d->a, i)));
    for (int i = 0; i < bundle_entries(d->b); i++) {
        const char *name = bundle_at(d->b, i)->name;
        if (!bundle_find(d->a, name)) report_missing(d, d->b, name);
    }
    return OK;
}

err checkpoint_diff(const struct checkpoint_call *call, int *ret_code)
{
    struct diff d = {0};
    TRY(checkpoint_open(call->words[0], &d.a));
    err e = checkpoint_open(call->words[1], &d.b);
    if (call->json) d.json = json_array();
    if (!e) e = compare_all(&d);
    if (!e && d.json)
        e = json_print(json_pack("{sb sO}", "equal", d.differences == 0, "differences", d.json));
    else if (!e && d.differences == 0)
        printf("equal: %d tensors, bit for bit\n", bundle_entries(d.a));
    json_decref(d.json);
    if (!e) *ret_code = d.differences ? CODE_DIFFERENT : CODE_EQUAL;
    bundle_close(d.a);
    bundle_close(d.b);
    return e;
}
