/* support.h - what the tests of core/data share: files in a folder of their own, and sources. */
#ifndef TESTS_CORE_DATA_SUPPORT_H
#define TESTS_CORE_DATA_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail /* cmocka has a macro of this name */

#include "core/data/source.h"

/* For group setup and teardown: a fresh folder, removed with all files in it. */
int folder_make(void **state);
int folder_remove(void **state);
const char *folder_path(void);

void file_write(const char *name, const void *bytes, size_t count);
void file_write_text(const char *name, const char *text);
/* Packs into packed (of max bytes); returns how many came out. */
size_t gzip_pack(const void *bytes, size_t count, uint8_t *packed, size_t max);
void file_write_gzip(const char *name, const void *bytes, size_t count);
/* Reads a file of tests/fixtures, of fewer than max bytes; returns how many. */
size_t fixture_load(const char *name, void *to, size_t max);

/* Opens a source as the spec has it, relative to the folder, seed 1. ' stands for ". */
err source_open(const char *json, struct dataset *ret);
err source_open_to_predict(const char *json, struct dataset *ret); /* labels need not be there */
err source_open_to_train(const char *json, struct dataset *ret);   /* each cell must be somewhere */
void source_open_ok(const char *json, struct dataset *ret);

/* Standard error while it is read, in all. */
void source_said(const char *json, char *text, size_t max);
/* Opening fails with ERR_INPUT and a text that has every one of the parts (NULL ends). */
void assert_refused(const char *json, ...) __attribute__((sentinel));

/* The same as batches, and what they borrow; index_folder: as in a format_context. To be closed
 * also after a failure. */
struct opened_source {
    struct arena arena;
    json_t *root;
    struct data_spec spec;
    struct batch_source *source;
};
err source_open_batches(const char *json, const char *index_folder, struct opened_source *ret);
void source_open_batches_ok(const char *json, const char *index_folder, struct opened_source *ret);
void source_close_batches(struct opened_source *);
/* The rows of the one, which is in memory, are those of the other in their order. */
void assert_stream_is_memory(const char *of_memory, const char *of_stream);

/* A dataset over memory of the caller: row i has the features i, i + 1, ... and the label i. */
enum { COUNTED_ROWS_MAX = 512, COUNTED_WIDTH = 5 };
struct counted {
    float floats[COUNTED_ROWS_MAX * COUNTED_WIDTH];
    uint8_t bytes[COUNTED_ROWS_MAX * COUNTED_WIDTH];
    int32_t labels[COUNTED_ROWS_MAX];
    struct column columns[STORED_COLUMNS + 1]; /* and room for one more */
};
struct dataset counted_dataset(struct counted *, enum dtype, int64_t rows);

/* The dataset as a source that has begun; the dataset stays the caller's. */
err source_begin(const struct dataset *, const struct stream_options *, struct batch_source **ret);
/* Rows first .. first + rows - 1, in stored order */
void source_read(const struct dataset *, const struct transform *, int64_t first, int64_t rows,
                 float *features, void *labels);

/* Of a batch, by the columns' names */
const float *batch_features(const struct batch *);
const void *batch_labels(const struct batch *);

#endif
