/* matrix.cuh - what products of matrices and of images share: a side that lies in memory as it is,
 * and results that do. */
#ifndef KERNELS_CUDA_PRODUCT_MATRIX_CUH
#define KERNELS_CUDA_PRODUCT_MATRIX_CUH

#include "kernels/cuda/product/product.cuh"

/* [length, terms] or, not along the terms, [terms, length]; the length is that of rows or columns
 */
template <bool IS_ALONG_TERMS> struct matrix {
    enum { ALONG_TERMS = IS_ALONG_TERMS };
    typedef const float *Place; /* its first number */
    struct Term {
        int index;
        bool is_there;
    };
    const float *numbers;
    int length, terms;

    __device__ Place place(int i) const
    {
        const int inside = i < length ? i : 0;
        return numbers + (ALONG_TERMS ? (int64_t)inside * terms : inside);
    }

    /* Beyond the end it is another, whose address is as good. */
    __device__ Term term(int k) const
    {
        const bool is_there = k < terms;
        return {is_there ? k : 0, is_there};
    }

    __device__ struct source at(Place first, const Term &k) const
    {
        return {first + (ALONG_TERMS ? k.index : (int64_t)k.index * length), k.is_there};
    }
};

/* COUNT floats that follow each other: overwritten, or added to */
template <int COUNT> ON_GPU void store_together(float *to, const float *sums, bool adds)
{
    alignas(COUNT * sizeof(float)) float result[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) result[i] = sums[i];
    if (adds) {
        alignas(COUNT * sizeof(float)) float before[COUNT];
        move_together<COUNT>(before, to);
#pragma unroll
        for (int i = 0; i < COUNT; i++) result[i] += before[i];
    }
    move_together<COUNT>(to, result);
}

#endif
