/* cublas.c - a library that calls itself cuBLAS: products as its documentation has them, by
 * columns, on memory of the host. It wants to be set up as ours is, and says so by a status
 * otherwise.
 *
 * FAKE_CUBLAS_MAJOR is the version that it says it is of, FAKE_CUBLAS_BROKEN the function that
 * fails.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 1,
    ALLOC_FAILED = 3,
    INVALID_VALUE = 7,
    WORKSPACE_MIN = 4 << 20
};

struct handle {
    void *stream, *workspace;
};

/* Types, ways to compute and algorithms */
enum { FLOAT = 0, COMPUTE_FLOAT32 = 68, COMPUTE_BF16 = 75, COMPUTE_TF32 = 77, ANY = -1 };

int cublasGetProperty(int property, int *ret);
const char *cublasGetStatusString(int status);
int cublasCreate_v2(struct handle **ret);
int cublasDestroy_v2(struct handle *);
int cublasSetStream_v2(struct handle *, void *stream);
int cublasSetWorkspace_v2(struct handle *, void *memory, size_t bytes);
int cublasGemmEx(struct handle *, int transpose_a, int transpose_b, int m, int n, int k,
                 const float *alpha, const float *a, int a_type, int lda, const float *b,
                 int b_type, int ldb, const float *beta, float *c, int c_type, int ldc, int compute,
                 int algorithm);

static int is_broken(const char *function)
{
    const char *broken = getenv("FAKE_CUBLAS_BROKEN");
    return broken && strcmp(broken, function) == 0;
}

int cublasGetProperty(int property, int *ret)
{
    const char *major = getenv("FAKE_CUBLAS_MAJOR");
    const int version[3] = {major ? atoi(major) : 13, 4, 2};
    if (property < 0 || property > 2) return INVALID_VALUE;
    *ret = version[property];
    return SUCCESS;
}

const char *cublasGetStatusString(int status)
{
    switch (status) {
    case NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    default:
        return "CUBLAS_STATUS_INVALID_VALUE";
    }
}

int cublasCreate_v2(struct handle **ret)
{
    if (is_broken("create")) return NOT_INITIALIZED;
    *ret = calloc(1, sizeof **ret);
    return *ret ? SUCCESS : NOT_INITIALIZED;
}

int cublasDestroy_v2(struct handle *handle)
{
    free(handle);
    return SUCCESS;
}

/* Takes the workspace away, as the real one does. */
int cublasSetStream_v2(struct handle *handle, void *stream)
{
    handle->stream = stream;
    handle->workspace = NULL;
    return SUCCESS;
}

int cublasSetWorkspace_v2(struct handle *handle, void *memory, size_t bytes)
{
    if (!memory || bytes < WORKSPACE_MIN || is_broken("workspace")) return INVALID_VALUE;
    handle->workspace = memory;
    return SUCCESS;
}

struct matrix {
    const float *at;
    int is_transposed, step, compute;
};

/* As the multiplier sees it: rounded to 7 bits of mantissa, ties to even, or to 10, ties away from
 * zero */
static unsigned operand(unsigned bits, int compute)
{
    if ((bits & 0x7f800000) == 0x7f800000 || compute == COMPUTE_FLOAT32) return bits;
    if (compute == COMPUTE_TF32) return (bits + 0x1000) & 0xffffe000;
    return (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
}

static double element(const struct matrix *x, int row, int column)
{
    float number = x->is_transposed ? x->at[column + (size_t)row * x->step]
                                    : x->at[row + (size_t)column * x->step];
    unsigned bits;
    memcpy(&bits, &number, sizeof bits);
    bits = operand(bits, x->compute);
    memcpy(&number, &bits, sizeof bits);
    return number;
}

/* c [m, n] by columns; what is multiplied by beta 0 is not read */
int cublasGemmEx(struct handle *handle, int transpose_a, int transpose_b, int m, int n, int k,
                 const float *alpha, const float *a, int a_type, int lda, const float *b,
                 int b_type, int ldb, const float *beta, float *c, int c_type, int ldc, int compute,
                 int algorithm)
{
    const struct matrix left = {a, transpose_a, lda, compute};
    const struct matrix right = {b, transpose_b, ldb, compute};
    if (is_broken("gemm memory")) return ALLOC_FAILED;
    if (!handle->stream || !handle->workspace || is_broken("gemm")) return NOT_INITIALIZED;
    if (a_type != FLOAT || b_type != FLOAT || c_type != FLOAT || algorithm != ANY)
        return INVALID_VALUE;
    if (compute != COMPUTE_FLOAT32 && compute != COMPUTE_TF32 && compute != COMPUTE_BF16)
        return INVALID_VALUE;
    if (lda < (transpose_a ? k : m) || ldb < (transpose_b ? n : k) || ldc < m) return INVALID_VALUE;
    for (int column = 0; column < n; column++)
        for (int row = 0; row < m; row++) {
            float *to = c + row + (size_t)column * ldc;
            double sum = 0;
            for (int i = 0; i < k; i++) sum += element(&left, row, i) * element(&right, i, column);
            const double kept = *beta == 0 ? 0 : (double)*beta * *to;
            *to = (float)(*alpha * sum + kept);
        }
    return SUCCESS;
}
