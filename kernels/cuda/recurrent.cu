/* recurrent.cu - one step of recurrent cells, except their matrix products: one thread per unit of
 * an example. */
#include "kernels/cuda/launch.cuh"

#define EACH_UNIT(name, cell, per_unit)                                                            \
    struct name##_body {                                                                           \
        struct cell##_cell v;                                                                      \
        __device__ void operator()(int64_t index) const                                            \
        {                                                                                          \
            const int64_t example = quotient_of(index, v.units);                                   \
            per_unit(&v, element_##cell##_example(&v, example), index - example * v.units);        \
        }                                                                                          \
    };                                                                                             \
    void cuda_##name(struct device *d, const struct cell##_cell *v)                                \
    {                                                                                              \
        each(d, #name, name##_body{*v}, v->batch * v->units);                                      \
    }

EACH_UNIT(lstm_cell, lstm, element_lstm)
EACH_UNIT(lstm_cell_back, lstm, element_lstm_back)
EACH_UNIT(gru_gates, gru, element_gru_gates)
EACH_UNIT(gru_cell, gru, element_gru)
EACH_UNIT(gru_cell_back, gru, element_gru_back)
EACH_UNIT(gru_gates_back, gru, element_gru_gates_back)
