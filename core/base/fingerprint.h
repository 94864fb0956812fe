/* fingerprint.h - a hash that means the same everywhere and always: FarmHash's Fingerprint64, with
 * which TensorFlow puts words into buckets.
 */
#ifndef CORE_BASE_FINGERPRINT_H
#define CORE_BASE_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

uint64_t fingerprint(const void *bytes, size_t count);

/* Of two fingerprints in this order, as TensorFlow joins the parts of a cross */
uint64_t fingerprint_join(uint64_t first, uint64_t second);

#endif
