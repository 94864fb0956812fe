/* nearest.c - finds the known name that was probably meant.
 *
 * Edit distance with exchanges of neighbours (optimal string alignment). Case, and '-' for '_',
 * cost nothing. If no name is near, one with a common part or initials: "mse", "AdamOptimizer",
 * "cross_entropy". Words of other frameworks are in a list. A name that looks the same comes first.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/base/fields/fields.h"
#include "core/base/printable.h"

enum { WORD_MAX = 64, EDITS_MAX = 3, COMMON_MIN = 4 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    if (a == '-') a = '_';
    if (b == '-') b = '_';
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Both at most WORD_MAX bytes. Three rows of the table are enough: a[..i] against all of b. */
static int distance(const char *a, const char *b)
{
    const int width = (int)strlen(b);
    int rows[3][WORD_MAX + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (int j = 0; j <= width; j++) row[j] = j;

    for (int i = 1; a[i - 1]; i++) {
        int *const oldest = before;
        before = above, above = row, row = oldest;
        row[0] = i;
        for (int j = 1; j <= width; j++) {
            int replaced = above[j - 1] + !same(a[i - 1], b[j - 1]);
            row[j] = least(replaced, least(above[j], row[j - 1]) + 1);
            bool exchanged = i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
            if (exchanged) row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return row[width];
}

/* "lr" of learning_rate. */
static bool is_initials(const char *word, const char *name)
{
    for (bool is_first = true; *name; is_first = *name++ == '_')
        if (is_first && !same(*word++, *name)) return false;
    return *word == '\0';
}

/* Lower case without separators, so that "GradientDescentOptimizer" begins with gradient_descent.
 */
static void squeeze(const char *word, char ret[WORD_MAX + 1])
{
    for (; *word; word++)
        if (*word != '_' && *word != '-') *ret++ = (char)tolower((unsigned char)*word);
    *ret = '\0';
}

/* How well `part` fits `whole`: best if whole begins with it; 0: not at all. */
static int common(const char *whole, const char *part)
{
    const int length = (int)strlen(part);
    const char *found = length < COMMON_MIN ? NULL : strstr(whole, part);
    if (!found) return 0;
    return found == whole ? WORD_MAX + length : length;
}

/* The one with the most in common, the first of equals. */
static const char *related_name(const char *word, const char *const *names, int count)
{
    const char *related = NULL;
    char plain[WORD_MAX + 1], name[WORD_MAX + 1];
    squeeze(word, plain);
    for (int i = 0, most = 0; i < count; i++) {
        if (strlen(names[i]) > WORD_MAX) continue;
        squeeze(names[i], name);
        const int some = common(name, plain) + common(plain, name);
        if (some <= most) continue;
        related = names[i];
        most = some;
    }
    return related;
}

static const char *name_of_initials(const char *word, const char *const *names, int count)
{
    for (int i = 0; word[1] && i < count; i++)
        if (is_initials(word, names[i])) return names[i];
    return NULL;
}

static const struct {
    const char *word, *name;
} others[] = {
    {"train_dir", "checkpoint_dir"},
    {"model_dir", "checkpoint_dir"},
    {"logdir", "checkpoint_dir"},
    {"log_dir", "checkpoint_dir"},
    {"output_dir", "checkpoint_dir"},
    {"max_steps", "last_step"},
    {"max_to_keep", "keep_checkpoint_max"},
    {"save_model_secs", "save_checkpoint_secs"},
    {"save_checkpoints_secs", "save_checkpoint_secs"},
    {"save_checkpoints_steps", "save_checkpoint_steps"},
    {"save_interval_secs", "save_checkpoint_secs"},
    {"num_epochs", "epochs"},
    {"lr", "learning_rate"},
    {"init_checkpoint", "warm_start"},
    {"init_from_checkpoint", "warm_start"},
    {"warm_start_from", "warm_start"},
    {"sync", "mode"},
    {"issync", "mode"},
    {"sync_replicas", "mode"},
    {"num_ps", "local_ps"},
    {"num_workers", "local_workers"},
    {"workers", "local_workers"},
    {"num_gpus", "device"},
    {"gpu", "device"},
    {"gpus", "device"},
    {"ConfigProto", "device"},
    {"protocol", "transport"},
    {"saver", "checkpoint"},
    {"tensorboard", "plot"},
    {"batch", "batch_size"},
    {"dim", "dimension"},
    {"output_dim", "dimension"},
    {"embedding_dim", "dimension"},
    {"SyncReplicasOptimizer", "replicas_to_aggregate"},
    {"replica_device_setter", "placement"},
    {"Scaffold", "warm_start"},
    {"queue_runner", "prefetch"},
    {"start_queue_runners", "prefetch"},
    {"Coordinator", "prefetch"},
    {"Server", "cluster"},
    {"is_chief", "cluster"},
    {"Supervisor", "train"},
    {"Estimator", "train"},
    {"RunConfig", "train"},
    {"StopAtStepHook", "last_step"},
    {"early_stopping", "hooks"},
    {"patience", "hooks"},
    {"callbacks", "hooks"},
    {"GreedyLoadBalancingStrategy", "placement"},
    {"categorical_column_with_hash_bucket", "hash"},
    {"FileWriter", "summary_dir"},
    {"scalar", "summary_dir"},
};

const char *name_of_others(const char *word)
{
    char plain[WORD_MAX + 1], other[WORD_MAX + 1];
    if (strlen(word) > WORD_MAX) return NULL;
    squeeze(word, plain);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        squeeze(others[i].word, other);
        if (strcmp(plain, other) == 0) return others[i].name;
    }
    return NULL;
}

static const char *name_by_others(const char *word, const char *const *names, int count)
{
    const char *name = name_of_others(word);
    const int at = name ? text_find(names, count, name) : -1;
    return at < 0 ? NULL : names[at];
}

/* "tf.train.AdamOptimizer" is "AdamOptimizer". */
static const char *without_module(const char *word)
{
    const char *dot = strncmp(word, "tf.", 3) == 0 ? strrchr(word, '.') : NULL;
    return dot ? dot + 1 : word;
}

/* A name that differs only by invisible characters: a byte order mark, a zero-width space. */
static const char *twin(const char *word, const char *const *names, int count)
{
    char seen[WORD_MAX + 1], name[WORD_MAX + 1];
    if (!printable_seen(seen, sizeof seen, word) || !seen[0]) return NULL;
    for (int i = 0; i < count; i++)
        if (printable_seen(name, sizeof name, names[i]) && strcmp(seen, name) == 0) return names[i];
    return NULL;
}

const char *nearest_name(const char *given, const char *const *names, int count)
{
    const char *word = without_module(given), *same_to_see = twin(word, names, count);
    const size_t length = strlen(word);
    if (same_to_see) return same_to_see;
    if (length == 0 || length > WORD_MAX) return NULL;

    /* A third of the letters may be wrong, rounded up: one for "lr". */
    int allowed = least((int)(length + 2) / 3, EDITS_MAX);
    const char *nearest = NULL;
    for (int i = 0; i < count; i++) {
        if (strlen(names[i]) > WORD_MAX) continue;
        int edits = distance(word, names[i]);
        if (edits > allowed || edits >= (int)strlen(names[i])) continue;
        nearest = names[i];
        allowed = edits - 1; /* the first of equals stays */
    }
    const bool is_same = nearest && allowed < 0;
    const char *meant = is_same ? NULL : name_by_others(word, names, count);
    if (!is_same && !meant) meant = name_of_initials(word, names, count);
    if (meant) return meant;
    return nearest ? nearest : related_name(word, names, count);
}

struct suggestion suggest(const char *given, const char *const *names, int count)
{
    struct suggestion ret = {""};
    const char *near = nearest_name(given, names, count);
    if (near) snprintf(ret.text, sizeof ret.text, " (did you mean \"%s\"?)", near);
    return ret;
}

/* Lists as many names as fit */
static void list(char *text, size_t size, const char *const *names, int count)
{
    enum { MORE_BYTES = 24, NAME_BYTES = 40 };
    size_t used = (size_t)snprintf(text, size, "; it has ");
    int i = 0;
    for (; i < count && used + NAME_BYTES + MORE_BYTES < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%.32s", i ? ", " : "", names[i]);
    if (i < count) snprintf(text + used, size - used, ", ... (%d in all)", count);
}

struct suggestion suggest_or_list(const char *given, const char *const *names, int count)
{
    struct suggestion ret = suggest(given, names, count);
    if (!ret.text[0] && count > 0) list(ret.text, sizeof ret.text, names, count);
    return ret;
}
