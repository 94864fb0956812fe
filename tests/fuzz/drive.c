/* drive.c - a target over a folder of inputs, without libFuzzer: each as it is, and then changed,
 * as often as is said, in ways that the seed decides.
 *
 *     fuzz_data FOLDER [CHANGES [SEED]]
 *
 * With DTRAIN_FUZZ_TRACE set, each input is written to the file of that name before it is tried:
 * what is there after a crash is the one.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/random.h"

enum { INPUTS_MAX = 256, INPUT_BYTES_MAX = 1 << 16, STEPS_MAX = 6 };

static struct {
    uint8_t *at;
    size_t count;
} inputs[INPUTS_MAX];
static int input_count;

static uint64_t drawn, seed;

/* From 0 to below - 1 */
static size_t draw(size_t below)
{
    return below ? (size_t)(random_u64(seed, drawn++) % below) : 0;
}

static void load(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file || input_count == INPUTS_MAX) exit(2);
    inputs[input_count].at = malloc(INPUT_BYTES_MAX);
    if (!inputs[input_count].at) exit(2);
    inputs[input_count].count = fread(inputs[input_count].at, 1, INPUT_BYTES_MAX, file);
    input_count++;
    fclose(file);
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void load_all(const char *folder)
{
    struct dirent **names;
    const int count = scandir(folder, &names, is_input, alphasort);
    if (count <= 0) {
        fprintf(stderr, "%s: no inputs\n", folder);
        exit(2);
    }
    for (int i = 0; i < count; i++) {
        load(folder, names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

/* ---- changes ---- */

/* Room for count bytes at `at`, or without them (count below 0); what does not fit falls off. */
static size_t move(uint8_t *bytes, size_t used, size_t at, long count)
{
    const size_t gone = count < 0 ? (size_t)-count : 0, more = count > 0 ? (size_t)count : 0;
    size_t rest = used - at - gone;
    if (at + more > INPUT_BYTES_MAX) return used;
    if (at + more + rest > INPUT_BYTES_MAX) rest = INPUT_BYTES_MAX - at - more;
    memmove(bytes + at + more, bytes + at + gone, rest);
    return at + more + rest;
}

/* A number as programs write it, of the kind that readers trip over. */
static size_t put_number(uint8_t *to)
{
    static const uint64_t ends[] = {0,
                                    1,
                                    127,
                                    128,
                                    255,
                                    256,
                                    65535,
                                    INT32_MAX,
                                    UINT32_MAX,
                                    INT64_MAX,
                                    UINT64_MAX,
                                    UINT64_C(1) << 40,
                                    (uint64_t)INT64_MIN};
    const uint64_t number = ends[draw(sizeof ends / sizeof *ends)] + draw(3) - 1;
    switch (draw(3)) {
    case 0:
        return (size_t)snprintf((char *)to, 32, draw(2) ? "%lld" : "%llu", (long long)number);
    case 1:
        return memcpy(to, &number, 8), 1u << draw(4);
    default:
        for (int i = 0; i < 10; i++) to[i] = (uint8_t)(number >> 7 * i % 64 | (i < 9) << 7);
        return 1 + draw(10);
    }
}

static size_t change(uint8_t *bytes, size_t used)
{
    uint8_t number[32];
    const size_t at = draw(used), left = used - at, other = draw((size_t)input_count);
    const size_t length = 1 + draw(left < 64 || !draw(8) ? left : 64);
    if (used == 0) return move(bytes, used, 0, 1);
    switch (draw(8)) {
    case 0:
        bytes[at] ^= (uint8_t)(1u << draw(8));
        return used;
    case 1:
        bytes[at] = (uint8_t)draw(256);
        return used;
    case 2:
        return move(bytes, used, at, -(long)(length < left ? length : left));
    case 3:
        return draw(4) ? used : at;
    case 4: { /* twice */
        const size_t now = move(bytes, used, at, (long)length);
        if (at + length <= now && at + 2 * length <= now)
            memcpy(bytes + at, bytes + at + length, length);
        return now;
    }
    case 5: { /* a number over what was there, or between */
        const size_t more = put_number(number), free_bytes = INPUT_BYTES_MAX - at;
        const size_t now = draw(2) ? move(bytes, used, at, (long)more) : used;
        memcpy(bytes + at, number, more < free_bytes ? more : free_bytes);
        return at + more > now && at + more <= INPUT_BYTES_MAX ? at + more : now;
    }
    case 6: { /* of another input */
        const size_t from = draw(inputs[other].count), rest = inputs[other].count - from;
        const size_t taken = rest < left ? rest : left;
        if (taken) memcpy(bytes + at, inputs[other].at + from, taken);
        return used;
    }
    default:
        bytes[at] = bytes[draw(used)];
        return used;
    }
}

/* In memory of its own size, so that a sanitizer sees who reads on. */
static void try(const uint8_t *bytes, size_t count)
{
    const char *trace = getenv("DTRAIN_FUZZ_TRACE");
    FILE *file = trace ? fopen(trace, "wb") : NULL;
    if (file) fwrite(bytes, 1, count, file), fclose(file);
    uint8_t *exact = malloc(count ? count : 1);
    if (!exact) exit(2);
    if (count) memcpy(exact, bytes, count);
    LLVMFuzzerTestOneInput(exact, count);
    free(exact);
}

int main(int argc, char **argv)
{
    static uint8_t changed[INPUT_BYTES_MAX + 64];
    if (argc < 2) return fprintf(stderr, "usage: %s FOLDER [CHANGES [SEED]]\n", argv[0]), 2;
    const long changes = argc > 2 ? atol(argv[2]) : 0;
    seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    load_all(argv[1]);
    for (int i = 0; i < input_count; i++) try(inputs[i].at, inputs[i].count);
    for (long i = 0; i < changes; i++) {
        const int from = (int)(i % input_count);
        size_t count = inputs[from].count;
        memcpy(changed, inputs[from].at, count);
        for (size_t step = 1 + draw(STEPS_MAX); step > 0; step--) count = change(changed, count);
        try(changed, count);
    }
    printf("%d inputs, %ld changed ones\n", input_count, changes);
    for (int i = 0; i < input_count; i++) free(inputs[i].at);
    return 0;
}
