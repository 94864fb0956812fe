/* main.c - finds the command and runs it. */
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include "cmd/cmd.h"
#include "cmd/launch/keeper.h"
#include "cmd/process_1.h"
#include "cmd/revision.h"
#include "core/base/files/url.h"
#include "core/base/log.h"
#include "core/base/standard_output.h"
#include "core/data/images/image.h"
#include "core/data/packing/packing.h"
#include "kernels/device.h"
#include "kernels/kernels.h"
#include "net/tls.h"
#include "net/http_server.h"
#include "net/message.h"
#include "net/web/systems.h"

enum { COMMANDS_MAX = 32, STACK_LEAST = 256 << 10 };

static int cmd_version(int argc, char **argv);

static const struct command command_version = {
    .name = "version",
    .arguments = "",
    .summary = "print the versions of dtrain and its libraries",
    .run = cmd_version,
};

extern const struct command command_help, command_check, command_plan, command_eval,
    command_predict, command_sample, command_similar, command_serve, command_export,
    command_checkpoint, command_status, command_save, command_drain, command_stop, command_doctor,
    command_var, command_scale, command_why, command_plot, command_stats, command_devices,
    command_schema, command_logs, command_profile, command_set, command_replay;

/* In the order of `dtrain help` */
const struct command *const commands[] = {
    &command_help,    &command_check,      &command_plan,    &command_eval,
    &command_predict, &command_sample,     &command_similar, &command_serve,
    &command_export,  &command_checkpoint, &command_status,  &command_logs,
    &command_profile, &command_save,       &command_set,     &command_drain,
    &command_stop,    &command_why,        &command_doctor,  &command_var,
    &command_scale,   &command_replay,     &command_plot,    &command_stats,
    &command_devices, &command_schema,     &command_version, NULL};

const char *version_text(void)
{
    return DTRAIN_VERSION DTRAIN_REVISION;
}

static void print_library(const char *name, const char *version)
{
    printf("    %-16s %s\n", name,
           !version   ? "not built in"
           : *version ? version
                      : "not installed");
}

/* CUDA: the driver's name and version and its libraries, or why there is none. */
static void print_cuda(void)
{
    struct gpus gpus;
    const char *version = NULL;
    if (gpus_are_built_in) version = gpu_list(&gpus) ? error_text() : gpus.driver;
    print_library("CUDA", version);
}

/* Prints versions of libraries and the instruction set in use. */
static int cmd_version(int argc, char **argv)
{
    if (argc > 2)
        return report_error(fail(ERR_INPUT, "version: unexpected argument \"%.64s\"", argv[2]));
    cpu_environment_prepare(argv); /* so that the libraries choose as they do in training */
    printf("dtrain %s\n", version_text());
    printf("protocol: %d\n", PROTOCOL_VERSION); /* tasks of one job need the same */
    printf("compiler: %s\n", DTRAIN_COMPILER);
    printf("arithmetic: %s\n", cpu_description());
    printf("libraries: jansson %s, zlib %s\n", jansson_version_str(), zlibVersion());
    printf("optional libraries:\n");
    print_library("zstd", packing_zstd_version());
    print_library(picture_jpeg.library, picture_jpeg.version());
    print_library(picture_png.library, picture_png.version());
    print_library("libcurl", web_library_version(WEB_CURL));
    print_library("libcrypto", web_library_version(WEB_CRYPTO));
    print_library("libssl", tls_version());
    print_library("expat", web_library_version(WEB_EXPAT));
    print_library("libmicrohttpd", http_server_version());
    print_cuda();
    return EXIT_DONE;
}

int report_error(err e)
{
    log_clear_status();
    if (log_is_json())
        log_line(LOG_ERROR, "%s", error_text());
    else
        fprintf(stderr, "dtrain: %s\n", error_text());
    return exit_code_of(e);
}

const struct command *find_command(const char *name)
{
    for (const struct command *const *c = commands; *c; c++)
        if (strcmp((*c)->name, name) == 0) return *c;
    return NULL;
}

/* `dtrain COMMAND help`: for commands with verbs `help` is one of them. */
static bool asks_command_for_help(int argc, char **argv)
{
    const struct command *command = argc > 2 ? find_command(argv[1]) : NULL;
    return command && strncmp(command->arguments, "VERB", strlen("VERB")) == 0 &&
           strcmp(argv[2], "help") == 0;
}

/* The command that stands behind flags, as in `dtrain --threads=1 check SPEC.json`: its place in
 * argv, or 0. A flag of a run without a '=' has its value in the next word. */
static int find_command_behind_flags(int argc, char **argv)
{
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0 && argv[i][2]; i++)
        i += !strchr(argv[i], '=') && flags_take_value(&run_flags_object, argv[i]);
    return i > 1 && i < argc && find_command(argv[i]) && access(argv[i], F_OK) ? i : 0;
}

static void turn(char **at, int count, int by)
{
    for (; by > 0; by--) {
        char *first = at[0];
        memmove(at, at + 1, (size_t)(count - 1) * sizeof *at);
        at[count - 1] = first;
    }
}

