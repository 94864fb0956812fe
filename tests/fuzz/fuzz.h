/* fuzz.h - what the targets of this folder share. Each is a function that reads bytes of anybody's:
 * by libFuzzer in a build with -Dfuzz=true, by drive.c in every other one.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "core/base/error.h"
#include "core/base/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* The input from its front; what is behind its end is zero. */
uint8_t fuzz_byte(struct view *);
/* The next so many bytes, or what is left */
struct view fuzz_bytes(struct view *, size_t count);
/* Up to the next zero byte, which is passed over, or all that is left. */
struct view fuzz_text(struct view *);

/* The input as files, which other programs would have written: "memory://NAME". They are borrowed,
 * and there until the next call of memory_clear. */
enum { MEMORY_FILES_MAX = 8 };
void memory_file(const char *name, struct view);
void memory_clear(void);

/* Ends the process where that does not hold; the text says what. */
void fuzz_holds(bool, const char *text);
/* Whether it went well; where it did not, there is a text that says why. */
bool fuzz_went_well(err);

#endif
