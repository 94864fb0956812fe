/* test_notes.c - what the log of a plan says of who computes its convolutions, with a library that
 * only bears cuDNN's name: of the device itself once, and of a node with its name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/device.h"
#include "tests/core/graph/models.h"

static const char TWO[] =
    "{\"model\": [{\"op\": \"flatten\"}, {\"op\": \"reshape\", \"shape\": [8, 8, 2]}, "
    "{\"op\": \"conv2d\", \"name\": \"first\", \"filters\": 4, \"kernel_size\": 3, \"padding\": "
    "\"same\"}, {\"op\": \"conv2d\", \"name\": \"second\", \"filters\": 4, \"kernel_size\": 3, "
    "\"padding\": \"same\"}, {\"op\": \"flatten\"}, {\"op\": \"dense\", \"units\": 4}], "
    "\"loss\": \"softmax_cross_entropy\"}";
static const struct setting IMAGES = {.batch = 6, .features = {3, {8, 8, 2}}, .training = true};

enum { LOG_MAX = 8192 };

/* What is logged while the model's plan is opened */
static void read_log(char ret[LOG_MAX])
{
    struct device d;
    struct model m;
    FILE *file = tmpfile();
    const int shown = dup(STDERR_FILENO);
    assert_non_null(file);
    assert_true(shown >= 0);
    assert_int_equal(device_open_gpu(&(struct gpu_options){.is_watched = true}, &d), OK);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    model_open(&m, &d, TWO, &IMAGES);
    assert_true(dup2(shown, STDERR_FILENO) >= 0);
    close(shown);
    rewind(file);
    ret[fread(ret, 1, LOG_MAX - 1, file)] = '\0';
    fclose(file);
    model_close(&m);
    device_close(&d);
}

static void assert_said(const char *log, const char *wanted)
{
    const char *at = strstr(log, wanted);
    if (!at) fail_msg("\"%s\" is not in \"%s\"", wanted, log);
    if (strstr(at + 1, wanted)) fail_msg("\"%s\" is twice in \"%s\"", wanted, log);
}

/* It is opened to count memory, before a node is prepared. */
static void the_library_is_told_of_once_and_as_no_nodes(void **state)
{
    char log[LOG_MAX];
    read_log(log);
    assert_said(log, " convolutions by cuDNN 9.7.3 (/");
    assert_null(strstr(log, "conv2d \""));
}

static void a_direction_that_fails_is_told_with_the_name_of_its_node(void **state)
{
    char log[LOG_MAX];
    setenv("FAKE_CUDNN_BROKEN", "back kernel", 1);
    read_log(log);
    unsetenv("FAKE_CUDNN_BROKEN");
    assert_said(log, " convolutions by cuDNN 9.7.3 (/");
    assert_null(strstr(log, ": convolutions"));
    assert_said(log, "conv2d \"first\": own kernels instead of cudnnConvolutionBackwardFilter");
    assert_said(log, "conv2d \"second\": own kernels instead of cudnnConvolutionBackwardF");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_is_told_of_once_and_as_no_nodes),
        cmocka_unit_test(a_direction_that_fails_is_told_with_the_name_of_its_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