/* "--help" or "-h" anywhere among the flags wins over everything else. */
static bool asks_for(int argc, char **argv, const char *flag, const char *letter)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], flag) == 0 || strcmp(argv[i], letter) == 0) return true;
    return false;
}

/* Whether the word looks like a path although there is no such file: then the error is about the
 * file, not about an unknown command. */
static bool looks_like_a_file(const char *word)
{
    const char *dot = strrchr(word, '.');
    return strcmp(word, "-") == 0 || strchr(word, '/') || (dot && strcmp(dot, ".json") == 0) ||
           access(word, F_OK) == 0;
}

static int report_unknown(const char *word)
{
    const char *names[COMMANDS_MAX];
    int count = 0;
    for (; count < COMMANDS_MAX && commands[count]; count++) names[count] = commands[count]->name;
    const struct suggestion near = suggest(word, names, count);
    return report_error(
        fail(ERR_INPUT, "\"%.64s\" is neither a command nor a file%s", word,
             *near.text ? near.text : "; see `dtrain help` (to train: dtrain SPEC.json)"));
}

/* A ps may be configured by environment variables only. */
static bool environment_names_a_task(void)
{
    static const char *const names[] = {"PS_HOSTS", "WORKER_HOSTS", "TF_CONFIG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return true;
    }
    return false;
}

/* Opens /dev/null for closed descriptors 0, 1 and 2, else a pipe or socket would get that number
 * and the log; read-only, so that writing results to it fails. Also sets the process name: tasks
 * are started through /proc/self/exe, which `ps` would show. */
static void settle(void)
{
    int fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDONLY);
    if (fd >= 0) close(fd);
    prctl(PR_SET_NAME, "dtrain");
}

/* Refuses a stack limit that is too small, with which the program would crash. */
static err check_stack(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= STACK_LEAST) return OK;
    return fail(ERR_IO, "ulimit -s allows a stack of %llu KB, and %d KB are needed",
                (unsigned long long)limit.rlim_cur >> 10, STACK_LEAST >> 10);
}

/* Also if other flags are invalid: that error is then logged in this format. */
static bool asks_for_json(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--log_format=json") == 0) return true;
        if (strcmp(argv[i], "--log_format") == 0 && i + 1 < argc)
            return strcmp(argv[i + 1], "json") == 0;
    }
    return false;
}

/* A flag by which other programs name their configuration file; NULL: none is there. */
static const char *find_flag_of_spec(int argc, char **argv)
{
    static const char *const words[] = {"spec",  "spec_file",  "spec_path", "model_spec",
                                        "model", "model_file", "config",    "config_file"};
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            const size_t length = strlen(words[w]);
            const bool is_flag = strncmp(argv[i], "--", 2) == 0;
            if (is_flag && strncmp(argv[i] + 2, words[w], length) == 0 &&
                strchr("=", argv[i][2 + length]))
                return words[w];
        }
    return NULL;
}

static err check_spec_is_no_flag(const struct command *command, int argc, char **argv)
{
    const char *arguments = command ? command->arguments : "[FLAGS] SPEC.json";
    const char *flag = strstr(arguments, "SPEC") ? find_flag_of_spec(argc, argv) : NULL;
    if (!flag) return OK;
    return fail(ERR_INPUT,
                "unknown flag \"%s\": the spec is an argument without a flag (dtrain %s%s%s)", flag,
                command ? command->name : "", command ? " " : "", arguments);
}

static int run_command(int argc, char **argv)
{
    if (argc < 2 && !environment_names_a_task()) {
        print_usage(stderr);
        return EXIT_INPUT;
    }
    if (argc > 1 && strcmp(argv[1], keeper_command) == 0) return keeper_run(argc, argv);
    if (asks_for(argc, argv, "--version", "-V")) return cmd_version(1, argv);
    const int behind = find_command_behind_flags(argc, argv);
    if (behind) turn(argv + 1, argc - 1, behind - 1); /* moves the flags to the end */
    if (asks_for(argc, argv, "--help", "-h") || asks_command_for_help(argc, argv))
        return help_command(argc > 1 ? find_command(argv[1]) : NULL);
    if (asks_for_json(argc, argv)) log_set_format(LOG_JSON);
    const struct command *command = argc > 1 ? find_command(argv[1]) : NULL;
    if (check_spec_is_no_flag(command, argc, argv)) return report_error(ERR_INPUT);
    if (argc < 2 || *argv[1] == '-') return cmd_run(argc, argv);
    if (command) return command->run(argc, argv);
    return looks_like_a_file(argv[1]) ? cmd_run(argc, argv) : report_unknown(argv[1]);
}

int main(int argc, char **argv)
{
    settle();
    process_1_leave();
    if (check_stack()) return report_error(ERR_IO);
    web_systems_register();
    for (int i = 1; i < argc; i++) url_servers_note(argv[i]);
    standard_output_open();
    const int code = run_command(argc, argv);
    const err e = standard_output_flush();
    const int failed = e ? report_error(e) : EXIT_DONE;
    return code == EXIT_DONE ? failed : code;
}
