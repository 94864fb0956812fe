/* sample.c - `dtrain sample SPEC.json --checkpoint=CKPT --prompt=TEXT`: text that a model writes, a
 * character or a word at a time.
 *
 * The model is shown as many as a row has at most: of a longer text the end.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/restored_model.h"
#include "core/base/random.h"
#include "core/base/standard_output.h"
#include "core/data/word_ids.h"

enum { LENGTH_MAX = 1 << 24 };

struct sample_flags {
    struct restored_flags shared;
    const char *prompt;
    int64_t length, seed;
    double temperature;
};

static const struct field own_flags[] = {
    FIELD_OF("prompt", STRING, struct sample_flags, prompt,
             .help = "the text to continue, of characters or words that the model knows"),
    FIELD_OF("length", INT, struct sample_flags, length, .fallback = "500", .min = 1,
             .max = LENGTH_MAX, .help = "number of characters or words to write"),
    FIELD_OF(
        "temperature", FLOAT, struct sample_flags, temperature, .fallback = "1", .max = 100,
        .help = "divides the logits: below 1 favours likely tokens; 0: always the most likely one"),
    FIELD_OF("seed", INT, struct sample_flags, seed, .fallback = "1", .max = 0x1p53,
             .help = "seed of the drawing: the same seed gives the same text"),
    {0},
};

struct sample {
    struct sample_flags flags;
    struct restored_model model;
    struct meanings meanings;
    struct word_ids known;
    struct text_model text;
    int64_t *ids; /* [prompt + length] */
    int64_t count;
    float *logits; /* [classes] */
};

static void print_sample_help(FILE *out)
{
    struct arena arena = {0};
    const struct object flags =
        restored_model_flags_with(own_flags, sizeof(struct sample_flags), &arena);
    fputs("  dtrain sample --checkpoint=CKPT --prompt=TEXT [FLAGS] SPEC.json\n\n"
          "Writes the prompt and a continuation, sampled one character or word at a time from the\n"
          "model's predictions. The spec must read text; its words are taken from the file or the\n"
          "vocabulary. The model must predict the next token at every position without looking\n"
          "ahead (lstm, gru, causal attention).\n\n",
          out);
    flags_help(out, &flags);
    arena_free(&arena);
}

/* ---- the prompt ---- */

static err add_id(struct sample *s, const char *text, size_t length)
{
    const int64_t id = word_ids_find(&s->known, text, length);
    if (id < 0)
        return fail(ERR_INPUT, "--prompt: the model does not know \"%.*s\"",
                    length < 64 ? (int)length : 64, text);
    s->ids[s->count++] = id;
    return OK;
}

static err read_prompt(struct sample *s)
{
    const char *at = s->flags.prompt;
    const bool is_words = s->meanings.between[0] != '\0';
    while (*at) {
        const size_t blanks = is_words ? strspn(at, " \t\n\v\f\r") : 0;
        const size_t length = is_words ? strcspn(at + blanks, " \t\n\v\f\r") : 1;
        if (length > 0) TRY(add_id(s, at + blanks, length));
        at += blanks + length;
    }
    return s->count > 0 ? OK : fail(ERR_INPUT, "--prompt: expected a text, got none");
}

/* ---- what follows ---- */

/* Of what the vocabulary has; a model may have classes beyond. */
static int64_t likeliest(const float *logits, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static int64_t draw(struct sample *s, int64_t index)
{
    const int64_t count = s->meanings.words.count, best = likeliest(s->logits, count);
    const float top = s->logits[best];
    double sum = 0, left;
    if (s->flags.temperature == 0) return best;
    for (int64_t i = 0; i < count; i++) {
        s->logits[i] = (float)exp((s->logits[i] - top) / s->flags.temperature);
        sum += s->logits[i];
    }
    left = sum * random_uniform(random_key((uint64_t)s->flags.seed, "sample"), (uint64_t)index);
    for (int64_t i = 0; i < count; i++) {
        left -= s->logits[i];
        if (left < 0) return i;
    }
    return best;
}

static err write_text(struct sample *s)
{
    const int64_t prompt = s->count;
    fputs(s->flags.prompt, stdout);
    for (int64_t i = 0; i < s->flags.length; i++) {
        const int64_t shown = s->count < s->text.time ? s->count : s->text.time;
        TRY(session_say_next(&s->model.session, s->ids + s->count - shown, shown, s->logits));
        const int64_t id = draw(s, s->count - prompt);
        s->ids[s->count++] = id;
        printf("%s%s", s->meanings.between, s->meanings.words.at[id]);
        TRY(standard_output_flush());
    }
    putchar('\n');
    return standard_output_flush();
}

/* ---- all of it ---- */

static err find_meanings(struct sample *s, struct arena *arena)
{
    const struct spec *spec = &s->model.spec;
    TRY(source_meanings(&spec->data.train, spec->directory, arena, &s->meanings));
    word_ids_open(&s->known, (size_t)s->meanings.words.count, arena);
    for (int i = 0; i < s->meanings.words.count; i++)
        TRY(word_ids_add(&s->known, s->meanings.words.at[i], strlen(s->meanings.words.at[i])));
    return OK;
}

static err open_model(struct sample *s, const char *path)
{
    struct spec *spec = &s->model.spec;
    TRY(restored_model_load_spec(&s->model, &s->flags.shared, path));
    restored_model_use_train(&s->model);
    s->model.feeds_rows = true;
    TRY(restored_model_open(&s->model, true));
    const err e = session_text_model(&s->model.session, &s->text);
    return e ? fail_prefix(e, "%s", spec->source) : OK;
}

static err open_memory(struct sample *s)
{
    const size_t most = strlen(s->flags.prompt) + (size_t)s->flags.length;
    if (s->text.classes < s->meanings.words.count)
        return fail(ERR_INPUT, "the model has %lld classes, the text %d different ones",
                    (long long)s->text.classes, s->meanings.words.count);
    s->ids = malloc(most * sizeof *s->ids);
    s->logits = malloc((size_t)s->text.classes * sizeof *s->logits);
    return s->ids && s->logits ? OK : fail(ERR_MEMORY, "no memory for a text");
}

static err sample(struct sample *s, int argc, char **argv, struct arena *arena)
{
    const struct restored_call call = {argc, argv, own_flags, sizeof s->flags};
    const char *path;
    TRY(restored_model_parse(&call, arena, &s->flags, &path));
    TRY(open_model(s, path));
    TRY(find_meanings(s, arena));
    TRY(open_memory(s));
    TRY(read_prompt(s));
    return write_text(s);
}

static int cmd_sample(int argc, char **argv)
{
    struct arena arena = {0};
    struct sample s = {0};
    cpu_environment_prepare(argv);
    const err e = sample(&s, argc - 1, argv + 1, &arena);
    const int code = e ? report_error(e) : EXIT_DONE;
    free(s.ids);
    free(s.logits);
    restored_model_close(&s.model);
    arena_free(&arena);
    return code;
}

const struct command command_sample = {
    .name = "sample",
    .arguments = "[FLAGS] SPEC.json",
    .summary = "write text with a model",
    .run = cmd_sample,
    .topic = "write text with a checkpoint",
    .print_help = print_sample_help,
};
