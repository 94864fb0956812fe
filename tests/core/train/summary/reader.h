/* reader.h - event files and protocol buffers read back, by code of its own. Whatever is not as it
 * must be fails the test. */
#ifndef TESTS_CORE_TRAIN_SUMMARY_READER_H
#define TESTS_CORE_TRAIN_SUMMARY_READER_H

/* Before cmocka, which calls a macro like the program's fail(). */
#include "core/base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct bytes { /* a view, or what is left of one */
    const uint8_t *at;
    size_t count;
};

/* A whole file; freed with free((void *)at). */
struct bytes file_load(const char *path);

/* The next record's data, its checksums compared; false at the end. */
bool record_next(struct bytes *rest, struct bytes *ret);
int record_count(struct bytes file);
struct bytes record_at(struct bytes file, int index);

struct part { /* one field of a message */
    int field;
    uint64_t integer;     /* varint */
    double real;          /* 64 or 32 bits */
    struct bytes content; /* of what has a length */
};

/* The next field; false at the end. */
bool part_next(struct bytes *rest, struct part *ret);
int part_count(struct bytes message, int field);
/* The field, which must be there; of several the one with this index. */
struct part part_at(struct bytes message, int field, int index);
struct part part_of(struct bytes message, int field); /* the only one */

bool bytes_are(struct bytes, const char *text);
bool bytes_equal(struct bytes, struct bytes);
double bytes_double(struct bytes, int index); /* of packed doubles */

/* A folder of the test's own, and everything in it gone again. */
void scratch_make(char ret_path[64]);
void scratch_remove(const char *path);
/* The path of the only file whose name holds the word, or of none ("") */
void scratch_find(const char *folder, const char *word, char ret_path[512]);

#endif
