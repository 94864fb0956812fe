/* attention.c - softmax(q k') v of each head, in tiles: no matrix of queries and keys is ever
 * there. Backward takes the shares again from the logarithms of their sums.
 *
 * A tile is some keys, turned so that neighbours of a row of scores are neighbours in memory. What
 * a query or a key gets is summed by one thread, in an order that depends on the shapes alone.
 */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

enum { TILE = 64 };

/* One head of an example: where its rows begin, and how far apart they are */
struct head {
    struct attention a;
    int64_t example, index;
    const float *q, *k, *v;
    int64_t row; /* floats from one query, or key, to the next */
    const float *log_sums, *deltas;
};

static struct head head_of(const struct attention *a, int64_t index)
{
    const int64_t example = index / a->heads, head = index % a->heads;
    const int64_t row = a->heads * a->width, at = head * a->width;
    return (struct head){.a = *a,
                         .example = example,
                         .index = index,
                         .q = a->q + example * a->queries * row + at,
                         .k = a->k + example * a->keys * row + at,
                         .v = a->v + example * a->keys * row + at,
                         .row = row,
                         .log_sums = a->log_sums + index * a->queries,
                         .deltas = a->deltas ? a->deltas + index * a->queries : NULL};
}

/* Where the same head lies in a tensor of as many rows */
static float *of_head(const struct head *h, float *x, int64_t rows)
{
    return x + h->example * rows * h->row + h->index % h->a.heads * h->a.width;
}

/* turned [width, TILE] = `count` rows from `first` on; the rest is 0 */
static void turn(float *turned, const float *rows, const struct head *h, int64_t first, int count)
{
    for (int64_t c = 0; c < h->a.width; c++)
        for (int j = 0; j < TILE; j++)
            turned[c * TILE + j] = j < count ? rows[(first + j) * h->row + c] : 0.0f;
}

/* ret [TILE] = x . each of the tile's */
static void products(float *restrict ret, const float *restrict x, const float *restrict turned,
                     int64_t width)
{
    float sum[TILE] = {0};
    for (int64_t c = 0; c < width; c++) {
        const float factor = x[c];
#pragma omp simd
        for (int j = 0; j < TILE; j++) sum[j] += factor * turned[c * TILE + j];
    }
    memcpy(ret, sum, sizeof sum);
}

static void add_scaled(float *restrict to, const float *restrict x, float factor, int64_t width)
{
#pragma omp simd
    for (int64_t c = 0; c < width; c++) to[c] += factor * x[c];
}

static int tile_count(const struct head *h, int64_t first)
{
    return h->a.keys - first < TILE ? (int)(h->a.keys - first) : TILE;
}

/* How many keys a query sees at most: those up to its own place, or all */
static int64_t seen_by(const struct head *h, int64_t query)
{
    return h->a.is_causal && query + 1 < h->a.keys ? query + 1 : h->a.keys;
}

static bool sees(const struct head *h, int64_t query, int64_t key)
{
    if (key >= seen_by(h, query)) return false;
    return !h->a.mask || h->a.mask[h->example * h->a.keys + key] > 0.0f;
}

/* What a query takes in from a tile: the sums so far are of e^(score - top) */
struct taking {
    float top, sum;
};

static void take_tile(const struct head *h, struct taking *t, float *to, int64_t query,
                      int64_t first, const float *turned)
{
    float score[TILE], top = t->top;
    const int count = tile_count(h, first);
    products(score, h->q + query * h->row, turned, h->a.width);
    for (int j = 0; j < count; j++) {
        score[j] = sees(h, query, first + j) ? score[j] * h->a.scale : -INFINITY;
        top = score[j] > top ? score[j] : top;
    }
    if (top == -INFINITY) return;
    const float shrink = t->top == -INFINITY ? 0.0f : mathf_exp(t->top - top);
    t->sum *= shrink;
    t->top = top;
    for (int64_t c = 0; c < h->a.width; c++) to[c] *= shrink;
    for (int j = 0; j < count; j++) {
        const float share = score[j] == -INFINITY ? 0.0f : mathf_exp(score[j] - top);
        t->sum += share;
        if (share > 0.0f) add_scaled(to, h->v + (first + j) * h->row, share, h->a.width);
    }
}

enum { ATTEND_QUERIES = 64 };

/* Queries from `begin` on, of one head; the tile is turned once for all of them. */
static void attend(const struct head *h, int64_t begin, int64_t end)
{
    float turned[ATTENTION_WIDTH_MAX * TILE];
    struct taking taken[ATTEND_QUERIES];
    float *y = of_head(h, h->a.y, h->a.queries);
    for (int64_t i = begin; i < end; i++) {
        taken[i - begin] = (struct taking){-INFINITY, 0};
        memset(y + i * h->row, 0, (size_t)h->a.width * sizeof *y);
    }
    for (int64_t first = 0; first < seen_by(h, end - 1); first += TILE) {
        turn(turned, h->k, h, first, tile_count(h, first));
        for (int64_t i = begin; i < end; i++)
            if (first < seen_by(h, i))
                take_tile(h, &taken[i - begin], y + i * h->row, i, first, turned);
    }
    for (int64_t i = begin; i < end; i++) {
        const struct taking *t = &taken[i - begin];
        const float inverse = t->sum > 0.0f ? 1.0f / t->sum : 0.0f;
        for (int64_t c = 0; c < h->a.width; c++) y[i * h->row + c] *= inverse;
        h->a.log_sums[h->index * h->a.queries + i] =
            t->sum > 0.0f ? t->top + mathf_log(t->sum) : INFINITY;
    }
}

