/* folder.h - a folder of its own for each test of this folder. */
#ifndef TESTS_CORE_TRAIN_CHECKPOINT_FOLDER_H
#define TESTS_CORE_TRAIN_CHECKPOINT_FOLDER_H

#include <stdbool.h>

enum { FOLDER_PATH_MAX = 4096 };

/* A test whose *state is the path of an empty folder, which is gone afterwards. */
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
int folder_setup(void **state);
int folder_teardown(void **state);

/* How many names there match (fnmatch). */
int folder_count(const char *path, const char *pattern);
/* folder/name, in one of a few buffers that are used in turn. */
const char *folder_path(const char *folder, const char *name);
bool folder_has(const char *folder, const char *name);
void file_write(const char *folder, const char *name, const char *text);
/* At most 64 KiB, in one buffer. */
const char *file_read(const char *folder, const char *name);

#endif
