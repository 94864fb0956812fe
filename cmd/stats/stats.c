/* stats.c - `dtrain stats SPEC.json` or FILE...: statistics of data, in one pass over the rows. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/stats/report.h"
#include "core/base/files/file_system.h"
#include "core/base/files/url.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/data/cells.h"
#include "core/data/files.h"

enum { WORDS_MIN = 1000, WORDS_MAX = 100000000, FILES_NAMED_MAX = 4096 };

enum bare_format { BARE_AUTO, BARE_CSV, BARE_JSONL, BARE_TFRECORD, BARE_LIBSVM };
static const char *const bare_formats[] = {"auto", "csv", "jsonl", "tfrecord", "libsvm", NULL};

struct stats_flags {
    bool json, counts, header;
    int format; /* enum bare_format */
    const char *delimiter;
    const char *out, *data_dir;
    struct cache_flags cache;
    struct strings set;
    int64_t words, buckets;
};

static const struct field fields[] = {
    FIELD_OF("json", BOOL, struct stats_flags, json, .fallback = "false",
             .help = "print one JSON object instead of a table, with up to 100 words per cell"),
    FIELD_OF("out", STRING, struct stats_flags, out, .fallback = "null",
             .help = "write vocabulary and boundary files to this folder"),
    FIELD_OF(
        "counts", BOOL, struct stats_flags, counts, .fallback = "false",
        .help = "with --out, also NAME.counts.txt: how often each word comes, a tab, and the word"),
    FIELD_OF("format", ENUM, struct stats_flags, format, .fallback = "\"auto\"",
             .choices = bare_formats,
             .help = "of files without a spec; auto: by their ending .jsonl, .tfrecord, .svm or "
                     ".libsvm, else csv"),
    FIELD_OF("delimiter", STRING, struct stats_flags, delimiter, .fallback = "null",
             .help = "the character between cells of csv files without a spec, \\t for a tab; "
                     "null: a tab where the file ends in .tsv, else a comma"),
    FIELD_OF("header", BOOL, struct stats_flags, header, .fallback = "true",
             .help = "the first line of csv files without a spec has the names of their cells"),
    FIELD_OF("words", INT, struct stats_flags, words, .fallback = "1000000", .min = WORDS_MIN,
             .max = WORDS_MAX,
             .help = "distinct words counted per cell; beyond this, rare words are dropped"),
    FIELD_OF("buckets", INT, struct stats_flags, buckets, .fallback = "10", .min = 2,
             .max = FIELD_LIST_MAX, .help = "number of quantile buckets for boundary files"),
    FIELD_OF("set", STRINGS, struct stats_flags, set, .fallback = "[]",
             .help =
                 "override a value of the spec, as in --set data.train.take=1000; may be repeated"),
    FIELD_OF(
        "data_dir", STRING, struct stats_flags, data_dir, .fallback = "null",
        .help =
            "folder that relative paths of data files start from; default: the folder of the spec"),
    CACHE_FLAGS(struct stats_flags),
    {0},
};

static const struct object stats_flags_object = {
    .name = "stats",
    .summary = "Prints statistics of a spec's data",
    .fields = fields,
    .size = sizeof(struct stats_flags),
};

