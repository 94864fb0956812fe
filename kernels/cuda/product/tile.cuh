/* tile.cuh - how the operands of one step of a product come into shared memory.
 *
 * Both operands are a Side: numbers of rows (columns, of the right one) and terms.
 *     ALONG_TERMS      whether neighbours in memory are terms; else rows or columns
 *     Place place(i)   what reading row or column i takes. Beyond the end it is any other: nobody
 *                      asks for the sums that come of it.
 *     Term term(k)     the same of a term, which may be beyond the end
 *     at(Place, Term)  where the number lies, or that it stands for 0, as beyond the end of terms:
 *                      then where another lies. Of a product that is WIDE, it is the first of a
 *                      quad, all of whose numbers are there or none, and aligned to 16 bytes.
 *
 * In shared memory a tile is made of words: a float, or what the tensor cores multiply. Floats are
 * streamed: copied without a register, some steps ahead. What has to be rounded is carried through
 * registers, one step ahead, since rounding takes four instructions a number and a number is read
 * from shared memory by two warps or more; pairs of bf16 are half as much to read, too.
 */
#ifndef KERNELS_CUDA_PRODUCT_TILE_CUH
#define KERNELS_CUDA_PRODUCT_TILE_CUH

#include "kernels/cuda/product/copy_instructions.cuh"

/* A number of the GPU's memory; not is_there: 0, and it points to another */
struct source {
    const float *from;
    bool is_there;
};

enum {
    QUAD = 4,      /* numbers in 16 bytes */
    LINE_QUADS = 8 /* quads in the 128 bytes that all banks of shared memory give at once */
};

/* [across, word]. The quads of a row stand in another order from row to row, so that the same quad
 * of eight rows is in eight places of a line: a warp reads and writes quads without waiting. */
template <int WORDS> struct layout_along {
    enum {
        ALONG_TERMS = 1,
        QUADS = WORDS / QUAD,
        LINE_ROWS = LINE_QUADS / QUADS,
        ROW = WORDS, /* words from a row to the next but for the order of quads */
        WORD = 1,
        PERIOD_ACROSS = LINE_QUADS, /* after which the order is the same */
        PERIOD_WORDS = WORDS
    };

    static __device__ unsigned at(unsigned across, unsigned word)
    {
        const unsigned quad = word / QUAD ^ across / LINE_ROWS % QUADS;
        return across * WORDS + quad * QUAD + word % QUAD;
    }
};

/* [word, across]. Eights change places from every EACH words to the next, among four: with 1, four
 * words of eight rows are in all 32 banks, and with 4, so are four words that are 4 apart. */
template <int LENGTH, int EACH> struct layout_across {
    enum {
        ALONG_TERMS = 0,
        EIGHT = 8,
        EIGHTS = 4,
        ROW = 1,
        WORD = LENGTH,
        PERIOD_ACROSS = EIGHTS * EIGHT,
        PERIOD_WORDS = EIGHTS * EACH
    };

    static __device__ unsigned at(unsigned across, unsigned word)
    {
        return word * LENGTH + (across ^ word / EACH % EIGHTS * EIGHT);
    }
};

/* The same where whole rows are read at once */
template <int LENGTH> struct layout_plain {
    enum { ALONG_TERMS = 0, ROW = 1, WORD = LENGTH, PERIOD_ACROSS = 1, PERIOD_WORDS = 1 };

    static __device__ unsigned at(unsigned across, unsigned word)
    {
        return word * LENGTH + across;
    }
};

typedef uint32_t __attribute__((may_alias)) any_word;

/* COUNT floats that lie together and are aligned to all of them, by one instruction: memcpy() of a
 * single one would be made of its bytes. */
template <int COUNT> ON_GPU void move_together(void *to, const void *from)
{
    enum { BYTES = COUNT * 4 };
    if constexpr (COUNT == 1)
        *(any_word *)to = *(const any_word *)from;
    else
        memcpy(__builtin_assume_aligned(to, BYTES), __builtin_assume_aligned(from, BYTES), BYTES);
}

/* What a thread brings of a tile of LENGTH rows (or columns) by TERMS: every THREADS-th of its
 * units of ACROSS by DEEP numbers, counted along memory. */
