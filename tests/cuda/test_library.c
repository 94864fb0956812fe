/* test_library.c - where libraries are looked for, and which of them will do. What is looked for
 * are stand-ins under other names, in folders of the test's own; each time another one and another
 * name, since the loader knows again what it has opened.
 *
 * test_library FOLDER: where the stand-ins are
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/cuda/library/library.h"
#include "tests/cuda/emulator/emulated.h"

#include <cmocka.h>

enum { PATH_MAX_HERE = 512 };

static const char *const parts[] = {"dtrain_part", NULL};
static const int majors[] = {13, 12, 0};

/* One that nobody has, and one for each test that finds it */
static const struct library_kind nowhere = {"dtrain_nowhere", "cublasGetProperty", parts, majors},
                                 split = {"dtrain_split", "cublasGetProperty", parts, majors},
                                 packed = {"dtrain_packed", "cublasGetProperty", parts, majors},
                                 older = {"dtrain_older", "cublasGetProperty", parts, majors},
                                 newer = {"dtrain_newer", "cublasGetProperty", parts, majors, true};

static const char *stand_ins;
static char home[] = "/tmp/dtrain-library-XXXXXX";

/* A path below the test's home */
static const char *below(const char *rest, char ret[PATH_MAX_HERE])
{
    snprintf(ret, PATH_MAX_HERE, "%s/%s", home, rest);
    return ret;
}

static void make_folders(const char *rest)
{
    char path[PATH_MAX_HERE];
    below(rest, path);
    for (char *end = path + strlen(home) + 1; end; end = strchr(end + 1, '/')) {
        *end = *end == '/' ? '\0' : *end;
        (void)mkdir(path, 0700);
        if (!*end) *end = '/';
    }
    (void)mkdir(path, 0700);
}

static void put(const char *name, const char *stand_in)
{
    char from[PATH_MAX_HERE], to[PATH_MAX_HERE];
    snprintf(from, sizeof from, "%s/%s", stand_ins, stand_in);
    assert_int_equal(symlink(from, below(name, to)), 0);
}

static void take_away(const char *name)
{
    char path[PATH_MAX_HERE];
    assert_int_equal(unlink(below(name, path)), 0);
}

static void a_library_that_is_nowhere_is_named(void **state)
{
    struct cuda_library library;
    assert_int_equal(cuda_library_find(&nowhere, &library), ERR_DEVICE);
    assert_string_equal(error_text(),
                        "libdtrain_nowhere.so.13 not found (CUDA_HOME or VIRTUAL_ENV says where)");
}

static void a_library_without_its_parts_will_not_do(void **state)
{
    struct cuda_library library;
    make_folders("lib64");
    put("lib64/libdtrain_split.so.13", "libcublas.so.13");
    assert_int_equal(cuda_library_find(&split, &library), ERR_DEVICE);
    put("lib64/libdtrain_part.so.13", "libcudnn_ops.so.9");
    assert_int_equal(cuda_library_find(&split, &library), OK);
    take_away("lib64/libdtrain_split.so.13");
    take_away("lib64/libdtrain_part.so.13");
}

static void a_library_is_found_among_pythons_packages(void **state)
{
    struct cuda_library library;
    char path[PATH_MAX_HERE];
    make_folders("lib/python3.11/site-packages/nvidia/cudnn/lib");
    put("lib/python3.11/site-packages/nvidia/cudnn/lib/libdtrain_packed.so.13",
        "libcublasLt.so.13");
    put("lib/python3.11/site-packages/nvidia/cudnn/lib/libdtrain_part.so.13", "libcudnn_cnn.so.9");
    assert_int_equal(cuda_library_find(&packed, &library), OK);
    assert_string_equal(
        library.path,
        below("lib/python3.11/site-packages/nvidia/cudnn/lib/libdtrain_packed.so.13", path));
    make_folders("lib/python3.11/site-packages/nvidia/cu_other/lib");
    put("lib/python3.11/site-packages/nvidia/cu_other/lib/libdtrain_beside.so.13",
        "libcudnn_graph.so.9");
    below("lib/python3.11/site-packages/nvidia/cu_other/lib/libdtrain_beside.so.13", path);
    assert_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
    cuda_library_open_beside(&library, "dtrain_nothing");
    cuda_library_open_beside(&library, "dtrain_beside");
    assert_non_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
    take_away("lib/python3.11/site-packages/nvidia/cu_other/lib/libdtrain_beside.so.13");
    int (*get)(int property, int *value);
    assert_true(cuda_library_function(&library, "cublasGetProperty", &get));
    assert_false(cuda_library_function(&library, "cublasGetNothing", &get));
    take_away("lib/python3.11/site-packages/nvidia/cudnn/lib/libdtrain_packed.so.13");
    take_away("lib/python3.11/site-packages/nvidia/cudnn/lib/libdtrain_part.so.13");
}

