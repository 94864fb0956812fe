/* banks.cu - see banks.h. */
#include "kernels/cuda/sums.cuh"
#include "tests/cuda/banks.h"

enum { BANKS = 32 };

/* How many words of the same bank are among those that so many lanes touch, at most */
static int lines_of(const unsigned *first_word, int lanes, int words)
{
    int most = 0;
    for (unsigned bank = 0; bank < BANKS; bank++) {
        unsigned seen[WARP];
        int count = 0;
        for (int lane = 0; lane < lanes; lane++)
            for (int i = 0; i < words; i++) {
                const unsigned word = first_word[lane] + (unsigned)i;
                bool is_new = word % BANKS == bank;
                for (int j = 0; j < count; j++) is_new = is_new && seen[j] != word;
                if (is_new) seen[count++] = word;
            }
        most = count > most ? count : most;
    }
    return most;
}

/* The most lines that an instruction takes in one go, over all warps of a block: 16 bytes are moved
 * by eight lanes at once, 8 by sixteen, 4 by all. word_of(): the first word of the thread that
 * runs, in words of a tile. */
template <typename WordOf> static int lines_of_block(int threads, int words, WordOf word_of)
{
    const int lanes = WARP / words;
    int most = 0;
    for (int first = 0; first < threads; first += lanes) {
        unsigned word[WARP];
        for (int lane = 0; lane < lanes; lane++) {
            grid_now.thread.x = (unsigned)(first + lane);
            word[lane] = word_of();
        }
        const int lines = lines_of(word, lanes, words);
        most = lines > most ? lines : most;
    }
    return most;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* A side that is never read */
template <bool IS_ALONG_TERMS> struct no_side {
    enum { ALONG_TERMS = IS_ALONG_TERMS };
    typedef int Place, Term;
};

/* A tile of one side of sums, whose layout is Layout */
template <typename Sums, typename Side, typename Layout, int LENGTH, bool IS_LEFT> struct tile;

template <int WIDTH, typename Side, typename Layout, int LENGTH, bool IS_LEFT>
struct tile<float_sums<WIDTH>, Side, Layout, LENGTH, IS_LEFT> {
    typedef float_sums<WIDTH> Sums;
    typedef streamed<Side, Layout, Sums, LENGTH, true> Way;
    typedef typename Way::Share Share;

    static int written()
    {
        int lines = 0;
        for (int j = 0; j < Share::COUNT; j++)
            for (int e = 0; e < (Way::IS_TURNED ? QUAD : 1); e++)
                lines = larger(lines, lines_of_block(Sums::THREADS, Way::IS_TURNED ? 1 : QUAD, [=] {
                                   return Share::template word<Layout, 1>(j) + e * Layout::WORD;
                               }));
        return lines;
    }

    static int read()
    {
        int lines = 0;
        for (int k = 0; k < Sums::TERMS; k++)
            for (int i = 0; i < (IS_LEFT ? Sums::HEIGHT : Sums::BREADTH); i += QUAD)
                lines = larger(lines, lines_of_block(Sums::THREADS, QUAD, [=] {
                                   return Layout::at(IS_LEFT ? Sums::row(i) : Sums::column(i), k);
                               }));
        return lines;
    }
};

/* What tensor_left() and tensor_right_pair() read, whose shared memory is taken by its addresses */
template <int WIDTH, typename Kind, int STEP, typename Side, typename Layout, int LENGTH,
          bool IS_LEFT>
struct tile<tensor_sums<WIDTH, Kind, STEP>, Side, Layout, LENGTH, IS_LEFT> {
    typedef tensor_sums<WIDTH, Kind, STEP> Sums;
    typedef carried<Side, Layout, Sums, LENGTH> Way;
    typedef typename Way::Share Share;

    static int written()
    {
        int lines = 0;
        for (int j = 0; j < Share::COUNT; j++)
            lines = larger(lines, lines_of_block(Sums::THREADS, Way::WORDS, [=] {
                               return Share::template word<Layout, Sums::PACKED>(j);
                           }));
        return lines;
    }

    static int read()
    {
        enum { PART = IS_LEFT ? (int)TENSOR_ROWS : 2 * TENSOR_COLUMNS };
        int lines = 0;
        for (int k = 0; k < Sums::WORDS; k += TENSOR_WORDS)
            for (int i = 0; i < LENGTH; i += PART)
                for (int part = 0; part < TENSOR_LEFT; part++)
                    lines = larger(lines, lines_of_block(WARP, Layout::ALONG_TERMS ? QUAD : 1,
                                                         [=] { return word_of(i, k, part); }));
        return lines;
    }

    static unsigned word_of(int first, int word, int part)
    {
        if (Layout::ALONG_TERMS)
            return IS_LEFT ? tensor_left_row<Layout>(first, word)
                           : tensor_right_row<Layout>(first, word);
        return IS_LEFT ? tensor_left_word<Layout>(first, word, part)
                       : tensor_right_word<Layout>(first, word, part);
    }
};

template <typename Sums, bool ALONG> static struct lines lines_of_sums()
{
    typedef no_side<ALONG> Side;
    typedef tile<Sums, Side, typename Sums::template left_layout<ALONG>, TILE_ROWS, true> Left;
    typedef tile<Sums, Side, typename Sums::template right_layout<ALONG>, Sums::COLUMNS, false>
        Right;
    return {larger(Left::written(), Right::written()), larger(Left::read(), Right::read())};
}

template <int COLUMNS, bool ALONG> static struct lines lines_of_precision(enum precision precision)
{
    switch (precision) {
    case PRECISION_TF32:
        return lines_of_sums<tensor_sums<COLUMNS, tf32_words, 16>, ALONG>();
    case PRECISION_BF16:
        return lines_of_sums<tensor_sums<COLUMNS, bf16_words, COLUMNS == 32 ? 32 : 16>, ALONG>();
    default:
        return lines_of_sums<float_sums<COLUMNS>, ALONG>();
    }
}

struct lines bank_lines(enum precision precision, int columns, bool is_along_terms)
{
    if (columns == 32)
        return is_along_terms ? lines_of_precision<32, true>(precision)
                              : lines_of_precision<32, false>(precision);
    if (columns == 64)
        return is_along_terms ? lines_of_precision<64, true>(precision)
                              : lines_of_precision<64, false>(precision);
    return is_along_terms ? lines_of_precision<128, true>(precision)
                          : lines_of_precision<128, false>(precision);
}