template <typename Side, int LENGTH, int TERMS, int THREADS, int ACROSS, int DEEP> struct share {
    enum {
        ALONG = Side::ALONG_TERMS,
        UNITS_ACROSS = LENGTH / ACROSS,
        UNITS_DEEP = TERMS / DEEP,
        COUNT = UNITS_ACROSS * UNITS_DEEP / THREADS,
        PLACES = ALONG ? COUNT : 1, /* different ones: a thread's terms are all the same then */
        NEXT_ACROSS = ALONG ? THREADS / UNITS_DEEP * ACROSS : 0, /* from a unit to the next */
        NEXT_TERM = ALONG ? 0 : THREADS / UNITS_ACROSS * DEEP
    };
    static_assert(COUNT * THREADS == UNITS_ACROSS * UNITS_DEEP, "as many units for each thread");
    static_assert(THREADS % (ALONG ? UNITS_DEEP : UNITS_ACROSS) == 0, "whole rows of units");
    typename Side::Place place[PLACES];

    /* Of the j-th unit, in the tile */
    static __device__ unsigned across(int j)
    {
        const unsigned unit = ALONG ? threadIdx.x / UNITS_DEEP : threadIdx.x % UNITS_ACROSS;
        return unit * ACROSS + j * NEXT_ACROSS;
    }

    static __device__ unsigned term(int j)
    {
        const unsigned unit = ALONG ? threadIdx.x % UNITS_DEEP : threadIdx.x / UNITS_ACROSS;
        return unit * DEEP + j * NEXT_TERM;
    }

    /* Where its first word is. That of the next is a constant further, as a rule. */
    template <typename Layout, int PACKED> static __device__ unsigned word(int j)
    {
        enum { NEXT_WORD = NEXT_TERM / PACKED };
        if constexpr (NEXT_ACROSS % Layout::PERIOD_ACROSS || NEXT_WORD % Layout::PERIOD_WORDS)
            return Layout::at(across(j), term(j) / PACKED);
        return Layout::at(across(0), term(0) / PACKED) +
               j * (NEXT_ACROSS * Layout::ROW + NEXT_WORD * Layout::WORD);
    }

    __device__ void start(const Side &side, int first)
    {
#pragma unroll
        for (int j = 0; j < PLACES; j++) place[j] = side.place(first + (int)across(j));
    }

    __device__ struct source at(const Side &side, int j, int k) const
    {
        return side.at(place[ALONG ? j : 0], side.term(k));
    }
};

/* Floats of one side on their way without registers */
template <typename Side, typename Layout, typename Sums, int LENGTH, bool WIDE> struct streamed {
    enum {
        ALONG = Side::ALONG_TERMS,
        IS_TURNED = (int)ALONG != (int)Layout::ALONG_TERMS, /* neighbours are parted */
        UNIT = WIDE ? QUAD : 1
    };
    typedef share<Side, LENGTH, Sums::TERMS, Sums::THREADS, ALONG ? 1 : UNIT, ALONG ? UNIT : 1>
        Share;
    Share own;

    __device__ void copy(const Side &side, int first_term, uint32_t *tile) const
    {
#pragma unroll
        for (int j = 0; j < Share::COUNT; j++) {
            const struct source s = own.at(side, j, first_term + (int)own.term(j));
            uint32_t *to = &tile[Share::template word<Layout, 1>(j)];
            if constexpr (WIDE && !IS_TURNED) {
                copy_quad(to, s.from, s.is_there);
            } else {
#pragma unroll
                for (int e = 0; e < UNIT; e++)
                    copy_float(to + e * Layout::WORD, s.from + e, s.is_there);
            }
        }
    }
};

/* Quads of one side on their way through registers, where Sums::packed() makes words of Sums::PACKED
 * terms each. */
template <typename Side, typename Layout, typename Sums, int LENGTH> struct carried {
    enum {
        ALONG = Side::ALONG_TERMS,
        PACKED = Sums::PACKED,
        ACROSS = ALONG ? 1 : QUAD,
        DEEP = ALONG ? (int)QUAD : (int)PACKED,
        NUMBERS = ACROSS * DEEP,
        WORDS = NUMBERS / PACKED
    };
    static_assert((int)ALONG == (int)Layout::ALONG_TERMS, "neighbours stay together");
    typedef share<Side, LENGTH, Sums::TERMS, Sums::THREADS, ACROSS, DEEP> Share;
    Share own;
    float held[Share::COUNT][NUMBERS];

    __device__ void fetch(const Side &side, int first_term)
    {
#pragma unroll
        for (int j = 0; j < Share::COUNT; j++)
#pragma unroll
            for (int i = 0; i < NUMBERS / QUAD; i++) {
                const struct source s = own.at(side, j, first_term + (int)own.term(j) + i);
                float *to = &held[j][i * QUAD];
#pragma unroll
                for (int e = 0; e < QUAD; e++) to[e] = 0;
                read_quad(to, s.from, s.is_there);
            }
    }

    __device__ void put(uint32_t *tile) const
    {
#pragma unroll
        for (int j = 0; j < Share::COUNT; j++) {
            alignas(16) uint32_t words[WORDS];
#pragma unroll
            for (int i = 0; i < WORDS; i++)
                words[i] = ALONG
                               ? Sums::packed(held[j][i * PACKED], held[j][i * PACKED + PACKED - 1])
                               : Sums::packed(held[j][i], held[j][NUMBERS - ACROSS + i]);
            move_together<WORDS>(&tile[Share::template word<Layout, PACKED>(j)], words);
        }
    }
};

#endif
