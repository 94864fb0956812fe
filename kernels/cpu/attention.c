/* attention.c - softmax(q k') v of each head, in tiles: the matrix of all queries and keys never
 * exists. Backward recomputes the weights from the logarithms of their sums.
 *
 * A tile is the scores of some queries and some keys. OpenBLAS multiplies, as it accepts rows of a
 * head interleaved with those of others and, with AVX-512, packs nothing of this size. What a query
 * or a key receives is summed by one thread, in an order that depends on the shapes only. Hidden
 * keys have weight 0, which is multiplied with their values: these must be finite.
 */
#include <cblas.h>

#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

enum { TILE = 64 };

/* One head of an example: where its rows begin, and how far apart they are */
struct attention_head {
    struct attention a;
    int64_t example, index;
    const float *q, *k, *v, *dy;
    int64_t row; /* floats from one query, or key, to the next */
    const float *log_sums, *deltas;
};

static struct attention_head head_of(const struct attention *a, int64_t index)
{
    const int64_t example = index / a->heads, head = index % a->heads;
    const int64_t row = a->heads * a->width, at = head * a->width;
    const int64_t first_query = example * a->queries * row + at;
    const int64_t first_key = example * a->keys * row + at;
    return (struct attention_head){.a = *a,
                                   .example = example,
                                   .index = index,
                                   .q = a->q + first_query,
                                   .k = a->k + first_key,
                                   .v = a->v + first_key,
                                   .dy = a->dy ? a->dy + first_query : NULL,
                                   .row = row,
                                   .log_sums = a->log_sums + index * a->queries,
                                   .deltas = a->deltas ? a->deltas + index * a->queries : NULL};
}

/* The same head in another tensor with as many rows */
static float *of_head(const struct attention_head *h, float *x, int64_t rows)
{
    return x + h->example * rows * h->row + h->index % h->a.heads * h->a.width;
}

static void clear_rows(const struct attention_head *h, float *x, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) memset(x + i * h->row, 0, (size_t)h->a.width * sizeof *x);
}

/* The first query and key of a tile, and their numbers */
struct tile {
    int64_t query, key;
    int queries, keys;
};

static int tile_length(int64_t all, int64_t first)
{
    return all - first < TILE ? (int)(all - first) : TILE;
}

/* How many keys a query may see: those up to its own position, or all */
static int64_t seen_by(const struct attention_head *h, int64_t query)
{
    return h->a.is_causal && query + 1 < h->a.keys ? query + 1 : h->a.keys;
}

static struct tile tile_at(const struct attention_head *h, int64_t query, int64_t key)
{
    return (struct tile){query, key, tile_length(h->a.queries, query), tile_length(h->a.keys, key)};
}

/* Whether any of its queries sees any of its keys */
static bool is_seen(const struct attention_head *h, const struct tile *t)
{
    return t->key < seen_by(h, t->query + t->queries - 1);
}

/* score [queries, TILE] = scale x k'; x, k: of the first query and the first key of the head */
static void find_scores(const struct attention_head *h, const struct tile *t, float *score,
                        const float *x, const float *k, float scale)
{
    const int row = (int)h->row;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, t->queries, t->keys, (int)h->a.width,
                scale, x + t->query * h->row, row, k + t->key * h->row, row, 0.0f, score, TILE);
}

/* to [queries, width] += share [queries, TILE] x, x and to: of the head's first key and query */
static void add_to_queries(const struct attention_head *h, const struct tile *t, float *to,
                           const float *share, const float *x)
{
    const int row = (int)h->row;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, t->queries, (int)h->a.width, t->keys,
                1.0f, share, TILE, x + t->key * h->row, row, 1.0f, to + t->query * h->row, row);
}

