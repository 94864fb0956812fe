/* emulation.h - the parts of the emulated GPU, as they see each other. */
#ifndef TESTS_CUDA_EMULATOR_EMULATION_H
#define TESTS_CUDA_EMULATOR_EMULATION_H

#include <cuda_runtime_api.h>

/* The first words of every call: one thread at a time is in it, until it returns. */
void emulated_begin_turn(void);
void emulated_end_turn(const char *);
#define EMULATED_TURN                                                                              \
    __attribute__((cleanup(emulated_end_turn), unused)) const char turn =                          \
        (emulated_begin_turn(), (char)0)

/* The one that this thread has chosen by cudaSetDevice(): 0 at first */
int emulated_gpu(void);

/* Lets kernels and copies touch the memory of one GPU; takes it away again. */
void emulated_memory_open(int gpu);
void emulated_memory_close(void);

/* What emulated_break() has asked for, or success */
cudaError_t emulated_status(const char *call);

/* The error that every call has from now on, or success. What is queued may be done or not. */
cudaError_t emulated_ruin(void);

/* Of a query: there is work that is not done. It is the last error then, as CUDA has it. */
cudaError_t emulated_not_ready(void);

/* Ends the program where the host's memory of an asynchronous copy is not pinned, or not to be
 * written. */
void emulated_memory_check_pinned(const void *, size_t bytes, bool is_written);

#endif