static void print_stats_help(FILE *out)
{
    fputs("  dtrain stats [FLAGS] SPEC.json\n"
          "  dtrain stats [FLAGS] FILE...\n\n"
          "For files without a spec (names that end in .csv, .tsv, .jsonl, .tfrecord, .svm or\n"
          ".libsvm, packed or not; patterns and folders; any with --format) all cells are read,\n"
          "and NA, NULL, None, N/A, nan, ? and \\N count as missing.\n\n"
          "Reads data.train once and prints for each cell, and for the label, how many rows have\n"
          "it, mean, deviation and quartiles of its numbers, and how often its words come. The\n"
          "files of --out are NAME.words.txt, the most frequent word first, for the \"file\" of\n"
          "a vocabulary column, and NAME.boundaries.txt for that of a bucketized one. Memory is\n"
          "bounded, at a cost in precision that is printed: quantiles of more than 4096 numbers\n"
          "are off by at most that share of ranks. The rows must have named cells: csv, libsvm,\n"
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
    return flags->out ? stats_write(stats, flags->out, flags->buckets, flags->counts, out) : OK;
}

/* ---- files without a spec ---- */

struct bare {
    struct source_spec source;
};
static const struct field bare_fields[] = {
    FIELD_OF("data", VARIANT, struct bare, source, .object = &source_spec_object,
             .kinds = &format_kinds, .help = "the files"),
    {0},
};
static const struct object bare_object = {"files", "files without a spec", bare_fields,
                                          sizeof(struct bare)};

/* What the name ends in, less what packers add */
static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path);
    const size_t tail = strlen(end);
    if (length > 3 && strcmp(path + length - 3, ".gz") == 0) length -= 3;
    if (length > 4 && strncmp(path + length - 4, ".zst", 4) == 0) length -= 4;
    return length > tail && strncmp(path + length - tail, end, tail) == 0;
}

static const struct stats_ending {
    const char *end;
    int format;
    bool is_weak; /* tells it where no other file does */
} endings[] = {{".csv", BARE_CSV},
               {".tsv", BARE_CSV},
               {".jsonl", BARE_JSONL},
               {".ndjson", BARE_JSONL},
               {".tfrecord", BARE_TFRECORD},
               {".tfrecords", BARE_TFRECORD},
               {".libsvm", BARE_LIBSVM},
               {".svm", BARE_LIBSVM},
               {".txt", BARE_CSV, true},
               /* which are not read here, and named as what they are */
               {".bz2", BARE_CSV, true},
               {".xz", BARE_CSV, true},
               {".zip", BARE_CSV, true},
               {".7z", BARE_CSV, true},
               {".lz4", BARE_CSV, true},
               {".xlsx", BARE_CSV, true},
               {".parquet", BARE_CSV, true},
               {".orc", BARE_CSV, true},
               {".avro", BARE_CSV, true}};

/* NULL: its name does not tell what it is. */
static const struct stats_ending *ending_of(const char *path)
{
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_in(path, endings[i].end)) return &endings[i];
    return NULL;
}

static int bare_format_of(const char *path)
{
    const struct stats_ending *ending = ending_of(path);
    return ending ? ending->format : BARE_AUTO;
}

/* The first in the order in which they are read whose name tells what it is; "": there is none. */
static const char *telling_of(const struct strings *found)
{
    const char *weak = "";
    for (int i = 0; i < found->count; i++) {
        const struct stats_ending *ending = ending_of(found->at[i]);
        if (ending && !ending->is_weak) return found->at[i];
        if (ending && !*weak) weak = found->at[i];
    }
    return weak;
}

/* Of what cannot be found the reader says why. */
static const char *telling_file(const struct strings *paths, const struct format_context *context,
                                struct arena *arena)
{
    struct strings found;
    return files_find(paths, context, arena, &found) ? "" : telling_of(&found);
}

/* Of a folder, whose own stars mean themselves */
static err pattern_of_all(const char *folder, struct arena *arena, const char **ret)
{
    char *plain = pattern_escape(folder, strlen(folder));
    if (!plain) return fail(ERR_MEMORY, "no memory for names of files");
    *ret = arena_format(arena, "%s%s*", plain, text_ends_with(folder, "/") ? "" : "/");
    free(plain);
    return OK;
}

/* named: what is named, and what folders hold of it; room for FIELD_LIST_MAX */
static err add_path(const char *path, struct strings *named)
{
    if (named->count == FIELD_LIST_MAX)
        return fail(ERR_INPUT, "more than %d files", (int)FIELD_LIST_MAX);
    named->at[named->count++] = path;
    return OK;
}

static void tell_left_out(const char *folder, int format, int count, const char *first)
{
    if (!count) return;
    log_line(LOG_WARNING, "%s: %d of its files are left out, which are no %s by their names: %s%s",
             folder, count, bare_formats[format], first, count > 1 ? " is the first" : "");
}

