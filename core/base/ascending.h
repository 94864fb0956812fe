/* ascending.h - binary search in an ascending array. */
#ifndef CORE_BASE_ASCENDING_H
#define CORE_BASE_ASCENDING_H

#include <stdint.h>

/* The index of the first element that is at least `number`; count: all are less. */
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
