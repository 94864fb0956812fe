/* c_weights.c - writes a program's weights to a file that its source maps: a header that identifies
 * the model, then the arrays, in native byte order. */
#include <inttypes.h>
#include <string.h>

#include "cmd/export/c_writer.h"
#include "core/base/crc32c.h"

enum { ALIGNED = 64 };

struct weights_head {
    char name[8];
    uint64_t crc; /* the source has the same: identifies this model's file */
};

static const char head_name[8] = "DTRAINC1";

static bool is_constant(const struct program_value *v)
{
    return v->uses && v->primitive == PRIMITIVE_CONSTANT;
}

/* Returns the offset of the next array, and advances *at past it. */
static int64_t next_place(int64_t *at, size_t bytes)
{
    const int64_t place = (*at + ALIGNED - 1) / ALIGNED * ALIGNED;
    *at = place + (int64_t)bytes;
    return place;
}

/* Of the values; key_bytes: of the keys of its rows */
static size_t value_bytes(const struct program_value *v)
{
    return (size_t)shape_count(&v->shape) * sizeof *v->data;
}

static size_t key_bytes(const struct program_value *v)
{
    return v->grows ? (size_t)v->shape.dim[0] * sizeof *v->keys : 0;
}

static void put(FILE *f, int64_t *at, const void *data, size_t bytes)
{
    static const char zeros[ALIGNED];
    const int64_t before = *at, place = next_place(at, bytes);
    fwrite(zeros, 1, (size_t)(place - before), f);
    fwrite(data, 1, bytes, f);
}

void c_write_weights(FILE *f, const struct program *p, struct c_weights *ret)
{
    struct weights_head head = {.crc = 0};
    uint32_t crc = 0;
    memcpy(head.name, head_name, sizeof head.name);
    for (int i = 0; i < p->count; i++) {
        const struct program_value *v = &p->values[i];
        if (!is_constant(v)) continue;
        crc = crc32c_extend(crc, v->data, value_bytes(v));
        if (v->grows) crc = crc32c_extend(crc, v->keys, key_bytes(v));
    }
    head.crc = crc;
    fwrite(&head, sizeof head, 1, f);
    ret->crc = crc;
    ret->bytes = sizeof head;
    for (int i = 0; i < p->count; i++) {
        const struct program_value *v = &p->values[i];
        if (!is_constant(v)) continue;
        put(f, &ret->bytes, v->data, value_bytes(v));
        if (v->grows) put(f, &ret->bytes, v->keys, key_bytes(v));
    }
}

bool c_weights_are(const char *path)
{
    char name[sizeof head_name];
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const bool is_whole = fread(name, sizeof name, 1, file) == 1;
    fclose(file);
    return is_whole && !memcmp(name, head_name, sizeof name);
}

void c_write_open(FILE *f, const char *name, const struct program *p, const struct c_weights *w)
{
    int64_t at = sizeof(struct weights_head);
    fprintf(f,
            "\nstatic const char *weights;\n\nint %s_open(const char *path)\n{\n"
            "    static const uint64_t wanted = UINT64_C(%" PRIu32 ");\n"
            "    struct stat file;\n"
            "    const int fd = open(path, O_RDONLY);\n"
            "    if (fd < 0) return -1;\n"
            "    const int is_it = !fstat(fd, &file) && file.st_size == %" PRId64 ";\n"
            "    const char *at = is_it ? mmap(NULL, %" PRId64 ", PROT_READ, MAP_SHARED, fd, 0)\n"
            "                           : MAP_FAILED;\n"
            "    if (!is_it) errno = EINVAL;\n"
            "    close(fd);\n"
            "    if (at == MAP_FAILED) return -1;\n"
            "    if (memcmp(at, \"%.8s\", 8) || memcmp(at + 8, &wanted, 8)) {\n"
            "        munmap((void *)at, %" PRId64 ");\n"
            "        errno = EINVAL;\n"
            "        return -1;\n"
            "    }\n",
            name, w->crc, w->bytes, w->bytes, head_name, w->bytes);
    for (int i = 0; i < p->count; i++) {
        const struct program_value *v = &p->values[i];
        if (!is_constant(v)) continue;
        fprintf(f, "    v%d = (const float *)(const void *)(at + %" PRId64 ");\n", i,
                next_place(&at, value_bytes(v)));
        if (v->grows)
            fprintf(f, "    keys%d = (const int64_t *)(const void *)(at + %" PRId64 ");\n", i,
                    next_place(&at, key_bytes(v)));
    }
    fputs("    weights = at;\n    return 0;\n}\n", f);
}