/* The same the other way: to [keys, width] += share' x */
static void add_to_keys(const struct attention_head *h, const struct tile *t, float *to,
                        const float *share, const float *x)
{
    const int row = (int)h->row;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, t->keys, (int)h->a.width, t->queries, 1.0f,
                share, TILE, x + t->query * h->row, row, 1.0f, to + t->key * h->row, row);
}

/* Sets the scores of keys that the query does not see to `instead`. */
static void hide(const struct attention_head *h, const struct tile *t, int64_t query, float *x,
                 float instead)
{
    const float *mask = h->a.mask ? h->a.mask + h->example * h->a.keys + t->key : NULL;
    const int64_t seen = seen_by(h, query) - t->key;
    for (int j = 0; mask && j < t->keys; j++) x[j] = mask[j] > 0.0f ? x[j] : instead;
    for (int64_t j = seen > 0 ? seen : 0; j < t->keys; j++) x[j] = instead;
}

/* ---- forward ---- */

/* Running sums of a query: of e^(score - top) */
struct attention_sums {
    float top, sum;
};

/* Turns scores into weights and adds them; rescales the sums so far if the maximum grows. */
static void take_row(struct attention_sums *t, float *restrict score, int keys, float *restrict to,
                     int64_t width)
{
    float top = t->top, sum = 0;
#pragma omp simd reduction(max : top)
    for (int j = 0; j < keys; j++) top = score[j] > top ? score[j] : top;
    if (top == -INFINITY) {
        memset(score, 0, (size_t)keys * sizeof *score);
        return;
    }
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < keys; j++) {
        score[j] = score[j] == -INFINITY ? 0.0f : mathf_exp(score[j] - top);
        sum += score[j];
    }
    if (top > t->top) {
        const float shrink = t->top == -INFINITY ? 0.0f : mathf_exp(t->top - top);
        t->sum *= shrink;
        for (int64_t c = 0; c < width; c++) to[c] *= shrink;
    }
    t->sum += sum;
    t->top = top;
}

static void finish_row(const struct attention_head *h, const struct attention_sums *t,
                       int64_t query, float *to)
{
    const float inverse = t->sum > 0.0f ? 1.0f / t->sum : 0.0f;
    for (int64_t c = 0; c < h->a.width; c++) to[c] *= inverse;
    h->a.log_sums[h->index * h->a.queries + query] =
        t->sum > 0.0f ? t->top + mathf_log(t->sum) : INFINITY;
}

/* A tile of queries visits all tiles of keys. */
static void attend(const struct attention_head *h, int64_t first)
{
    float score[TILE * TILE];
    struct attention_sums taken[TILE];
    float *y = of_head(h, h->a.y, h->a.queries);
    const int queries = tile_length(h->a.queries, first);
    for (int i = 0; i < queries; i++) taken[i] = (struct attention_sums){-INFINITY, 0};
    clear_rows(h, y + first * h->row, queries);
    for (int64_t key = 0; key < h->a.keys; key += TILE) {
        const struct tile t = tile_at(h, first, key);
        if (!is_seen(h, &t)) break;
        find_scores(h, &t, score, h->q, h->k, h->a.scale);
        for (int i = 0; i < queries; i++) {
            hide(h, &t, first + i, score + i * TILE, -INFINITY);
            take_row(&taken[i], score + i * TILE, t.keys, y + (first + i) * h->row, h->a.width);
        }
        add_to_queries(h, &t, y, score, h->v);
    }
    for (int i = 0; i < queries; i++) finish_row(h, &taken[i], first + i, y + (first + i) * h->row);
}

static void attend_heads(const void *arguments, int64_t begin, int64_t end)
{
    const struct attention *a = arguments;
    for (int64_t index = begin; index < end; index++) {
        const struct attention_head h = head_of(a, index);
        for (int64_t i = 0; i < a->queries; i += TILE) attend(&h, i);
    }
}

void ISA(attention)(struct device *d, const struct attention *a)
{
    spread(d, a->batch * a->heads, 1, attend_heads, a);
}