static void attend_heads(const void *arguments, int64_t begin, int64_t end)
{
    const struct attention *a = arguments;
    for (int64_t index = begin; index < end; index++) {
        const struct head h = head_of(a, index);
        for (int64_t i = 0; i < a->queries; i += ATTEND_QUERIES)
            attend(&h, i, i + ATTEND_QUERIES < a->queries ? i + ATTEND_QUERIES : a->queries);
    }
}

void ISA(attention)(struct device *d, const struct attention *a)
{
    spread(d, a->batch * a->heads, 1, attend_heads, a);
}

/* ---- backward ---- */

/* Of a query and a tile: the share of each key, and the gradient of its score */
static void slopes(const struct head *h, int64_t query, int64_t first, const float *keys,
                   const float *values, float *share, float *slope)
{
    const float *dy = h->a.dy + (h->q - h->a.q);
    const int count = tile_count(h, first);
    products(share, h->q + query * h->row, keys, h->a.width);
    products(slope, dy + query * h->row, values, h->a.width);
    for (int j = 0; j < count; j++) {
        const bool is_seen = sees(h, query, first + j);
        share[j] = is_seen ? mathf_exp(share[j] * h->a.scale - h->log_sums[query]) : 0.0f;
        slope[j] = share[j] * (slope[j] - h->deltas[query]) * h->a.scale;
    }
}

/* dy y of each query, which is what softmax's gradient takes off */
static void find_deltas(const struct head *h)
{
    const float *y = of_head(h, h->a.y, h->a.queries), *dy = h->a.dy + (h->q - h->a.q);
    for (int64_t i = 0; i < h->a.queries; i++) {
        double sum = 0;
        for (int64_t c = 0; c < h->a.width; c++) sum += y[i * h->row + c] * dy[i * h->row + c];
        h->a.deltas[h->index * h->a.queries + i] = (float)sum;
    }
}

static void clear_rows(const struct head *h, float *x, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) memset(x + i * h->row, 0, (size_t)h->a.width * sizeof *x);
}

static void query_heads(const void *arguments, int64_t begin, int64_t end)
{
    const struct attention *a = arguments;
    float keys[ATTENTION_WIDTH_MAX * TILE], values[ATTENTION_WIDTH_MAX * TILE];
    float share[TILE], slope[TILE];
    for (int64_t index = begin; index < end; index++) {
        const struct head h = head_of(a, index);
        find_deltas(&h);
        if (!a->dq) continue;
        float *dq = of_head(&h, a->dq, a->queries);
        if (!a->add_q) clear_rows(&h, dq, a->queries);
        for (int64_t first = 0; first < a->keys; first += TILE) {
            turn(keys, h.k, &h, first, tile_count(&h, first));
            turn(values, h.v, &h, first, tile_count(&h, first));
            for (int64_t i = 0; i < a->queries; i++) {
                if (first >= seen_by(&h, i)) continue;
                slopes(&h, i, first, keys, values, share, slope);
                for (int j = 0; j < tile_count(&h, first); j++)
                    add_scaled(dq + i * h.row, h.k + (first + j) * h.row, slope[j], a->width);
            }
        }
    }
}

void ISA(attention_back_queries)(struct device *d, const struct attention *a)
{
    spread(d, a->batch * a->heads, 1, query_heads, a);
}

/* What the keys and the values of a tile get of all queries */
static void tile_back(const struct head *h, int64_t first)
{
    const struct attention *a = &h->a;
    float keys[ATTENTION_WIDTH_MAX * TILE], values[ATTENTION_WIDTH_MAX * TILE];
    float share[TILE], slope[TILE];
    const float *dy = a->dy + (h->q - a->q);
    float *dk = a->dk ? of_head(h, a->dk, a->keys) : NULL;
    float *dv = a->dv ? of_head(h, a->dv, a->keys) : NULL;
    turn(keys, h->k, h, first, tile_count(h, first));
    turn(values, h->v, h, first, tile_count(h, first));
    for (int64_t i = 0; i < a->queries; i++) {
        if (first >= seen_by(h, i)) continue;
        slopes(h, i, first, keys, values, share, slope);
        for (int j = 0; j < tile_count(h, first); j++) {
            if (dk) add_scaled(dk + (first + j) * h->row, h->q + i * h->row, slope[j], a->width);
            if (dv) add_scaled(dv + (first + j) * h->row, dy + i * h->row, share[j], a->width);
        }
    }
}

static void key_heads(const void *arguments, int64_t begin, int64_t end)
{
    const struct attention *a = arguments;
    for (int64_t index = begin; index < end; index++) {
        const struct head h = head_of(a, index);
        if (a->dk && !a->add_k) clear_rows(&h, of_head(&h, a->dk, a->keys), a->keys);
        if (a->dv && !a->add_v) clear_rows(&h, of_head(&h, a->dv, a->keys), a->keys);
        for (int64_t first = 0; first < a->keys; first += TILE) tile_back(&h, first);
    }
}

void ISA(attention_back_keys)(struct device *d, const struct attention *a)
{
    if (a->dk || a->dv) spread(d, a->batch * a->heads, 1, key_heads, a);
}
