/* attention.cu - softmax(q k') v of each head: one thread per query, in backward per query or key.
 * The matrix of queries and keys never exists. */
#include "kernels/cuda/launch.cuh"

struct attention_place {
    struct attention a;

    __device__ int64_t row(int64_t rows, int64_t index, int64_t i) const
    {
        const int64_t example = quotient_of(index, a.heads), head = index - example * a.heads;
        return ((example * rows + i) * a.heads + head) * a.width;
    }

    __device__ float dot(const float *x, const float *y) const
    {
        float sum = 0;
        for (int64_t c = 0; c < a.width; c++) sum += x[c] * y[c];
        return sum;
    }

    __device__ bool sees(int64_t index, int64_t query, int64_t key) const
    {
        if (a.is_causal && key > query) return false;
        return !a.mask || a.mask[quotient_of(index, a.heads) * a.keys + key] > 0.0f;
    }

    __device__ float share(int64_t index, int64_t query, int64_t key) const
    {
        const float score = a.scale * dot(a.q + row(a.queries, index, query), a.k + row(a.keys, index, key));
        return mathf_exp(score - a.log_sums[index * a.queries + query]);
    }

    /* The gradient of the score */
    __device__ float slope(int64_t index, int64_t query, int64_t key, float share) const
    {
        const float dshare = dot(a.dy + row(a.queries, index, query), a.v + row(a.keys, index, key));
        return share * (dshare - a.deltas[index * a.queries + query]) * a.scale;
    }

    __device__ void add(float *to, const float *x, float factor) const
    {
        for (int64_t c = 0; c < a.width; c++) to[c] += factor * x[c];
    }

    __device__ void begin(float *to, bool is_added) const
    {
        for (int64_t c = 0; c < a.width && !is_added; c++) to[c] = 0;
    }
};

struct attention_body : attention_place {
    __device__ void operator()(int64_t at) const
    {
        const int64_t index = quotient_of(at, a.queries), i = at - index * a.queries;
        const float *q = a.q + row(a.queries, index, i);
        float *y = a.y + row(a.queries, index, i), top = -INFINITY, sum = 0;
        begin(y, false);
        for (int64_t j = 0; j < a.keys; j++) {
            if (!sees(index, i, j)) continue;
            const float score = a.scale * dot(q, a.k + row(a.keys, index, j));
            const float above = score > top ? score : top, shrink = sum > 0.0f ? mathf_exp(top - above) : 0.0f;
            const float part = mathf_exp(score - above);
            const float *v = a.v + row(a.keys, index, j);
            sum = sum * shrink + part;
            top = above;
            for (int64_t c = 0; c < a.width; c++) y[c] = y[c] * shrink + part * v[c];
        }
        for (int64_t c = 0; c < a.width; c++) y[c] = sum > 0.0f ? y[c] / sum : 0.0f;
        a.log_sums[at] = sum > 0.0f ? top + mathf_log(sum) : INFINITY;
    }
};

void cuda_attention(struct device *d, const struct attention *a)
{
    each(d, "attention", attention_body{{*a}}, a->batch * a->heads * a->queries);
}

struct attention_queries_body : attention_place {
    __device__ void operator()(int64_t at) const
    {
        const int64_t index = quotient_of(at, a.queries), i = at - index * a.queries;
        const int64_t own = row(a.queries, index, i);
        a.deltas[at] = dot(a.y + own, a.dy + own);
        if (!a.dq) return;
        begin(a.dq + own, a.add_q);
        for (int64_t j = 0; j < a.keys; j++)
            if (sees(index, i, j))
                add(a.dq + own, a.k + row(a.keys, index, j), slope(index, i, j, share(index, i, j)));
    }
};

void cuda_attention_back_queries(struct device *d, const struct attention *a)
{
    each(d, "attention_back_queries", attention_queries_body{{*a}}, a->batch * a->heads * a->queries);
}

struct attention_keys_body : attention_place {
    __device__ void operator()(int64_t at) const
    {
        const int64_t index = quotient_of(at, a.keys), j = at - index * a.keys, own = row(a.keys, index, j);
        if (a.dk) begin(a.dk + own, a.add_k);
        if (a.dv) begin(a.dv + own, a.add_v);
        for (int64_t i = 0; i < a.queries; i++) {
            if (!sees(index, i, j)) continue;
            const float part = share(index, i, j);
            const int64_t query = row(a.queries, index, i);
            if (a.dk) add(a.dk + own, a.q + query, slope(index, i, j, part));
            if (a.dv) add(a.dv + own, a.dy + query, part);
        }
    }
};

void cuda_attention_back_keys(struct device *d, const struct attention *a)
{
    if (a->dk || a->dv) each(d, "attention_back_keys", attention_keys_body{{*a}}, a->batch * a->heads * a->keys);
}
