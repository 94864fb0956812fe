/* recurrent.cu - one step of recurrent cells, beside their products: a thread has a unit of an
 * example. */
#include "kernels/cuda/launch.cuh"

#define EACH_UNIT(name, type, per_unit)                                                            \
    struct name##_body {                                                                           \
        struct type v;                                                                             \
        __device__ void operator()(int64_t index) const                                            \
        {                                                                                          \
            const int64_t example = quotient_of(index, v.units);                                   \
            per_unit(&v, example, index - example * v.units);                                      \
        }                                                                                          \
    };                                                                                             \
    void cuda_##name(struct device *d, const struct type *v)                                       \
    {                                                                                              \
        each(d, #name, name##_body{*v}, v->batch * v->units);                                      \
    }

EACH_UNIT(lstm_cell, lstm_cell, element_lstm)
EACH_UNIT(lstm_cell_back, lstm_cell, element_lstm_back)
EACH_UNIT(gru_gates, gru_cell, element_gru_gates)
EACH_UNIT(gru_cell, gru_cell, element_gru)
EACH_UNIT(gru_cell_back, gru_cell, element_gru_back)
EACH_UNIT(gru_gates_back, gru_cell, element_gru_gates_back)
