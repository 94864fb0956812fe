/* A spec, behind the changes of --set: texts that end with a zero byte, the last of them empty. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "core/base/log.h"
#include "core/train/spec/spec.h"

enum { SETS_MAX = 4, SET_BYTES_MAX = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct view input = {bytes, bytes + count};
    char texts[SETS_MAX][SET_BYTES_MAX];
    const char *sets[SETS_MAX];
    struct spec_options options = {.path = "memory://spec.json", .data_dir = "/", .seed = -1};
    struct spec spec;
    log_set_level(LOG_ERROR);
    options.overrides = (struct strings){sets, 0};
    for (int i = 0; i < SETS_MAX; i++) {
        const struct view text = fuzz_text(&input);
        const size_t length =
            view_bytes(text) < SET_BYTES_MAX ? view_bytes(text) : SET_BYTES_MAX - 1;
        if (!length) break;
        memcpy(texts[i], text.at, length);
        texts[i][length] = '\0';
        sets[options.overrides.count++] = texts[i];
    }
    memory_file("spec.json", input);
    if (fuzz_went_well(spec_load(&options, &spec))) {
        free(spec_text(&spec));
        spec_free(&spec);
    }
    memory_clear();
    return 0;
}
