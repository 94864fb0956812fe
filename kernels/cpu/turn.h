/* turn.h - rows of a matrix become columns, by moves of four numbers: no bit of them changes. */
#ifndef KERNELS_CPU_TURN_H
#define KERNELS_CPU_TURN_H

#include "kernels/elements.h"

typedef float four __attribute__((vector_size(16)));

ELEMENT four four_load(const float *x)
{
    four v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* to[j][i] = from[i][j] for four rows and columns; steps: floats from row to row */
ELEMENT void turn_four(float *to, int64_t to_step, const float *from, int64_t from_step)
{
    const four a = four_load(from), b = four_load(from + from_step),
               c = four_load(from + 2 * from_step), d = four_load(from + 3 * from_step);
    const four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
               cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
               ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
               cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const four turned[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                            __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                            __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                            __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
    for (int j = 0; j < 4; j++) memcpy(to + j * to_step, &turned[j], sizeof(four));
}

struct matrix {
    float *to;
    const float *from;
    int64_t to_step, from_step;
};

/* to[j][i] = from[i][j], i < rows, j < columns */
static inline void turn(const struct matrix *m, int64_t rows, int64_t columns)
{
    const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
    for (int64_t i = 0; i < whole_rows; i += 4) {
        const float *from = m->from + i * m->from_step;
        for (int64_t j = 0; j < whole_columns; j += 4)
            turn_four(m->to + j * m->to_step + i, m->to_step, from + j, m->from_step);
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; j++)
            m->to[j * m->to_step + i] = m->from[i * m->from_step + j];
}

#endif
