/* device_choice.c - see device_choice.h.
 *
 * Which GPUs there are is not asked here: a spec that names one is right on a machine without any,
 * where it may only be looked at.
 */
#include "core/train/session/device_choice.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

static const char gpu_prefix[] = "gpu:";

/* Digits and nothing else: strtol alone would take a sign and spaces. */
static bool read_index(const char *digits, int *ret)
{
    const size_t length = strlen(digits);
    if (length == 0 || length > 3 || strspn(digits, "0123456789") != length) return false;
    *ret = atoi(digits);
    return *ret < GPUS_MAX;
}

err device_choice_parse(const char *text, struct device_choice *ret)
{
    static const struct {
        const char *name;
        enum device_kind kind;
    } words[] = {{"auto", DEVICE_AUTO}, {"cpu", DEVICE_CPU}, {"gpu", DEVICE_GPU}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i].name) != 0) continue;
        *ret = (struct device_choice){words[i].kind, -1};
        return OK;
    }
    int index;
    const size_t prefix = strlen(gpu_prefix);
    if (strncmp(text, gpu_prefix, prefix) != 0 || !read_index(text + prefix, &index))
        return fail(ERR_INPUT,
                    "expected auto, cpu, gpu or gpu:N with N from 0 to %d, got \"%.64s\"",
                    GPUS_MAX - 1, text);
    *ret = (struct device_choice){DEVICE_GPU, index};
    return OK;
}

err device_choice_gpu(const struct device_choice *choice, int local_index, int gpus, int *ret_index)
{
    if (choice->index < 0) { /* more tasks than GPUs: some share one */
        *ret_index = local_index % gpus;
        return OK;
    }
    if (choice->index >= gpus)
        return fail(ERR_INPUT, "there is no GPU %d: %d can be seen, from 0 on", choice->index,
                    gpus);
    *ret_index = choice->index;
    return OK;
}
