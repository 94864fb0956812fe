/* What a run, an evaluator or a server keeps or is given beside checkpoints: the first byte says
 * which file the rest is.
 */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

#include "cmd/run/evaluated_checkpoints.h"
#include "cmd/serve/models_file.h"
#include "core/base/log.h"
#include "core/train/checkpoint/best_checkpoints.h"
#include "core/train/checkpoint/ended.h"
#include "core/train/spec/settings.h"

enum { SETTINGS, BEST, EVALUATED, MODELS, ENDED, KINDS };

static const char folder[] = "memory:/"; /* of which a file is "memory://NAME" */

static void read_settings(struct view bytes)
{
    struct settings settings;
    memory_file("settings.json", bytes);
    if (!fuzz_went_well(settings_load(folder, &settings))) return;
    fuzz_holds(settings.count >= 0 && settings.count <= SETTINGS_MAX, "no more than there is room");
    for (int i = 0; i < settings.count; i++) {
        char text[SETTING_VALUE_MAX];
        setting_text(&settings.at[i], text);
        fuzz_holds(memchr(text, '\0', sizeof text), "a value has an end");
        fuzz_holds(settings_hold(&settings, &settings.at[i]), "what is there holds");
    }
    fuzz_holds(settings_forget_after(&settings, 0) >= 0, "what is later goes");
}

static void read_best(struct view bytes)
{
    struct best_checkpoints best;
    memory_file("best/best.json", bytes);
    if (!fuzz_went_well(best_checkpoints_open(&best, folder, "loss", BETTER_LESS, BEST_MAX)))
        return;
    fuzz_holds(best.count >= 0 && best.count <= BEST_MAX, "no more than are kept");
    for (int i = 0; i < best.count; i++)
        fuzz_holds(best.at[i].step >= 0 && isfinite(best.at[i].value), "a checkpoint has numbers");
}

static void read_evaluated(struct view bytes)
{
    struct evaluated_checkpoints evaluated = {0};
    memory_file("evaluated.json", bytes);
    fuzz_went_well(evaluated_checkpoints_open(&evaluated, folder, 1));
    fuzz_holds(evaluated.count >= 0 && evaluated.count <= CHECKPOINTS_MAX, "no more than are read");
    evaluated_checkpoints_close(&evaluated);
}

static void read_models(struct view bytes)
{
    struct arena arena = {0};
    struct objects models;
    memory_file("models.json", bytes);
    if (fuzz_went_well(models_file_read("memory://models.json", &arena, &models))) {
        const struct listed_model *at = models.at;
        fuzz_holds(models.count > 0 && models.count <= MODELS_MAX, "there are some");
        for (int i = 0; i < models.count; i++)
            fuzz_holds(at[i].name && at[i].spec && at[i].checkpoint, "a model says where it is");
    }
    arena_free(&arena);
}

static void read_ended(struct view bytes)
{
    struct ended ended;
    memory_file(".ended", bytes);
    if (!fuzz_went_well(ended_find(folder, 0, &ended))) return;
    fuzz_holds(ended.code >= 0 && ended.code <= UINT8_MAX, "a code is one of a process");
    fuzz_holds(memchr(ended.text, '\0', sizeof ended.text), "a text has an end");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct view input = {bytes, bytes + count};
    const int kind = fuzz_byte(&input) % KINDS;
    log_set_level(LOG_ERROR);
    if (kind == SETTINGS) read_settings(input);
    if (kind == BEST) read_best(input);
    if (kind == EVALUATED) read_evaluated(input);
    if (kind == MODELS) read_models(input);
    if (kind == ENDED) read_ended(input);
    memory_clear();
    return 0;
}
