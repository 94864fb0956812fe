/* number_bytes.h - a float64 as the 8 bytes of a message, little-endian. */
#ifndef CORE_BASE_NUMBER_BYTES_H
#define CORE_BASE_NUMBER_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline double number_get(const unsigned char *bytes)
{
    uint64_t bits;
    double number;
    memcpy(&bits, bytes, sizeof bits);
    bits = le64toh(bits);
    memcpy(&number, &bits, sizeof number);
    return number;
}

static inline void number_put(unsigned char *bytes, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    bits = htole64(bits);
    memcpy(bytes, &bits, sizeof bits);
}

#endif
