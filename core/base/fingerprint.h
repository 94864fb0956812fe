/* fingerprint.h - a hash that is the same on every machine and in every version: FarmHash's
 * Fingerprint64, with which TensorFlow assigns words to hash buckets.
 *
 * Most words are short, and a file has many: the code for short ones is inline.
 */
#ifndef CORE_BASE_FINGERPRINT_H
#define CORE_BASE_FINGERPRINT_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- steps of the published algorithm (farm_) ---- */

/* Primes between 2^63 and 2^64, as published */
static const uint64_t FARM_PRIME_0 = UINT64_C(0xc3a5c85c97cb3127);
static const uint64_t FARM_PRIME_2 = UINT64_C(0x9ae16a3b2f90404f);

/* Little-endian, on every machine */
static inline uint64_t farm_load_8(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

static inline uint64_t farm_load_4(const uint8_t *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return le32toh(word);
}

static inline uint64_t farm_turn(uint64_t word, int bits)
{
    return word >> bits | word << (64 - bits);
}

static inline uint64_t farm_fold(uint64_t word)
{
    return word ^ word >> 47;
}

static inline uint64_t farm_mix(uint64_t a, uint64_t b, uint64_t factor)
{
    const uint64_t once = farm_fold((a ^ b) * factor);
    return farm_fold((b ^ once) * factor) * factor;
}

static inline uint64_t farm_of_16_at_most(const uint8_t *at, size_t count)
{
    const uint64_t factor = FARM_PRIME_2 + 2 * count;
    if (count >= 8) {
        const uint64_t a = farm_load_8(at) + FARM_PRIME_2;
        const uint64_t b = farm_load_8(at + count - 8);
        return farm_mix(farm_turn(b, 37) * factor + a, (farm_turn(a, 25) + b) * factor, factor);
    }
    if (count >= 4)
        return farm_mix(count + (farm_load_4(at) << 3), farm_load_4(at + count - 4), factor);
    if (count == 0) return FARM_PRIME_2;
    const uint64_t low = at[0] + ((uint64_t)at[count / 2] << 8);
    const uint64_t high = count + ((uint64_t)at[count - 1] << 2);
    return farm_fold(low * FARM_PRIME_2 ^ high * FARM_PRIME_0) * FARM_PRIME_2;
}

uint64_t farm_of_long(const void *bytes, size_t count); /* more than 16 */

/* ---- fingerprints ---- */

static inline uint64_t fingerprint(const void *bytes, size_t count)
{
    return count <= 16 ? farm_of_16_at_most(bytes, count) : farm_of_long(bytes, count);
}

/* Combines two fingerprints, in this order, as TensorFlow does for crossed columns */
static inline uint64_t fingerprint_join(uint64_t first, uint64_t second)
{
    static const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
    const uint64_t once = farm_fold(second * factor) * factor;
    const uint64_t both = (first ^ factor ^ once) * factor;
    return farm_fold(farm_fold(both) * factor);
}

#endif
