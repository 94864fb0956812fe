/* named.h - what is said of the libraries that an emulated GPU has found. */
#ifndef TESTS_CUDA_NAMED_H
#define TESTS_CUDA_NAMED_H

/* The list of GPUs says this of one; the device's name has both, and nothing is left taken. */
void assert_told_of(const char *library);

/* The name of a device that is opened now has neither. */
void assert_not_named(const char *library, const char *other);

#endif
