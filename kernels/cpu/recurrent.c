/* recurrent.c - one step of recurrent cells, beside their products: an example at a time. */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

static int64_t cell_grain(int64_t units)
{
    return SPREAD_GRAIN / 32 / (units + 1) + 1;
}

#define EACH_EXAMPLE(name, type, per_unit)                                                         \
    static void name##_examples(const void *arguments, int64_t begin, int64_t end)                 \
    {                                                                                              \
        const struct type v = *(const struct type *)arguments;                                     \
        for (int64_t example = begin; example < end; example++) {                                  \
            _Pragma("omp simd") for (int64_t k = 0; k < v.units; k++) per_unit(&v, example, k);    \
        }                                                                                          \
    }                                                                                              \
    void ISA(name)(struct device * d, const struct type *v)                                        \
    {                                                                                              \
        spread(d, v->batch, cell_grain(v->units), name##_examples, v);                             \
    }

EACH_EXAMPLE(lstm_cell, lstm_cell, element_lstm)
EACH_EXAMPLE(lstm_cell_back, lstm_cell, element_lstm_back)
EACH_EXAMPLE(gru_gates, gru_cell, element_gru_gates)
EACH_EXAMPLE(gru_cell, gru_cell, element_gru)
EACH_EXAMPLE(gru_cell_back, gru_cell, element_gru_back)
EACH_EXAMPLE(gru_gates_back, gru_cell, element_gru_gates_back)
