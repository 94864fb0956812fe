/* stats.c - `dtrain stats SPEC.json`: what is in the data of a spec, by one pass over its rows. */
#include "cmd/cmd.h"
#include "cmd/stats/report.h"

enum { WORDS_MIN = 1000, WORDS_MAX = 100000000 };

struct stats_flags {
    bool json;
    const char *out, *data_dir;
    struct cache_flags cache;
    struct strings set;
    int64_t words, buckets;
};

static const struct field fields[] = {
    {.name = "json",
     .type = FIELD_BOOL,
     .offset = offsetof(struct stats_flags, json),
     .fallback = "false",
     .help = "print one JSON object instead of a table, with up to 100 words per cell"},
    {.name = "out",
     .type = FIELD_STRING,
     .offset = offsetof(struct stats_flags, out),
     .fallback = "null",
     .help = "write vocabulary and boundary files to this folder"},
    {.name = "words",
     .type = FIELD_INT,
     .offset = offsetof(struct stats_flags, words),
     .fallback = "1000000",
     .min = WORDS_MIN,
     .max = WORDS_MAX,
     .help = "distinct words counted per cell; beyond this, rare words are dropped"},
    {.name = "buckets",
     .type = FIELD_INT,
     .offset = offsetof(struct stats_flags, buckets),
     .fallback = "10",
     .min = 2,
     .max = FIELD_LIST_MAX,
     .help = "number of quantile buckets for boundary files"},
    {.name = "set",
     .type = FIELD_STRINGS,
     .offset = offsetof(struct stats_flags, set),
     .fallback = "[]",
     .help = "override a value of the spec, as in --set data.train.take=1000; may be repeated"},
    {.name = "data_dir",
     .type = FIELD_STRING,
     .offset = offsetof(struct stats_flags, data_dir),
     .fallback = "null",
     .help =
         "folder that relative paths of data files start from; default: the folder of the spec"},
    CACHE_FLAGS(struct stats_flags),
    {0},
};

static const struct object stats_flags_object = {
    .name = "stats",
    .summary = "Prints statistics of a spec's data",
    .fields = fields,
    .size = sizeof(struct stats_flags),
};

void print_stats_help(FILE *out)
{
    fputs("  dtrain stats [FLAGS] SPEC.json\n\n"
          "Reads data.train once and says of each cell, and of the label, how many rows have\n"
          "it, mean, deviation and quartiles of its numbers, and how often its words come. The\n"
          "files of --out are NAME.words.txt, the most frequent word first, for the \"file\" of\n"
          "a vocabulary column, and NAME.boundaries.txt for that of a bucketized one. Memory is\n"
          "bounded; what that costs is said: quantiles of more than 4096 numbers are off by at\n"
          "most the share of ranks that is printed. The rows must have named cells: csv, libsvm,\n"
          "jsonl, tfrecord, criteo, clicks.\n\n",
          out);
    flags_help(out, &stats_flags_object);
}

static err read_data(const struct stats_flags *flags, const struct spec *spec, struct stats *ret)
{
    const struct format_context context = {.directory = spec->directory,
                                           .seed = (uint64_t)spec->seed};
    const err e = stats_read(&spec->data.train, &context, &spec->data.columns, flags->words, ret);
    return e ? fail_prefix(e, "data.train") : OK;
}

/* Where JSON is wanted, nothing else is on standard output. */
static err report(const struct stats_flags *flags, const struct stats *stats)
{
    FILE *out = flags->json ? stderr : stdout;
    TRY(flags->json ? stats_print_json(stats) : stats_print(stats, stdout));
    return flags->out ? stats_write(stats, flags->out, flags->buckets, out) : OK;
}

static err look(int argc, char **argv, struct arena *arena)
{
    struct stats_flags flags;
    struct stats stats = {0};
    struct spec spec;
    const char *path;
    int paths;
    TRY(flags_parse(&stats_flags_object, argc, argv, arena, &flags, &path, 1, &paths));
    if (paths == 0) return fail(ERR_INPUT, "no SPEC.json was named");
    const struct spec_options options = {.path = path,
                                         .overrides = flags.set,
                                         .data_dir = flags.data_dir,
                                         .seed = -1,
                                         .trains_nothing = true};
    TRY(cache_flags_begin(&flags.cache));
    TRY(spec_load(&options, &spec));
    err e = read_data(&flags, &spec, &stats);
    if (!e) e = report(&flags, &stats);
    stats_free(&stats);
    spec_free(&spec);
    return e;
}

int cmd_stats(int argc, char **argv)
{
    struct arena arena = {0};
    err e = look(argc - 1, argv + 1, &arena);
    if (e) e = fail_prefix(e, "stats");
    const int code = e ? report_error(e) : EXIT_DONE;
    arena_free(&arena);
    return code;
}
