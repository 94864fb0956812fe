/* ascending.h - where a number stands among others, which ascend. */
#ifndef CORE_BASE_ASCENDING_H
#define CORE_BASE_ASCENDING_H

#include <stdint.h>

/* The first place whose number is at least `number`; count: there is none. */
static inline int64_t ascending_place(const int64_t *numbers, int64_t count, int64_t number)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (numbers[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
