/* remote.c - see remote.h. */
#include "cmd/launch/remote.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cmd/launch/keeper.h"
#include "core/cluster/description/ranks.h"

enum {
    SSH_WORDS_MAX = 64, /* of --ssh_command */
    OWN_WORDS = 8,
};

err remote_open(struct run *run)
{
    struct run_flags *flags = &run->flags;
    int ps = 0;
    if (!flags->cluster.hostfile)
        return fail(ERR_INPUT, "--ssh needs --hostfile, which names the hosts");
    if (flags->local_ps || flags->local_workers)
        return fail(ERR_INPUT,
                    "--local_ps and --local_workers are for this host; --ssh has its own");
    TRY(host_file_read(flags->cluster.hostfile, &run->arena, &run->slots));
    TRY(ranks_read_roles("ssh", flags->ssh, run->slots.count, &ps));
    const int workers = run->slots.count - ps;
    struct cluster_spec *cluster = &run->cluster;
    if (ps > LOCAL_TASKS_MAX || workers > LOCAL_TASKS_MAX)
        return fail(ERR_INPUT,
                    "--ssh starts at most %d ps and %d workers, the file has room for %d and %d",
                    (int)LOCAL_TASKS_MAX, (int)LOCAL_TASKS_MAX, ps, workers);
    cluster->hosts[JOB_PS].count = ps;
    cluster->hosts[JOB_WORKER].count = workers;
    TRY(cluster_reduce(&flags->cluster, cluster));
    flags->local_ps = cluster->hosts[JOB_PS].count;
    flags->local_workers = cluster->hosts[JOB_WORKER].count;
    run->is_local = true;
    return OK;
}

err remote_check_absent(const struct run *run)
{
    const struct cluster_flags *cluster = &run->flags.cluster;
    const bool has_ports = !run->is_local && (cluster->slurm || cluster->ranks);
    const struct {
        const char *name, *others;
        bool is_welcome;
    } flags[] = {{"hostfile", " or --ranks", cluster->ranks && !run->is_local},
                 {"ssh_command", "", false},
                 {"base_port", ", --slurm or --ranks", has_ports},
                 {"ps", " or lists of hosts", !run->is_local},
                 {"workers", " or lists of hosts", !run->is_local}};
    if (run->flags.launched != LAUNCHED_NO) return OK; /* checked by the launcher */
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!flags[i].is_welcome &&
            flags_given(&run_flags_object, run->argc, run->argv, flags[i].name))
            return fail(ERR_INPUT, "--%s goes with --ssh%s", flags[i].name, flags[i].others);
    return OK;
}

void remote_choose_ports(struct run *run)
{
    unsigned block = 0;
    if (run->flags.cluster.base_port) return;
    if (getrandom(&block, sizeof block, GRND_NONBLOCK) < 0) block = (unsigned)getpid();
    run->flags.cluster.base_port = ranks_base_port(block);
}

err remote_address(struct run *run, const struct host_slot *slot, const char **ret)
{
    const struct cluster_flags *cluster = &run->flags.cluster;
    const err e = ranks_address(slot->host, cluster->base_port + slot->place, &run->arena, ret);
    return e ? fail_prefix(e, "%s", cluster->hostfile) : OK;
}

/* For a shell: 'it'\''s' */
static char *quote(struct arena *arena, const char *word)
{
    size_t length = 3;
    for (const char *c = word; *c; c++) length += *c == '\'' ? 4 : 1;
    char *quoted = arena_array(arena, length, 1), *to = quoted;
    *to++ = '\'';
    for (; *word; word++) {
        if (*word == '\'') to = stpcpy(to, "'\\'");
        *to++ = *word;
    }
    *to++ = '\'';
    *to = '\0';
    return quoted;
}

/* The command line for the other host's shell. */
static err remote_command(struct run *run, char **task, char **ret)
{
    struct arena *arena = &run->arena;
    char folder[PATH_MAX], program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (!getcwd(folder, sizeof folder) || length < 0)
        return fail(ERR_IO, "cannot tell where this runs: %s", strerror(errno));
    program[length] = '\0';
    char *text = arena_format(arena, "cd %s && exec %s %s", quote(arena, folder),
                              quote(arena, program), keeper_command);
    for (char **word = task + 1; *word; word++)
        text = arena_format(arena, "%s %s", text, quote(arena, *word));
    *ret = text;
    return OK;
}

err remote_words(struct run *run, const struct host_slot *slot, char **task, char ***ret)
{
    struct arena *arena = &run->arena;
    char **words = arena_array(arena, SSH_WORDS_MAX + OWN_WORDS, sizeof *words), *state;
    int count = 0;
    char *from = arena_string(arena, run->flags.ssh_command);
    for (char *w = strtok_r(from, " ", &state); w; w = strtok_r(NULL, " ", &state)) {
        if (count == SSH_WORDS_MAX)
            return fail(ERR_INPUT, "--ssh_command: more than %d words", (int)SSH_WORDS_MAX);
        words[count++] = w;
    }
    if (count == 0) return fail(ERR_INPUT, "--ssh_command: no command is named");
    /* No password prompts; a lost host is noticed within a minute. */
    static const char *const more[] = {"-T", "-oBatchMode=yes", "-oServerAliveInterval=15"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        words[count++] = arena_string(arena, more[i]);
    words[count++] = arena_string(arena, slot->login);
    TRY(remote_command(run, task, &words[count++]));
    words[count] = NULL;
    *ret = words;
    return OK;
}