/* Of the files in a folder those that are, by their names, what the first is of which that is
 * known: beside data lie specs and pages. Where no name tells, all. */
static err add_files_of(const char *folder, const struct format_context *context,
                        struct arena *arena, struct strings *named)
{
    const char *pattern, *left_out = "";
    struct strings found;
    int count = 0;
    TRY(pattern_of_all(folder, arena, &pattern));
    const struct strings all = {&pattern, 1};
    if (files_find(&all, context, arena, &found)) return add_path(pattern, named);
    const struct stats_ending *telling = ending_of(telling_of(&found));
    if (!telling) return add_path(pattern, named);
    for (int i = 0; i < found.count; i++) {
        const struct stats_ending *ending = ending_of(found.at[i]);
        const bool is_such =
            ending && ending->format == telling->format && ending->is_weak == telling->is_weak;
        if (is_such) TRY(add_path(found.at[i], named));
        if (ending && !is_such && count++ == 0) left_out = found.at[i];
    }
    tell_left_out(folder, telling->format, count, left_out);
    return OK;
}

/* A folder is what lies in it. */
static err name_what_folders_hold(const struct format_context *context, const struct strings *given,
                                  struct arena *arena, struct strings *named)
{
    for (int i = 0; i < given->count; i++) {
        const char *path = given->at[i];
        struct stat state;
        const char *from =
            *path != '/' ? arena_format(arena, "%s/%s", context->directory, path) : path;
        const bool is_folder = !path_is_url(path) && !stat(from, &state) && S_ISDIR(state.st_mode);
        TRY(is_folder ? add_files_of(path, context, arena, named) : add_path(path, named));
    }
    return OK;
}

static bool is_readable(const char *path)
{
    struct stat state;
    return !stat(path, &state) && S_ISREG(state.st_mode) && !access(path, R_OK);
}

static bool is_json_object(const char *path)
{
    if (!is_readable(path)) return false;
    json_t *json = json_load_file(path, 0, NULL);
    const bool is_so = json_is_object(json);
    json_decref(json);
    return is_so;
}

static bool is_bare(const struct stats_flags *flags, const struct strings *paths)
{
    const char *first = paths->at[0];
    return flags->format != BARE_AUTO || paths->count > 1 || bare_format_of(first) != BARE_AUTO ||
           strpbrk(first, "*?[") || *first == '@';
}

/* Flags that would change nothing, and a spec among files of data. */
static err check_bare(const struct stats_flags *flags, const struct strings *paths)
{
    if (flags->set.count > 0)
        return fail(ERR_INPUT, "--set=%.64s: files of data have no keys, a spec has",
                    flags->set.at[0]);
    for (int i = 0; flags->format == BARE_AUTO && i < paths->count; i++)
        if (ends_in(paths->at[i], ".json") && is_json_object(paths->at[i]))
            return fail(ERR_INPUT,
                        "%s is a spec, whose data.train is looked at: name it alone, or data alone "
                        "(where it is data: --format=jsonl)",
                        paths->at[i]);
    return OK;
}

/* A spec with a label that no file has, so that every cell is a feature. */
static json_t *bare_json(const struct stats_flags *flags, const struct strings *paths,
                         const struct format_context *context, struct arena *arena)
{
    const char *first = telling_file(paths, context, arena);
    int format = flags->format ? flags->format : bare_format_of(first);
    if (format == BARE_AUTO) format = BARE_CSV;
    const char *delimiter = flags->delimiter         ? flags->delimiter
                            : ends_in(first, ".tsv") ? "\t"
                                                     : ",";
    json_t *files = json_array(), *told;
    for (int i = 0; i < paths->count; i++) json_array_append_new(files, json_string(paths->at[i]));
    told = json_pack("{sssosb}", "format", bare_formats[format], "file", files, "follow", 0);
    if (format != BARE_LIBSVM) {
        json_object_set_new(told, "label", json_string("(no label)"));
        json_t *missing = json_array();
        for (const char *const *word = cell_missing_words; *word; word++)
            json_array_append_new(missing, json_string(*word));
        json_object_set_new(told, "missing", missing);
    }
    if (format == BARE_CSV) {
        json_object_set_new(told, "delimiter", json_string(delimiter));
        json_object_set_new(told, "header", json_boolean(flags->header));
    }
    return json_pack("{so}", "data", told);
}

