/* cpu.c - opens the CPU device and describes it. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cpu/bf16.h"
#include "kernels/cpu_bf16.h"
#include "kernels/cpu_threads.h"

#define CPU_KERNELS_VARIABLE "DTRAIN_CPU_KERNELS"
#define CPU_BF16_VARIABLE "DTRAIN_CPU_BF16"

enum { DESCRIPTION_MAX = 160, THREADS_MAX = 1024 };

/* The cblas of the reference library, which Debian may choose instead, lacks these. */
char *openblas_get_config(void);
char *openblas_get_corename(void);

static const struct instruction_set *best_set(void)
{
    const struct instruction_set *set = instruction_sets;
    while (!set->is_supported()) set++; /* the last is always supported */
    return set;
}

static err find_set(const char *isa, const struct instruction_set **ret)
{
    for (const struct instruction_set *set = instruction_sets; set->name; set++) {
        if (strcmp(set->name, isa) != 0) continue;
        if (!set->is_supported()) return fail(ERR_DEVICE, "this processor has no %s", isa);
        *ret = set;
        return OK;
    }
    return fail(ERR_INPUT, "unknown instruction set \"%s\"", isa);
}

/* The set that the environment names, else the best one; if unknown, ret is the best one. */
static err usual_set(const struct instruction_set **ret)
{
    const char *wanted = getenv(CPU_KERNELS_VARIABLE);
    *ret = best_set();
    if (!wanted || !*wanted) return OK;
    const err e = find_set(wanted, ret);
    return e ? fail_prefix(e, CPU_KERNELS_VARIABLE) : OK;
}

/* Denormal numbers, below 1.2e-38, which Adam's moments and softmax's smallest outputs become, cost
 * a hundred cycles each on Intel's processors: they are treated as zero, as in TensorFlow's
 * threads. Applies to this thread and all that it starts from now on (OpenMP's, which oneDNN uses,
 * and towers'): a thread inherits the setting of its creator. OpenBLAS has no threads here. */
uint64_t cpu_enter(void)
{
    uint64_t before = 0;
#if defined __x86_64__
    enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };
    before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr((unsigned)before | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
#elif defined __aarch64__
    const uint64_t flush_to_zero = UINT64_C(1) << 24;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | flush_to_zero));
#endif
    return before;
}

void cpu_leave(uint64_t before)
{
#if defined __x86_64__
    __builtin_ia32_ldmxcsr((unsigned)before);
#elif defined __aarch64__
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#endif
}

static void spread_host(struct device *d, int64_t n, int64_t grain, spread_body *body,
                        const void *arguments)
{
    spread(d, n, grain, body, arguments);
}

static void close_cpu(struct device *d)
{
    struct cpu_state *state = d->state;
    bf16_close(state->bf16);
    if (state->stream) (void)dnnl_stream_destroy(state->stream);
    if (state->engine) (void)dnnl_engine_destroy(state->engine);
    free(state->packed);
    free(state);
    *d = (struct device){0};
}

err device_open_cpu(int threads, const char *isa, struct device *ret)
{
    if (threads < 1 || threads > THREADS_MAX)
        return fail(ERR_INPUT, "threads must be from 1 to %d, got %d", THREADS_MAX, threads);
    const struct instruction_set *set;
    TRY(isa ? find_set(isa, &set) : usual_set(&set));

    struct cpu_state *state = calloc(1, sizeof *state);
    float *packed = cpu_memory(NARROW_PACKED_MAX * sizeof(float));
    if (!state || !packed) {
        free(state);
        free(packed);
        return fail(ERR_MEMORY, "no memory for the CPU device");
    }
    state->packed = packed;
    state->table = *set->kernels;
    state->table.name = set->table_name;
    state->table.close = close_cpu;
    state->table.spread = spread_host;
    memory_fill_table(&state->table);
    openblas_set_num_threads(1);
    (void)cpu_enter();
    *ret = (struct device){.kernels = &state->table, .threads = threads, .state = state};
    return OK;
}

bool device_is_cpu(const struct device *d)
{
    return d->kernels->close == close_cpu;
}

void device_close(struct device *d)
{
    if (d->kernels) d->kernels->close(d);
}

err cpu_open_engine(struct cpu_state *state)
{
    if (state->stream) return OK;
    if (!state->engine)
        TRY(onednn_check(dnnl_engine_create(&state->engine, dnnl_cpu, 0), "dnnl_engine_create"));
    return onednn_check(
        dnnl_stream_create(&state->stream, state->engine, dnnl_stream_default_flags),
        "dnnl_stream_create");
}

/* On processors other than x86 the bits that oneDNN returns have other meanings. */
static bool onednn_has(dnnl_cpu_isa_t isa)
{
#if defined __x86_64__
    return (dnnl_get_effective_cpu_isa() & isa) == isa;
#else
    return false;
#endif
}

/* AVX512_BF16 without AMX is half as fast as float32 on Intel's processors: 87 and 163 GFLOP/s on
 * one core of a fourth-generation Xeon; plain AVX-512 has no bf16 instructions. */
err device_cpu_bf16(struct device *d)
{
    struct cpu_state *state = d->state;
    const char *wanted = getenv(CPU_BF16_VARIABLE);
    const bool anyhow = wanted && strcmp(wanted, "always") == 0;
    if (wanted && *wanted && !anyhow)
        return fail(ERR_INPUT, CPU_BF16_VARIABLE ": expected always, got \"%.64s\"", wanted);
    if (!onednn_has(dnnl_cpu_isa_avx512_core_amx) && !anyhow)
        return fail(ERR_DEVICE, "this processor has no AMX");
    if (!onednn_has(dnnl_cpu_isa_avx512_core))
        return fail(ERR_DEVICE, "this processor has no AVX-512");
    return state->bf16 ? OK : bf16_open(&state->bf16);
}

/* oneDNN's name for the instruction set of its generated code */
static const char *onednn_isa(void)
{
    if (onednn_has(dnnl_cpu_isa_avx512_core_amx)) return "amx";
    if (onednn_has(dnnl_cpu_isa_avx512_core)) return "avx512";
    if (onednn_has(dnnl_cpu_isa_avx2)) return "avx2";
    if (onednn_has(dnnl_cpu_isa_avx)) return "avx";
    return onednn_has(dnnl_cpu_isa_sse41) ? "sse41" : "generic";
}

const char *cpu_description(void)
{
    static _Thread_local char text[DESCRIPTION_MAX];
    char version[32] = "?"; /* the second word: "OpenBLAS 0.3.21 NO_LAPACKE ..." */
    const struct instruction_set *set;
    (void)usual_set(&set);
    (void)sscanf(openblas_get_config(), "%*s %31s", version);
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "OpenBLAS %s %s, oneDNN %d.%d.%d %s, kernels %s", version,
             openblas_get_corename(), v->major, v->minor, v->patch, onednn_isa(), set->name);
    return text;
}
