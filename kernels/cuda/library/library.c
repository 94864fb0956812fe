/* library.c - finds installed libraries. */
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

enum {
    SUCCESS = 0,       /* status of every library */
    MAJOR_VERSION = 0, /* of libraryPropertyType; then minor and patch */
    VERSION_PARTS = 3,
    PATTERN_MAX = 512,
    FOLDERS_MAX = 64, /* that one pattern may match */
    PARTS_MAX = 8,    /* of a library */
};

/* Where it may be installed: an environment variable with the start of the path (NULL: none), and
 * the rest, a pattern for glob(3). Python's packages are `nvidia/cublas`, `nvidia/cudnn` and, from
 * CUDA 13 on, `nvidia/cu13`. */
static const struct library_place {
    const char *variable, *rest;
} places[] = {
    {"CUDA_HOME", "/lib64"},
    {"CUDA_PATH", "/lib64"},
    {"CUDA_HOME", "/lib"},
    {NULL, "/usr/local/cuda/lib64"},
    {NULL, "/usr/local/cuda-1[0-9]*/lib64"},
    {NULL, "/opt/cuda/lib64"},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/cu*/lib"},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/cu*/lib"},
    {"CONDA_PREFIX", "/lib"},
    {"HOME", "/.local/lib/python3*/site-packages/nvidia/cu*/lib"},
    {NULL, "/usr/local/lib/python3*/dist-packages/nvidia/cu*/lib"},
    {NULL, "/usr/local/lib/python3*/site-packages/nvidia/cu*/lib"},
    {NULL, "/usr/lib/python3*/site-packages/nvidia/cu*/lib"},
    {NULL, "/opt/conda/lib/python3*/site-packages/nvidia/cu*/lib"},
};
enum { PLACES = sizeof places / sizeof *places };

bool cuda_library_function(const struct cuda_library *library, const char *name, void *ret_pointer)
{
    void *found = dlsym(library->handle, name);
    memcpy(ret_pointer, &found, sizeof found);
    return found != NULL;
}

void cuda_library_version(const struct cuda_library *library, const char *name,
                          char ret[LIBRARY_VERSION_MAX])
{
    const int version = library->version;
    snprintf(ret, LIBRARY_VERSION_MAX, "%s %d.%d.%d", name, version / 10000, version / 100 % 100,
             version % 100);
}

/* Opens a library, or a part of one; folder "": by the loader's search path. */
static void *open_file(const char *folder, const char *name, int major)
{
    char path[PATTERN_MAX];
    snprintf(path, sizeof path, "%s%slib%s.so.%d", folder, *folder ? "/" : "", name, major);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Reads each part: libraries encode the whole number differently. */
static bool read_version(struct cuda_library *library, const char *get_property)
{
    int (*get)(int property, int *value), part[VERSION_PARTS];
    if (!cuda_library_function(library, get_property, &get)) return false;
    for (int i = 0; i < VERSION_PARTS; i++)
        if (get(MAJOR_VERSION + i, &part[i]) != SUCCESS) return false;
    library->version = part[0] * 10000 + part[1] * 100 + part[2];
    return true;
}

/* Opens the library itself, if it has that major version, and records the result. */
static bool open_library(const struct library_kind *kind, const char *folder, int major,
                         struct cuda_library *ret)
{
    struct cuda_library library = {.handle = open_file(folder, kind->name, major)};
    if (!library.handle) return false;
    struct link_map *map;
    if (!read_version(&library, kind->get_property) || library.version / 10000 != major ||
        dlinfo(library.handle, RTLD_DI_LINKMAP, &map) != 0) {
        (void)dlclose(library.handle);
        return false;
    }
    snprintf(library.path, sizeof library.path, "%s", map->l_name);
    *ret = library;
    return true;
}

/* Opens the parts first: the loader might not find them beside a library outside its path, and
 * cuDNN ends the whole program if one is missing. */
static bool open_in_folder(const struct library_kind *kind, const char *folder, int major,
                           struct cuda_library *ret)
{
    void *parts[PARTS_MAX];
    int count = 0;
    bool is_whole = true;
    while (is_whole && count < PARTS_MAX && kind->parts[count]) {
        parts[count] = open_file(folder, kind->parts[count], major);
        is_whole = parts[count] != NULL;
        if (is_whole) count++;
    }
    if (is_whole && open_library(kind, folder, major, ret)) return true;
    while (count > 0) (void)dlclose(parts[--count]);
    return false;
}

/* The first suitable library in the folders that match the pattern, sorted by name */
static bool open_in_place(const struct library_kind *kind, const struct library_place *place,
                          int major, struct cuda_library *ret)
{
    char pattern[PATTERN_MAX];
    const char *front = place->variable ? getenv(place->variable) : "";
    if (!front || (place->variable && !*front)) return false;
    snprintf(pattern, sizeof pattern, "%s%s", front, place->rest);
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) return false;
    bool is_open = false;
    for (size_t i = 0; i < found.gl_pathc && i < FOLDERS_MAX && !is_open; i++)
        is_open = open_in_folder(kind, found.gl_pathv[i], major, ret);
    globfree(&found);
    return is_open;
}

/* A better version anywhere is preferred to a worse one on the loader's path. */
err cuda_library_find(const struct library_kind *kind, struct cuda_library *ret)
{
    const int *wanted = kind->majors; /* the best that this driver supports */
    while (kind->counts_as_cuda && wanted[1] && *wanted > cuda_driver_major()) wanted++;
    for (const int *major = wanted; *major; major++) {
        if (open_in_folder(kind, "", *major, ret)) return OK;
        for (int i = 0; i < PLACES; i++)
            if (open_in_place(kind, &places[i], *major, ret)) return OK;
    }
    return fail(ERR_DEVICE, "lib%s.so.%d not found (CUDA_HOME or VIRTUAL_ENV says where)",
                kind->name, *wanted);
}

static void open_all(const char *pattern)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) return;
    for (size_t i = 0; i < found.gl_pathc && i < FOLDERS_MAX; i++)
        (void)dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
}

void cuda_library_open_beside(const struct cuda_library *library, const char *name)
{
    static const char *const folders[] = {"", "../../cu*/lib/"}; /* the layout of Python's packages
                                                                  */
    const char *end = strrchr(library->path, '/');
    const int front = end ? (int)(end + 1 - library->path) : 0;
    for (size_t i = 0; front && i < sizeof folders / sizeof *folders; i++) {
        char pattern[PATTERN_MAX];
        snprintf(pattern, sizeof pattern, "%.*s%slib%s.so.1[0-9]*", front, library->path,
                 folders[i], name);
        open_all(pattern);
    }
}