/* ---- backward ---- */

/* For a tile: the weight of each key, and the gradient of its score */
static void find_slopes(const struct attention_head *h, const struct tile *t, float *share,
                        float *slope)
{
    find_scores(h, t, share, h->q, h->k, h->a.scale);
    find_scores(h, t, slope, h->dy, h->v, 1.0f);
    for (int i = 0; i < t->queries; i++) {
        float *restrict s = share + i * TILE, *restrict g = slope + i * TILE;
        const float log_sum = h->log_sums[t->query + i], delta = h->deltas[t->query + i];
        const float scale = h->a.scale;
#pragma omp simd
        for (int j = 0; j < t->keys; j++) s[j] = mathf_exp(s[j] - log_sum);
        hide(h, t, t->query + i, s, 0.0f);
#pragma omp simd
        for (int j = 0; j < t->keys; j++) g[j] = s[j] * (g[j] - delta) * scale;
    }
}

/* dy . y of each query, which softmax's gradient subtracts */
static void find_deltas(const struct attention_head *h)
{
    const float *y = of_head(h, h->a.y, h->a.queries);
    for (int64_t i = 0; i < h->a.queries; i++) {
        double sum = 0;
        for (int64_t c = 0; c < h->a.width; c++) sum += y[i * h->row + c] * h->dy[i * h->row + c];
        h->a.deltas[h->index * h->a.queries + i] = (float)sum;
    }
}

static void query_heads(const void *arguments, int64_t begin, int64_t end)
{
    const struct attention *a = arguments;
    float share[TILE * TILE], slope[TILE * TILE];
    for (int64_t index = begin; index < end; index++) {
        const struct attention_head h = head_of(a, index);
        find_deltas(&h);
        if (!a->dq) continue;
        float *dq = of_head(&h, a->dq, a->queries);
        if (!a->add_q) clear_rows(&h, dq, a->queries);
        for (int64_t query = 0; query < a->queries; query += TILE)
            for (int64_t key = 0; key < a->keys; key += TILE) {
                const struct tile t = tile_at(&h, query, key);
                if (!is_seen(&h, &t)) break;
                find_slopes(&h, &t, share, slope);
                add_to_queries(&h, &t, dq, slope, h.k);
            }
    }
}

void ISA(attention_back_queries)(struct device *d, const struct attention *a)
{
    spread(d, a->batch * a->heads, 1, query_heads, a);
}

/* Gradients of the keys and values of a tile from all queries */
static void tile_back(const struct attention_head *h, int64_t key)
{
    const struct attention *a = &h->a;
    float share[TILE * TILE], slope[TILE * TILE];
    float *dk = a->dk ? of_head(h, a->dk, a->keys) : NULL;
    float *dv = a->dv ? of_head(h, a->dv, a->keys) : NULL;
    for (int64_t query = 0; query < a->queries; query += TILE) {
        const struct tile t = tile_at(h, query, key);
        if (!is_seen(h, &t)) continue;
        find_slopes(h, &t, share, slope);
        if (dk) add_to_keys(h, &t, dk, slope, h->q);
        if (dv) add_to_keys(h, &t, dv, share, h->dy);
    }
}

static void key_heads(const void *arguments, int64_t begin, int64_t end)
{
    const struct attention *a = arguments;
    for (int64_t index = begin; index < end; index++) {
        const struct attention_head h = head_of(a, index);
        if (a->dk && !a->add_k) clear_rows(&h, of_head(&h, a->dk, a->keys), a->keys);
        if (a->dv && !a->add_v) clear_rows(&h, of_head(&h, a->dv, a->keys), a->keys);
        for (int64_t key = 0; key < a->keys; key += TILE) tile_back(&h, key);
    }
}

void ISA(attention_back_keys)(struct device *d, const struct attention *a)
{
    if (a->dk || a->dv) spread(d, a->batch * a->heads, 1, key_heads, a);
}
