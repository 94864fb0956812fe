/* orthogonal: orthogonal rows or columns (whichever are fewer) of length gain.
 *
 * As in TensorFlow: the Q of the QR decomposition of a normal matrix, its columns with the signs of
 * R's diagonal. The shape [..., columns] counts as a matrix [rows, columns].
 */
#include "core/base/random.h"
#include "core/graph/op.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { SIDE_MAX = 16384 }; /* limit on the shorter side: the work grows with its square */

struct attributes {
    double gain;
};

static const struct field fields[] = {
    FIELD_OF("gain", FLOAT, struct attributes, gain, .fallback = "1", .min = -1e9, .max = 1e9,
             .help = "factor on every element"),
    {0},
};

/* State of the decomposition of a matrix [rows, columns], rows >= columns. */
struct qr {
    int64_t rows, columns;
    double *a;        /* [rows, columns]; reflector k below and on the diagonal of column k */
    double *q;        /* [rows, columns] */
    double *diagonal; /* [columns] of R */
    double *tau;      /* [columns] 2 / v'v of reflector v */
    double *work;     /* [columns] */
};

/* Makes one allocation, which begins with `a`. */
static err qr_open(int64_t rows, int64_t columns, struct qr *ret)
{
    const size_t elements = (size_t)(rows * columns), n = (size_t)columns;
    double *memory = calloc(2 * elements + 3 * n, sizeof *memory);
    if (!memory) return fail(ERR_MEMORY, "orthogonal: no memory");
    *ret = (struct qr){
        .rows = rows,
        .columns = columns,
        .a = memory,
        .q = memory + elements,
        .diagonal = memory + 2 * elements,
        .tau = memory + 2 * elements + n,
        .work = memory + 2 * elements + 2 * n,
    };
    return OK;
}

static void qr_close(struct qr *qr)
{
    free(qr->a); /* the one allocation */
}

/* target [rows, columns] -= tau v (v' target) with reflector k, in the columns from `first` on. Row
 * by row, in the order of memory. */
static void reflect(const struct qr *qr, double *target, int64_t k, int64_t first)
{
    const int64_t n = qr->columns;
    for (int64_t j = first; j < n; j++) qr->work[j] = 0;
    for (int64_t i = k; i < qr->rows; i++) {
        const double v = qr->a[i * n + k];
        for (int64_t j = first; j < n; j++) qr->work[j] += v * target[i * n + j];
    }
    for (int64_t i = k; i < qr->rows; i++) {
        const double v = qr->tau[k] * qr->a[i * n + k];
        for (int64_t j = first; j < n; j++) target[i * n + j] -= v * qr->work[j];
    }
}

/* Column k of a becomes the reflector that maps the column to R's diagonal element. */
static void make_reflector(struct qr *qr, int64_t k)
{
    const int64_t n = qr->columns;
    double squares = 0;
    for (int64_t i = k; i < qr->rows; i++) squares += qr->a[i * n + k] * qr->a[i * n + k];

    const double head = qr->a[k * n + k];
    const double diagonal = head > 0 ? -sqrt(squares) : sqrt(squares);
    const double half_length = squares - head * diagonal; /* v'v / 2; no cancellation */
    qr->a[k * n + k] = head - diagonal;
    qr->diagonal[k] = diagonal;
    qr->tau[k] = half_length > 0 ? 1 / half_length : 0;
}

/* a -> R and reflectors -> q, whose columns get the signs of R's diagonal. */
static void make_q(struct qr *qr)
{
    const int64_t n = qr->columns;
    for (int64_t k = 0; k < n; k++) {
        make_reflector(qr, k);
        reflect(qr, qr->a, k, k + 1);
    }
    for (int64_t k = 0; k < n; k++) qr->q[k * n + k] = qr->diagonal[k] < 0 ? -1 : 1;
    for (int64_t k = n - 1; k >= 0; k--) reflect(qr, qr->q, k, k);
}

/* Limits the time of the decomposition, not only its memory. */
static err check(const struct shape *shape)
{
    char text[SHAPE_TEXT_MAX];
    if (shape->rank < 2)
        return fail(ERR_INPUT, "orthogonal: wants at least 2 dimensions, got %s",
                    shape_text(shape, text));
    const int64_t columns = shape->dim[shape->rank - 1], rows = shape_count(shape) / columns;
    if (rows > SIDE_MAX && columns > SIDE_MAX)
        return fail(ERR_INPUT, "orthogonal: one side of %s must be at most %d",
                    shape_text(shape, text), SIDE_MAX);
    return OK;
}

/* A wide matrix is computed as its transpose, so that reflectors are always columns. */
static err fill(const void *attributes, const struct initial *of, float *ret_values)
{
    const struct attributes *a = attributes;
    const struct shape *shape = of->shape;
    TRY(check(shape));
    assert(of->first == 0 && of->count == shape_count(shape));
    const int64_t columns = shape->dim[shape->rank - 1], rows = shape_count(shape) / columns;
    const bool is_wide = rows < columns;
    struct qr qr = {0};
    TRY(qr_open(is_wide ? columns : rows, is_wide ? rows : columns, &qr));

    for (int64_t i = 0; i < rows * columns; i++) qr.a[i] = random_normal(of->key, (uint64_t)i);
    make_q(&qr);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            ret_values[i * columns + j] =
                (float)(a->gain * (is_wide ? qr.q[j * rows + i] : qr.q[i * columns + j]));
    qr_close(&qr);
    return OK;
}

const struct initializer initializer_orthogonal = {
    .object = {"orthogonal", "rows or columns at right angles to each other", fields,
               sizeof(struct attributes)},
    .is_whole = true,
    .fill = fill,
};
