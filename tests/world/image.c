/* image.c - see image.h. A library that is loaded from another file is another one, with data of
 * its own. */
#include "tests/world/image.h"

#include "tests/world/real.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static struct image images[IMAGES_MAX];
static int image_count;

static void give_up(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, dlerror());
    exit(EXIT_FAILURE);
}

/* The descriptor stays open: two that are equal would be one library. */
static void copy(const char *library, char *ret_path, size_t size)
{
    struct stat status;
    const int from = open(library, O_RDONLY | O_CLOEXEC), to = memfd_create("image", MFD_CLOEXEC);
    if (from < 0 || to < 0 || fstat(from, &status)) give_up(library);
    for (off_t at = 0; at < status.st_size;)
        if (sendfile(to, from, &at, (size_t)(status.st_size - at)) <= 0) give_up(library);
    close(from);
    snprintf(ret_path, size, "/proc/self/fd/%d", to);
}

struct search {
    const char *within; /* an address of the library */
    struct image *image;
    size_t tls_module;
};

/* What may change: the segment that can be written, without what is read-only once it is linked. */
static int measure(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    uintptr_t first = 0, end = 0, fixed_end = 0;
    uintptr_t code = UINTPTR_MAX;
    bool is_it = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *at = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + at->p_vaddr;
        if (at->p_type == PT_LOAD && (uintptr_t)search->within - start < at->p_memsz) is_it = true;
        if (at->p_type == PT_LOAD && start < code) code = start;
        if (at->p_type == PT_LOAD && at->p_flags & PF_W) first = start, end = start + at->p_memsz;
        if (at->p_type == PT_GNU_RELRO) fixed_end = start + at->p_memsz;
        if (at->p_type == PT_TLS) search->image->tls_bytes = at->p_memsz;
    }
    if (!is_it) return 0;
    if (fixed_end > first) first = fixed_end;
    search->image->code = (const char *)code;
    search->image->code_end = (const char *)end;
    search->image->data = (char *)first;
    search->image->data_bytes = end - first;
    search->tls_module = info->dlpi_tls_modid;
    return 1;
}

struct tls_place {
    unsigned long module, offset;
};
extern void *__tls_get_addr(struct tls_place *);

static void load(const char *library, struct image *image)
{
    char path[64];
    copy(library, path, sizeof path);
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) give_up(library);
    *(void **)&image->start = dlsym(loaded, "program_main");
    if (!image->start) give_up(library);
    struct search search = {.within = (const char *)image->start, .image = image};
    dl_iterate_phdr(measure, &search);
    struct tls_place place = {search.tls_module, 0};
    if (image->tls_bytes) image->tls = __tls_get_addr(&place);
    image->fresh = malloc(image->data_bytes);
    if (!image->fresh || !image->data) give_up(library);
    memcpy(image->fresh, image->data, image->data_bytes);
}

void images_load(const char *library, int count)
{
    for (; image_count < count; image_count++) load(library, &images[image_count]);
}

struct image *image_take(struct process *process)
{
    for (int i = 0; i < image_count; i++) {
        struct image *image = &images[i];
        if (image->owner) continue;
        memcpy(image->data, image->fresh, image->data_bytes);
        image->owner = process;
        return image;
    }
    return NULL;
}
