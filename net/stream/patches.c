/* patches.c - see patches.h. */
#include "net/stream/patches.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { PATCHES_START = 8 };

err patches_add(struct patches *patches, const struct patch *patch)
{
    if (patches->count == patches->capacity) {
        const int capacity = patches->capacity ? 2 * patches->capacity : PATCHES_START;
        struct patch *at = realloc(patches->at, (size_t)capacity * sizeof *at);
        if (!at) return fail(ERR_MEMORY, "no memory for %d patches of a window", capacity);
        patches->at = at;
        patches->capacity = capacity;
    }
    patches->at[patches->count++] = *patch;
    return OK;
}

void patches_free(struct patches *patches)
{
    free(patches->at);
    *patches = (struct patches){0};
}

/* The first patch, from index `from` on, that ends after the offset; NULL: none */
static const struct patch *next_patch(const struct patches *patches, uint64_t offset, int *from)
{
    for (; patches && *from < patches->count; ++*from) {
        const struct patch *patch = &patches->at[*from];
        if (patch->offset + patch->bytes > offset) return patch;
    }
    return NULL;
}

static struct iovec piece_of(const struct payload *s, const struct patch *patch)
{
    if (patch && patch->offset <= s->offset) {
        const uint64_t into = s->offset - patch->offset, left = patch->bytes - into;
        return (struct iovec){(char *)patch->at + into, left < s->left ? left : s->left};
    }
    const uint64_t left = patch ? patch->offset - s->offset : s->left;
    return (struct iovec){s->base + s->offset, left < s->left ? left : s->left};
}

int payload_pieces(const struct payload *payload, struct iovec *ret, int max)
{
    struct payload rest = *payload;
    int count = 0, from = 0;
    while (rest.left > 0 && count < max) {
        ret[count] = piece_of(&rest, next_patch(rest.patches, rest.offset, &from));
        payload_advance(&rest, ret[count++].iov_len);
    }
    return count;
}

void payload_advance(struct payload *payload, size_t bytes)
{
    payload->offset += bytes;
    payload->left -= bytes;
}

void payload_take(struct payload *payload, const void *from, size_t bytes)
{
    struct iovec piece;
    for (const char *at = from; bytes > 0; at += piece.iov_len, bytes -= piece.iov_len) {
        payload_pieces(payload, &piece, 1);
        if (piece.iov_len > bytes) piece.iov_len = bytes;
        memcpy(piece.iov_base, at, piece.iov_len);
        payload_advance(payload, piece.iov_len);
    }
}
