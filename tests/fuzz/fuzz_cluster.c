/* What says who belongs to a cluster and what its tasks are to do: TF_CONFIG, flags, lists of
 * launchers, files of hosts, greetings, setups, descriptions of data. The first byte says which.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/cluster/description/host_file.h"
#include "core/cluster/description/named.h"
#include "core/cluster/description/setup.h"
#include "core/cluster/description/slurm.h"
#include "core/cluster/description/tf_config.h"
#include "core/cluster/runner/feed/feed.h"
#include "core/cluster/runner/greeting.h"

enum { TF_CONFIG, FLAGS, SLURM, RANKS, PLACE, SETUP, FOLDER, GREETING, HOSTS, DATA, KINDS };

static char *text_of(struct view bytes, struct arena *arena)
{
    char *text = arena_format(arena, "%*s", (int)view_bytes(bytes), "");
    if (view_bytes(bytes)) memcpy(text, bytes.at, view_bytes(bytes));
    return text;
}

/* NULL: there is none */
static char *word_of(struct view *input, struct arena *arena)
{
    const struct view word = fuzz_text(input);
    return view_bytes(word) ? text_of(word, arena) : NULL;
}

/* ---- who there is ---- */

static void read_flags(struct view *input, struct arena *arena)
{
    struct cluster_spec cluster;
    const struct cluster_flags flags = {
        .task_index = (int8_t)fuzz_byte(input),
        .ps = fuzz_byte(input),
        .workers = fuzz_byte(input),
        .job_name = word_of(input, arena),
        .ps_hosts = word_of(input, arena),
        .worker_hosts = word_of(input, arena),
        .host_name = word_of(input, arena),
    };
    if (!fuzz_went_well(cluster_spec_make(&flags, word_of(input, arena), arena, &cluster))) return;
    for (int job = 0; job < JOB_COUNT; job++)
        for (int i = 0; i < cluster.hosts[job].count; i++)
            fuzz_holds(cluster.hosts[job].at[i], "every task has a host");
    cluster_workers_here(&cluster);
    cluster_local_index(&cluster);
    fuzz_went_well(cluster_reduce(&flags, &cluster));
}

/* The environment of a launcher: "NAME=value", one behind the other. */
static struct view environment;

static const char *variable(const char *name)
{
    struct view all = environment;
    const size_t length = strlen(name);
    while (view_bytes(all)) {
        const struct view word = fuzz_text(&all);
        const bool is_it = view_bytes(word) > length && word.at[length] == '=' &&
                           memcmp(word.at, name, length) == 0;
        if (is_it) return (const char *)word.at + length + 1;
    }
    return NULL;
}

static void read_launcher(struct view *input, struct arena *arena, bool is_slurm)
{
    struct cluster_spec cluster;
    struct strings names;
    const char *roles = word_of(input, arena);
    if (!roles) return;
    if (is_slurm) fuzz_went_well(slurm_expand(roles, arena, &names));
    const size_t bytes = view_bytes(*input);
    environment.at = (const uint8_t *)text_of(*input, arena);
    environment.end = environment.at + bytes;
    fuzz_went_well(is_slurm ? slurm_read(roles, 0, variable, arena, &cluster)
                            : ranks_read(roles, NULL, 2222, variable, arena, &cluster));
}

static void read_hosts(struct view input, struct arena *arena)
{
    struct host_slots slots;
    memory_file("hosts", input);
    if (fuzz_went_well(host_file_read("memory://hosts", arena, &slots))) {
        fuzz_holds(slots.count > 0 && slots.hosts > 0 && slots.hosts <= slots.count,
                   "a host has a slot");
        for (int i = 0; i < slots.count; i++)
            fuzz_holds(slots.at[i].host[0] && slots.at[i].login[0] != '-', "ssh takes its name");
    }
    memory_clear();
}

/* ---- what tasks say of themselves, and to a ps ---- */

static struct strings some_hosts(const char **at)
{
    at[0] = "a:1";
    at[1] = "b:2";
    return (struct strings){at, 2};
}

