/* recurrent.c - one step of recurrent cells, except their matrix products: an example at a time. */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

static int64_t cell_grain(int64_t units)
{
    return SPREAD_GRAIN / 32 / (units + 1) + 1;
}

#define EACH_EXAMPLE(name, cell, per_unit)                                                         \
    static void name##_examples(const void *arguments, int64_t begin, int64_t end)                 \
    {                                                                                              \
        const struct cell##_cell v = *(const struct cell##_cell *)arguments;                       \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const struct cell_example e = element_##cell##_example(&v, i);                         \
            _Pragma("omp simd") for (int64_t k = 0; k < v.units; k++) per_unit(&v, e, k);          \
        }                                                                                          \
    }                                                                                              \
    void ISA(name)(struct device * d, const struct cell##_cell *v)                                 \
    {                                                                                              \
        spread(d, v->batch, cell_grain(v->units), name##_examples, v);                             \
    }

EACH_EXAMPLE(lstm_cell, lstm, element_lstm)
EACH_EXAMPLE(lstm_cell_back, lstm, element_lstm_back)
EACH_EXAMPLE(gru_gates, gru, element_gru_gates)
EACH_EXAMPLE(gru_cell, gru, element_gru)
EACH_EXAMPLE(gru_cell_back, gru, element_gru_back)
EACH_EXAMPLE(gru_gates_back, gru, element_gru_gates_back)