static void a_version_is_what_the_library_says_and_not_its_name(void **state)
{
    struct cuda_library library;
    char text[LIBRARY_VERSION_MAX];
    make_folders("lib64");
    put("lib64/libdtrain_older.so.12", "libcublas.so.13");
    put("lib64/libdtrain_part.so.12", "libcudnn_ops.so.9");
    assert_int_equal(cuda_library_find(&older, &library), ERR_DEVICE);
    setenv("FAKE_CUBLAS_MAJOR", "12", 1);
    assert_int_equal(cuda_library_find(&older, &library), OK);
    unsetenv("FAKE_CUBLAS_MAJOR");
    assert_int_equal(library.version, 120402);
    cuda_library_version(&library, "cuBLAS", text);
    assert_string_equal(text, "cuBLAS 12.4.2");
}

static void a_library_that_needs_a_newer_driver_will_not_do(void **state)
{
    struct cuda_library library;
    make_folders("lib64");
    put("lib64/libdtrain_newer.so.13", "libcublas.so.13");
    put("lib64/libdtrain_part.so.13", "libcudnn_ops.so.9");
    emulated_set_driver(12);
    assert_int_equal(cuda_library_find(&newer, &library), ERR_DEVICE);
    assert_string_equal(
        error_text(),
        "libdtrain_newer.so.12 not found (CUDA_HOME or VIRTUAL_ENV says where)"); /* the one to
                                                                                     install */
    emulated_set_driver(13);
    assert_int_equal(cuda_library_find(&newer, &library), OK);
    take_away("lib64/libdtrain_newer.so.13");
    take_away("lib64/libdtrain_part.so.13");
}

static int prepare(void **state)
{
    if (!mkdtemp(home)) return -1;
    setenv("CUDA_HOME", home, 1);
    setenv("VIRTUAL_ENV", home, 1);
    return 0;
}

/* Files that tests have left, then folders from the deepest on */
static int clear(void **state)
{
    static const char *const paths[] = {"lib64/libdtrain_older.so.12",
                                        "lib64/libdtrain_part.so.12",
                                        "lib64",
                                        "lib/python3.11/site-packages/nvidia/cu_other/lib",
                                        "lib/python3.11/site-packages/nvidia/cu_other",
                                        "lib/python3.11/site-packages/nvidia/cudnn/lib",
                                        "lib/python3.11/site-packages/nvidia/cudnn",
                                        "lib/python3.11/site-packages/nvidia",
                                        "lib/python3.11/site-packages",
                                        "lib/python3.11",
                                        "lib",
                                        ""};
    char path[PATH_MAX_HERE];
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) (void)remove(below(paths[i], path));
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_that_is_nowhere_is_named),
        cmocka_unit_test(a_library_without_its_parts_will_not_do),
        cmocka_unit_test(a_library_is_found_among_pythons_packages),
        cmocka_unit_test(a_library_that_needs_a_newer_driver_will_not_do),
        cmocka_unit_test(a_version_is_what_the_library_says_and_not_its_name),
    };
    if (argc != 2) return 1;
    stand_ins = argv[1];
    return cmocka_run_group_tests(tests, prepare, clear);
}
