/* devices.c - `dtrain devices`: what this machine has to compute on. */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/cores.h"
#include "cmd/device.h"
#include "cmd/json_print.h"

enum { MODEL_MAX = 128, LINE_MAX_BYTES = 512 };

/* The name from /proc/cpuinfo, else the architecture. */
static void cpu_model(char ret[MODEL_MAX])
{
    static const char key[] = "model name";
    struct utsname system;
    char line[LINE_MAX_BYTES];
    snprintf(ret, MODEL_MAX, "%s", uname(&system) == 0 ? system.machine : "unknown");
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0) continue;
        snprintf(ret, MODEL_MAX, "%s", colon + 1 + strspn(colon + 1, " "));
        ret[strcspn(ret, "\n")] = '\0';
        break;
    }
    if (file) fclose(file);
}

/* Best first, of those that --cpu_kernels takes. */
static const char *const sets_known[] = {"avx512", "avx2", "sse2", "generic"};
enum { SETS = sizeof sets_known / sizeof *sets_known };

static bool has_set(const char *name)
{
    struct device device;
    if (device_open_cpu(1, name, &device)) return false;
    device_close(&device);
    return true;
}

static void print_instruction_sets(void)
{
    for (size_t i = 0; i < SETS; i++)
        if (has_set(sets_known[i])) printf(" %s", sets_known[i]);
}

static void print_cpu(void)
{
    char model[MODEL_MAX];
    cpu_model(model);
    printf("CPU: %s, %d of %ld cores,", model, cores_here(), sysconf(_SC_NPROCESSORS_ONLN));
    print_instruction_sets();
    printf("\n     %s\n", cpu_description());
}

static void print_gpu(const struct gpu *gpu, int index)
{
    printf("GPU %d: %s, ", index, gpu->name);
    if (gpu->bytes)
        printf("%.1f GB, %.1f GB free, compute capability %d.%d, PCI %s", (double)gpu->bytes / 1e9,
               (double)gpu->free_bytes / 1e9, gpu->major, gpu->minor, gpu->bus);
    printf("%s%s%s\n", gpu->bytes && *gpu->trouble ? "; " : "",
           *gpu->trouble ? "cannot be used: " : "", gpu->trouble);
}

static void print_gpus(void)
{
    struct gpus gpus;
    if (gpu_list(&gpus)) {
        printf("no GPU: %s\n", error_text());
        return;
    }
    for (int i = 0; i < gpus.count; i++) print_gpu(&gpus.at[i], i);
    printf("     driver %s, %s\n", gpus.driver, gpus.libraries);
}

/* ---- as JSON ---- */

static json_t *cpu_json(void)
{
    char model[MODEL_MAX];
    json_t *sets = json_array();
    cpu_model(model);
    for (size_t i = 0; i < SETS; i++)
        if (has_set(sets_known[i])) json_array_append_new(sets, json_string(sets_known[i]));
    return json_pack("{ss si so}", "model", model, "cores", cores_here(), "instruction_sets", sets);
}

static json_t *gpu_json(const struct gpu *gpu)
{
    return json_pack("{ss sI sI ss ss*}", "model", gpu->name, "bytes", (json_int_t)gpu->bytes,
                     "free_bytes", (json_int_t)gpu->free_bytes, "pci", gpu->bus, "trouble",
                     *gpu->trouble ? gpu->trouble : NULL);
}

static err print_devices_json(void)
{
    struct gpus gpus;
    json_t *json = json_pack("{so}", "cpu", cpu_json()), *list = json_array();
    if (gpu_list(&gpus)) {
        json_object_set_new(json, "no_gpu", json_string(error_text()));
        gpus.count = 0;
    }
    for (int i = 0; i < gpus.count; i++) json_array_append_new(list, gpu_json(&gpus.at[i]));
    json_object_set_new(json, "gpus", list);
    return json_print(json);
}

/* ---- the command ---- */

struct devices_flags {
    bool json;
};

static const struct field fields[] = {
    FIELD_OF("json", BOOL, struct devices_flags, json, .fallback = "false",
             .help = "print it as one JSON object"),
    {0},
};

static const struct object flags_object = {
    .name = "devices", .summary = "", .fields = fields, .size = sizeof(struct devices_flags)};

static err print_devices(int argc, char **argv, struct arena *arena)
{
    struct devices_flags flags;
    const char *none;
    int count;
    TRY(flags_parse(&flags_object, argc, argv, arena, &flags, &none, 0, &count));
    if (flags.json) return print_devices_json();
    print_cpu();
    print_gpus();
    return OK;
}

static int cmd_devices(int argc, char **argv)
{
    struct arena arena = {0};
    cpu_environment_prepare(argv); /* so that the libraries choose as they do in training */
    err e = print_devices(argc - 1, argv + 1, &arena);
    arena_free(&arena);
    if (e) e = fail_prefix(e, "devices");
    return e ? report_error(e) : EXIT_DONE;
}

const struct command command_devices = {
    .name = "devices",
    .arguments = "[--json]",
    .summary = "list the CPUs and GPUs that dtrain can compute on",
    .run = cmd_devices,
};
