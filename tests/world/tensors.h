/* tensors.h - what a checkpoint has, as `dtrain checkpoint export` says it. */
#ifndef TESTS_WORLD_TENSORS_H
#define TESTS_WORLD_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

enum { TENSORS_MOST = 96, TENSOR_NAME_BYTES = 96 };

struct tensor {
    char name[TENSOR_NAME_BYTES];
    const char *elements;
    int64_t count;
    bool is_whole; /* int64; else float32 */
};

struct tensors {
    struct tensor at[TENSORS_MOST];
    int count;
};

/* machine_fail() where it cannot be read: then it has none. */
void tensors_read(const char *prefix, struct tensors *ret);
const struct tensor *tensors_find(const struct tensors *, const char *name); /* NULL: none */
double tensor_at(const struct tensor *, int64_t index);

#endif
