/* npz.h - writes numpy's archive of arrays: a zip with uncompressed members NAME.npy.
 *
 * Every member and the end of the archive carry the 64-bit fields of zip64, so that an array of 5
 * GB and one of 5 bytes are written alike.
 */
#ifndef CMD_CHECKPOINT_NPZ_H
#define CMD_CHECKPOINT_NPZ_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct npz_array {
    const char *name;
    const char *type; /* numpy's dtype, "<f4" */
    int rank;
    const int64_t *dim;   /* [rank] */
    const void *elements; /* row-major, little-endian */
    size_t bytes;
};

/* The header of an .npy file, which precedes the elements. */
enum { NPY_HEADER_MAX = 512 }; /* magic and the dictionary; a shape of eight axes takes 200 */
struct npy_header {
    char at[NPY_HEADER_MAX];
    size_t length;
};
struct npy_header npy_header(const struct npz_array *);

struct npz;
/* Writes to a temporary file beside path; npz_finish renames it. */
err npz_create(const char *path, struct npz **ret);
err npz_add(struct npz *, const struct npz_array *);
err npz_finish(struct npz *);   /* frees it even on error */
void npz_abandon(struct npz *); /* removes the temporary file; NULL is fine */

#endif
