/* tensors.c - see tensors.h. An .npz is a zip whose members are stored as they are (PKWARE's
 * APPNOTE 4.3), each with its sizes in a zip64 field; a member is an array as numpy's NEP 1 has it.
 */
#include "tests/world/tensors.h"

#include "tests/world/cluster.h"
#include "tests/world/files.h"

#include <string.h>

enum { LOCAL_BYTES = 30, NAME_AT = 26, SIZE_AT = 4, MEMBER = 0x04034b50, NPY_LENGTH_AT = 8 };

static uint64_t number_at(const char *from, int bytes)
{
    uint64_t ret = 0;
    for (int i = bytes; i-- > 0;) ret = ret << 8 | (uint8_t)from[i];
    return ret;
}

static void read_array(const char *npy, uint64_t bytes, struct tensor *ret)
{
    const uint64_t begin = NPY_LENGTH_AT + 2 + number_at(npy + NPY_LENGTH_AT, 2);
    ret->is_whole = memmem(npy, begin, "'<i8'", 5) != NULL;
    ret->elements = npy + begin;
    ret->count = (int64_t)((bytes - begin) / (ret->is_whole ? sizeof(int64_t) : sizeof(float)));
}

static void read_members(const char *from, size_t count, struct tensors *ret)
{
    const char *end = from + count;
    while (end - from > LOCAL_BYTES && number_at(from, 4) == MEMBER && ret->count < TENSORS_MOST) {
        struct tensor *tensor = &ret->at[ret->count++];
        const size_t name = number_at(from + NAME_AT, 2), more = number_at(from + NAME_AT + 2, 2);
        const char *field = from + LOCAL_BYTES + name;
        const uint64_t bytes = number_at(field + SIZE_AT, 8);
        snprintf(tensor->name, sizeof tensor->name, "%.*s", (int)(name - strlen(".npy")),
                 from + LOCAL_BYTES);
        read_array(field + more, bytes, tensor);
        from = field + more + bytes;
    }
}

void tensors_read(const char *prefix, struct tensors *ret)
{
    static int files; /* what was read before stays */
    char path[FILE_PATH_BYTES];
    snprintf(path, sizeof path, "/tmp/tensors-%d.npz", files++);
    const char *const words[] = {"dtrain", "checkpoint", "export", prefix, path};
    int code;
    size_t count = 0;
    const char *said = cluster_ask(&code, sizeof words / sizeof *words, words);
    const char *bytes = files_text(path, &count);
    ret->count = 0;
    if (code || !bytes)
        machine_fail("cannot read %s: %s", prefix, said);
    else
        read_members(bytes, count, ret);
}

const struct tensor *tensors_find(const struct tensors *tensors, const char *name)
{
    for (int i = 0; i < tensors->count; i++)
        if (strcmp(tensors->at[i].name, name) == 0) return &tensors->at[i];
    return NULL;
}

double tensor_at(const struct tensor *tensor, int64_t index)
{
    int64_t whole;
    float number;
    if (tensor->is_whole) {
        memcpy(&whole, tensor->elements + index * (int64_t)sizeof whole, sizeof whole);
        return (double)whole;
    }
    memcpy(&number, tensor->elements + index * (int64_t)sizeof number, sizeof number);
    return number;
}
