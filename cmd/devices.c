/* devices.c - `dtrain devices`: what this machine has to compute on. */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/device.h"

enum { MODEL_MAX = 128, LINE_MAX_BYTES = 512 };

/* As the kernel has it; processors that say no name are called by their architecture. */
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
static void print_instruction_sets(void)
{
    static const char *const names[] = {"avx512", "avx2", "sse2", "generic"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct device device;
        if (device_open_cpu(1, names[i], &device)) continue;
        printf(" %s", names[i]);
        device_close(&device);
    }
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

int cmd_devices(int argc, char **argv)
{
    if (argc > 2)
        return report_error(fail(ERR_INPUT, "devices: unexpected argument \"%.64s\"", argv[2]));
    cpu_environment_prepare(argv); /* so that the libraries choose as they do in training */
    print_cpu();
    print_gpus();
    return EXIT_DONE;
}
