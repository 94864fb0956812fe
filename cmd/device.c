/* device.c - see device.h.
 *
 * Only the GPU that this task will use is touched: a query takes memory on a GPU, and each worker
 * of a host has its own. Unless a GPU is required, any error of it becomes the reason why the CPU
 * computes.
 */
#include <stdio.h>

#include "cmd/device.h"
#include "kernels/cpu_bf16.h"

/* The help of --cpu_kernels lists the names, too. */
static err open_cpu(int threads, const char *instruction_set, struct device *ret)
{
    const err e = device_open_cpu(threads, instruction_set, ret);
    if (e != ERR_INPUT && e != ERR_DEVICE) return e;
    return fail(e, "%s%s%s", instruction_set ? "--cpu_kernels: " : "", error_text(),
                e == ERR_INPUT ? "; known are avx512, avx2, sse2" : "");
}

/* Checks --cpu_kernels even if a GPU computes. */
static err check_cpu_kernels(const char *instruction_set)
{
    struct device device;
    const err e = open_cpu(1, instruction_set, &device);
    if (!e) device_close(&device);
    return e == ERR_INPUT ? e : OK;
}

err device_flag_parse(const char *flag, struct device_choice *ret)
{
    err e = device_choice_parse(flag, ret);
    return e ? fail_prefix(e, "--device") : OK;
}

/* The spec's "device" was checked when it was read. */
static err choose(const struct device_request *r, struct device_choice *ret)
{
    if (r->flag) return device_flag_parse(r->flag, ret);
    if (r->tower) return device_choice_parse(r->tower, ret);
    return device_choice_parse(r->spec ? r->spec->device : "auto", ret);
}

/* Finds the index of the GPU by asking the driver, without touching a GPU. ret_is_broken, on
 * failure: there may be a GPU that the driver cannot access. */
static err find_gpu(const struct device_request *r, const struct device_choice *choice,
                    int *ret_index, bool *ret_is_broken)
{
    int count = 0;
    err e = gpu_count(&count);
    *ret_is_broken = e == ERR_LOST;
    if (e) return fail_prefix(ERR_DEVICE, "no GPU");
    e = device_choice_gpu(choice, r->local_index, count, ret_index);
    return e ? fail_prefix(e, r->flag ? "--device" : "device") : OK;
}

/* On failure answer->is_broken tells whether there is a GPU nevertheless. */
static err open_gpu(const struct device_request *r, const struct device_choice *choice,
                    struct device *ret, struct device_answer *answer)
{
    struct gpu_options options = {
        .precision = r->spec ? (enum precision)r->spec->precision : PRECISION_FLOAT32,
    };
    TRY(find_gpu(r, choice, &options.index, &answer->is_broken));
    answer->is_broken = true;
    TRY(device_open_gpu(&options, ret));
    answer->is_broken = false;
    answer->is_gpu = true;
    snprintf(answer->text, sizeof answer->text, "GPU %d (%s; %.1f GB free)", options.index,
             ret->kernels->name, (double)ret->kernels->available(ret) / 1e9);
    return OK;
}

/* A precision that the device cannot speed up becomes float32, with a note: so a spec runs on any
 * device. */
static err take_precision(const struct spec *spec, struct device *device,
                          struct device_answer *answer)
{
    const enum precision wanted = spec ? (enum precision)spec->precision : PRECISION_FLOAT32;
    const char *why = "";
    if (wanted == PRECISION_FLOAT32) return OK;
    if (wanted == PRECISION_BF16) {
        const err e = device_cpu_bf16(device);
        if (e && e != ERR_DEVICE) return e;
        why = e ? error_text() : NULL;
    }
    if (why)
        snprintf(answer->precision, sizeof answer->precision,
                 "precision %s has no effect on a CPU, which computes in float32%s%s",
                 precision_names[wanted], *why ? ": " : "", why);
    else
        snprintf(answer->precision, sizeof answer->precision,
                 "large products and convolutions are in bf16");
    return OK;
}

static err open_host(const struct device_request *r, struct device *ret,
                     struct device_answer *answer)
{
    TRY(open_cpu(r->threads, r->cpu_kernels, ret));
    const err e = take_precision(r->spec, ret, answer);
    if (e) device_close(ret);
    return e;
}

err device_request_open(const struct device_request *r, struct device *ret,
                        struct device_answer *ret_answer)
{
    struct device_choice choice;
    struct device_answer answer = {0};
    TRY(check_cpu_kernels(r->cpu_kernels));
    TRY(choose(r, &choice));
    err e = ERR_DEVICE;
    if (choice.kind != DEVICE_CPU) e = open_gpu(r, &choice, ret, &answer);
    if (e && choice.kind == DEVICE_GPU) return e;
    if (e && choice.kind == DEVICE_AUTO)
        snprintf(answer.text, sizeof answer.text, "%s", error_text());
    if (e) TRY(open_host(r, ret, &answer));
    *ret_answer = answer;
    return OK;
}

err device_request_check(const struct device_request *r)
{
    struct device_choice choice;
    int index;
    bool is_broken;
    TRY(choose(r, &choice));
    return choice.kind == DEVICE_GPU ? find_gpu(r, &choice, &index, &is_broken) : OK;
}