static void read_greeting(struct view input)
{
    const char *ps[2], *workers[2];
    struct cluster_spec cluster = {.job = JOB_PS};
    cluster.hosts[JOB_PS] = some_hosts(ps);
    cluster.hosts[JOB_WORKER] = some_hosts(workers);
    const struct greeter me = {
        .cluster = &cluster,
        .fingerprint = "0123456789abcdef",
        .job = JOB_PS,
        .peer_job = JOB_WORKER,
        .peer_count = 2,
        .incarnation = 7,
    };
    const struct message message = {.type = MESSAGE_HELLO,
                                    .task = 1,
                                    .job = JOB_WORKER,
                                    .body = input.at,
                                    .body_bytes = (uint32_t)view_bytes(input)};
    struct greeting greeting;
    struct welcome welcome;
    bool is_visitor;
    if (fuzz_went_well(greeting_read(&me, &message, &greeting))) {
        fuzz_holds(greeting.task >= 0 && greeting.task < 2, "a task of the list greets");
        for (int i = 0; i < TRANSPORT_COUNT; i++)
            fuzz_holds(memchr(greeting.offers.at[i], 0, ADDRESS_MAX), "a name ends");
    }
    fuzz_went_well(greeting_read_visitor(&message, &is_visitor));
    fuzz_went_well(greeting_read_welcome(&message, &welcome));
}

static void read_setup(struct view input, struct arena *arena)
{
    struct setup setup;
    if (!fuzz_went_well(setup_read((const char *)input.at, view_bytes(input), arena, &setup)))
        return;
    for (int i = 0; i < setup.slice_count; i++) {
        const struct slice *s = &setup.slices[i];
        fuzz_holds(s->offset >= 0 && s->count >= 0 && s->offset <= setup.floats - s->count,
                   "a slice lies in its block");
    }
}

/* Of a chief that reads the data for a worker of this spec. */
static void read_data(struct view input, struct arena *arena)
{
    static const char text[] =
        "{\"name\": \"s\", \"data\": {\"train\": {\"format\": \"csv\", \"file\": \"rows.csv\", "
        "\"label\": \"y\", \"label_type\": \"word\"}, \"columns\": [{\"column\": \"numeric\", "
        "\"name\": \"a\", \"standardize\": true}], \"batch_size\": 2}, "
        "\"model\": [{\"op\": \"dense\", \"name\": \"logits\", \"units\": 2}], "
        "\"loss\": \"softmax_cross_entropy\", \"optimizer\": {\"type\": \"gradient_descent\", "
        "\"learning_rate\": 1}, "
        "\"train\": {\"last_step\": 1}}";
    const struct spec_options options = {.path = "memory://spec.json", .data_dir = "/", .seed = -1};
    struct feed_description data;
    struct spec spec;
    memory_file("spec.json",
                (struct view){(const uint8_t *)text, (const uint8_t *)text + sizeof text - 1});
    fuzz_holds(fuzz_went_well(spec_load(&options, &spec)), "the spec is right");
    if (fuzz_went_well(feed_read_description(input.at, view_bytes(input), &spec, arena, &data))) {
        fuzz_holds(data.rows >= 0 && data.column_count >= 0 && data.column_count <= COLUMNS_MAX,
                   "there are so many columns");
        for (int i = 0; i < data.column_count; i++)
            fuzz_holds(!data.columns[i].at, "nothing of them is there yet");
    }
    spec_free(&spec);
    memory_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct view input = {bytes, bytes + count};
    struct arena arena = {0};
    struct tf_config config;
    struct named_place place;
    const char *directory;
    uint64_t token;
    const int kind = fuzz_byte(&input) % KINDS;
    log_set_level(LOG_ERROR);
    if (kind == TF_CONFIG) fuzz_went_well(tf_config_read(text_of(input, &arena), &arena, &config));
    if (kind == FLAGS) read_flags(&input, &arena);
    if (kind == SLURM || kind == RANKS) read_launcher(&input, &arena, kind == SLURM);
    if (kind == PLACE) named_place_read(text_of(input, &arena), &place);
    if (kind == SETUP) read_setup(input, &arena);
    if (kind == FOLDER)
        fuzz_went_well(setup_read_folder((const char *)input.at, view_bytes(input), &arena,
                                         &directory, &token));
    if (kind == GREETING) read_greeting(input);
    if (kind == HOSTS) read_hosts(input, &arena);
    if (kind == DATA) read_data(input, &arena);
    arena_free(&arena);
    return 0;
}