static err look_at_files(const struct stats_flags *flags, const struct format_context *context,
                         const struct strings *paths, struct arena *arena)
{
    const struct objects none = {0};
    struct stats stats = {0};
    struct bare bare;
    TRY(check_bare(flags, paths));
    json_t *json = bare_json(flags, paths, context, arena);
    err e = json ? fields_parse(&bare_object, json, "", arena, &bare)
                 : fail(ERR_MEMORY, "no memory for names of files");
    if (!e) e = stats_read(&bare.source, context, &none, flags->words, &stats);
    if (!e) e = report(flags, &stats);
    stats_free(&stats);
    json_decref(json);
    return e;
}

/* ---- the data of a spec ---- */

/* What cannot be read once more, and an object of JSON, is not taken for data. */
static bool may_be_data(const char *path)
{
    return is_readable(path) && !is_json_object(path);
}

static err check_flags_of_spec(const struct stats_flags *flags)
{
    if (flags->delimiter || !flags->header)
        return fail(ERR_INPUT, "%s is of files without a spec; of a spec: --set data.train.%s",
                    flags->delimiter ? "--delimiter" : "--header",
                    flags->delimiter ? "delimiter" : "header=false");
    return OK;
}

static err look_at_spec(const struct stats_flags *flags, const char *path)
{
    struct stats stats = {0};
    struct spec spec;
    const struct spec_options options = {.path = path,
                                         .overrides = flags->set,
                                         .data_dir = flags->data_dir,
                                         .seed = -1,
                                         .trains_nothing = true};
    TRY(check_flags_of_spec(flags));
    err e = spec_load(&options, &spec);
    if (e == ERR_INPUT && !ends_in(path, ".json") && may_be_data(path))
        return fail(e, "%s (where it is data: --format=csv)", error_text());
    TRY(e);
    e = read_data(flags, &spec, &stats);
    if (!e) e = report(flags, &stats);
    stats_free(&stats);
    spec_free(&spec);
    return e;
}

static err look(int argc, char **argv, struct arena *arena)
{
    struct stats_flags flags;
    struct strings paths = {arena_array(arena, FILES_NAMED_MAX, sizeof *paths.at), 0};
    TRY(flags_parse(&stats_flags_object, argc, argv, arena, &flags, paths.at, FILES_NAMED_MAX,
                    &paths.count));
    if (paths.count == 0) return fail(ERR_INPUT, "no SPEC.json and no file of data was named");
    TRY(cache_flags_begin(&flags.cache));
    const struct format_context context = {.directory = flags.data_dir ? flags.data_dir : ".",
                                           .without_labels = true};
    struct strings named = {arena_array(arena, FIELD_LIST_MAX, sizeof *named.at), 0};
    TRY(name_what_folders_hold(&context, &paths, arena, &named));
    return is_bare(&flags, &named) ? look_at_files(&flags, &context, &named, arena)
                                   : look_at_spec(&flags, named.at[0]);
}

static int cmd_stats(int argc, char **argv)
{
    struct arena arena = {0};
    err e = look(argc - 1, argv + 1, &arena);
    if (e) e = fail_prefix(e, "stats");
    const int code = e ? report_error(e) : EXIT_DONE;
    arena_free(&arena);
    return code;
}

const struct command command_stats = {
    .name = "stats",
    .arguments = "[FLAGS] SPEC|FILE...",
    .summary = "print statistics of data, write vocabularies and boundaries",
    .run = cmd_stats,
    .topic = "statistics of data files",
    .print_help = print_stats_help,
};
