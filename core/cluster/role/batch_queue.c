/* batch_queue.c - see batch_queue.h. */
#include "core/cluster/role/batch_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t BATCHES_MAX = UINT64_C(1) << 60;

enum {
    PLANS_BEHIND_MAX = 2, /* a plan is given back when others are this many plans ahead */
    BACK_MANY = 1024,     /* if more ranges are in `back`, they go first, and long plans are given
                             back */
};

bool batch_queue_open(struct batch_queue *q, int workers, int ahead)
{
    const size_t all = (size_t)workers;
    *q = (struct batch_queue){.workers = workers, .ahead = ahead};
    q->back_capacity = QUEUE_NUMBERS_MAX / 2 + workers * (PLAN_BATCHES_MAX + 1);
    q->back = calloc((size_t)q->back_capacity, sizeof *q->back);
    q->plans = calloc(all, sizeof *q->plans);
    if (q->back && q->plans) return true;
    batch_queue_free(q);
    return false;
}

void batch_queue_hand_out_stretches(struct batch_queue *q, int stretch)
{
    q->stretch = stretch;
    q->ahead = 2 * stretch;
}

void batch_queue_free(struct batch_queue *q)
{
    free(q->back);
    free(q->plans);
    *q = (struct batch_queue){0};
}

static uint64_t size_of(const struct batch_range *r)
{
    return r->end - r->begin;
}

static uint64_t planned(const struct batch_plan *plan)
{
    uint64_t batches = 0;
    for (int i = 0; i < plan->count; i++) batches += size_of(&plan->at[i]);
    return batches;
}

/* Whether the committed batch is the first one of `at`. */
static bool keeps_first(const struct batch_plan *plan)
{
    return plan->is_committed && !plan->again;
}

/* ---- what is open ---- */

uint64_t batch_queue_open_batches(const struct batch_queue *q)
{
    uint64_t batches = 0;
    for (int i = 0; i < q->back_count; i++) batches += size_of(&q->back[i]);
    for (int w = 0; w < q->workers; w++) batches += planned(&q->plans[w]);
    return batches;
}

uint64_t batch_queue_oldest(const struct batch_queue *q)
{
    uint64_t oldest = q->back_count ? q->back[0].begin : q->front;
    for (int w = 0; w < q->workers; w++)
        for (int i = 0; i < q->plans[w].count; i++)
            if (q->plans[w].at[i].begin < oldest) oldest = q->plans[w].at[i].begin;
    return oldest;
}

static bool ends_with(const struct batch_range *r, int count, uint64_t *end)
{
    for (int i = 0; i < count; i++) {
        if (r[i].end != *end) continue;
        *end = r[i].begin;
        return true;
    }
    return false;
}

static bool is_open_before(const struct batch_queue *q, uint64_t *end)
{
    if (ends_with(q->back, q->back_count, end)) return true;
    for (int w = 0; w < q->workers; w++)
        if (ends_with(q->plans[w].at, q->plans[w].count, end)) return true;
    return false;
}

uint64_t batch_queue_reached(const struct batch_queue *q)
{
    uint64_t end = q->front;
    while (is_open_before(q, &end)) continue; /* ends: no range is empty, and all lie apart */
    return end;
}

/* Rows of these batches from `begin` to `end`. */
static uint64_t overlap(const struct batch_range *r, uint64_t batch, uint64_t begin, uint64_t end)
{
    const uint64_t from = r->begin * batch, to = r->end * batch;
    if (from > begin) begin = from;
    if (to < end) end = to;
    return end > begin ? end - begin : 0;
}

uint64_t batch_queue_used(const struct batch_queue *q, uint64_t batch, uint64_t begin, uint64_t end)
{
    const struct batch_range all = {0, q->front};
    uint64_t rows = overlap(&all, batch, begin, end);
    for (int i = 0; i < q->back_count; i++) rows -= overlap(&q->back[i], batch, begin, end);
    for (int w = 0; w < q->workers; w++)
        for (int i = 0; i < q->plans[w].count; i++)
            rows -= overlap(&q->plans[w].at[i], batch, begin, end);
    return rows;
}

/* ---- back ---- */

static void remove_back(struct batch_queue *q, int place)
{
    q->back_count--;
    memmove(&q->back[place], &q->back[place + 1],
            (size_t)(q->back_count - place) * sizeof *q->back);
}

/* There is always room: open ranges have at least one batch each, and their number is limited. */
static void add_back(struct batch_queue *q, struct batch_range r)
{
    int place = q->back_count;
    while (place > 0 && q->back[place - 1].begin > r.begin) place--;
    if (place > 0 && q->back[place - 1].end == r.begin) {
        q->back[--place].end = r.end;
    } else {
        assert(q->back_count < q->back_capacity);
        memmove(&q->back[place + 1], &q->back[place],
                (size_t)(q->back_count - place) * sizeof *q->back);
        q->back[place] = r;
        q->back_count++;
    }
    if (place + 1 == q->back_count || q->back[place + 1].begin != q->back[place].end) return;
    q->back[place].end = q->back[place + 1].end;
    remove_back(q, place + 1);
}

/* ---- plans ---- */

/* Cuts off the last batches of a plan, at most `most`, but never the committed one. */
static struct batch_range cut_off(struct batch_plan *plan, uint64_t most)
{
    struct batch_range *last = &plan->at[plan->count - 1];
    uint64_t count = size_of(last);
    if (plan->count == 1 && keeps_first(plan)) count--;
    if (count > most) count = most;
    const struct batch_range r = {last->end - count, last->end};
    last->end = r.begin;
    if (last->begin == last->end) plan->count--;
    if (count) plan->is_told = false;
    return r;
}

void batch_queue_put_back(struct batch_queue *q, uint64_t batch)
{
    add_back(q, (struct batch_range){batch, batch + 1});
}

void batch_queue_give_back(struct batch_queue *q, int worker)
{
    struct batch_plan *plan = &q->plans[worker];
    for (uint64_t left = planned(plan) - keeps_first(plan); left > 0;) {
        const struct batch_range r = cut_off(plan, left);
        left -= size_of(&r);
        add_back(q, r);
    }
}

void batch_queue_lose(struct batch_queue *q, int worker)
{
    struct batch_plan *plan = &q->plans[worker];
    if (plan->count) plan->lost = plan->at[0].begin + 1;
    plan->again = 0;
    batch_queue_give_back(q, worker);
}

static void append(struct batch_plan *plan, struct batch_range r)
{
    struct batch_range *last = plan->count ? &plan->at[plan->count - 1] : NULL;
    plan->is_told = false;
    if (last && last->end == r.begin)
        last->end = r.end;
    else
        plan->at[plan->count++] = r;
}

void batch_queue_set_end(struct batch_queue *q, uint64_t end)
{
    if (q->has_end) return;
    q->has_end = true;
    q->end = end;
    for (int w = 0; w < q->workers; w++) batch_queue_give_back(q, w);
}

bool batch_queue_has_rest(const struct batch_queue *q)
{
    return q->has_end && batch_queue_oldest(q) < q->end;
}

/* Gives back the plan of a worker that makes no progress, so that others compute these batches
 * soon. */
static void give_up_old(struct batch_queue *q, int worker)
{
    const struct batch_plan *plan = &q->plans[worker];
    const uint64_t behind = (uint64_t)PLANS_BEHIND_MAX * (uint64_t)q->workers * (uint64_t)q->ahead;
    if (plan->count && plan->at[0].begin + behind < q->front) batch_queue_give_back(q, worker);
}

/* How many batches from this one on are handed out at once. */
static uint64_t most_from(const struct batch_queue *q, uint64_t batch, uint64_t left)
{
    const uint64_t stretch = (uint64_t)q->stretch;
    return stretch ? stretch - batch % stretch : left;
}

/* The next open batches, oldest first: at most `left`, or up to the end of a stretch. */
static struct batch_range next_free(struct batch_queue *q, uint64_t left, uint64_t room)
{
    struct batch_range r = {q->front, q->front};
    const uint64_t begin = q->back_count ? q->back[0].begin : q->front;
    uint64_t most = most_from(q, begin, left);
    if (q->has_end && begin >= q->end) return r;
    if (q->has_end && most > q->end - begin) most = q->end - begin;
    if (q->back_count) {
        struct batch_range *first = &q->back[0];
        const uint64_t count = size_of(first) < most ? size_of(first) : most;
        r = (struct batch_range){first->begin, first->begin + count};
        first->begin += count;
        if (first->begin == first->end) remove_back(q, 0);
        return r;
    }
    r.end += most < room ? most : room;
    q->front = r.end;
    return r;
}

/* All batches are planned already: takes the second half of the longest plan. */
static struct batch_range take_over(struct batch_queue *q)
{
    struct batch_plan *longest = NULL;
    uint64_t most = 0;
    for (int w = 0; w < q->workers; w++) {
        const uint64_t free = planned(&q->plans[w]) - keeps_first(&q->plans[w]);
        if (free > most) longest = &q->plans[w];
        if (free > most) most = free;
    }
    return longest ? cut_off(longest, (most + 1) / 2) : (struct batch_range){0};
}

static int find(const struct batch_range *at, int count, uint64_t batch)
{
    for (int i = 0; i < count; i++)
        if (at[i].begin <= batch && batch < at[i].end) return i;
    return -1;
}

/* Takes an open batch, if need be out of another worker's plan. false: that one has begun with it,
 * or it is used. */
static bool take_back(struct batch_queue *q, int worker, uint64_t batch)
{
    for (int w = 0; w < q->workers; w++) {
        if (w == worker) continue;
        const struct batch_plan *plan = &q->plans[w];
        const bool is_begun = keeps_first(plan) && plan->at[0].begin == batch;
        if (find(plan->at, plan->count, batch) >= 0 && !is_begun) batch_queue_give_back(q, w);
    }
    const int place = find(q->back, q->back_count, batch);
    if (place < 0) return false;
    const struct batch_range r = q->back[place];
    remove_back(q, place);
    if (r.begin < batch) add_back(q, (struct batch_range){r.begin, batch});
    if (batch + 1 < r.end) add_back(q, (struct batch_range){batch + 1, r.end});
    return true;
}

static void reclaim_batch(struct batch_queue *q, int worker, uint64_t batch)
{
    struct batch_plan *plan = &q->plans[worker];
    batch_queue_give_back(q, worker);
    plan->lost = plan->again = 0;
    plan->is_told = false;
    if (take_back(q, worker, batch))
        append(plan, (struct batch_range){batch, batch + 1});
    else
        plan->again = batch + 1;
}

void batch_queue_reclaim(struct batch_queue *q, int worker)
{
    struct batch_plan *plan = &q->plans[worker];
    const uint64_t any = plan->last ? plan->last : q->front;
    reclaim_batch(q, worker, (plan->lost ? plan->lost : any ? any : 1) - 1);
}

/* Moves the front behind this batch: all up to it can be planned. */
static void reach(struct batch_queue *q, uint64_t batch)
{
    if (batch < q->front) return;
    add_back(q, (struct batch_range){q->front, batch + 1});
    q->front = batch + 1;
}

void batch_queue_assign(struct batch_queue *q, int worker, uint64_t batch)
{
    struct batch_plan *plan = &q->plans[worker];
    if (batch_queue_has_next(q, worker) && keeps_first(plan)) return;
    reach(q, batch);
    reclaim_batch(q, worker, batch);
}

void batch_queue_assign_next(struct batch_queue *q, int worker, uint64_t batch)
{
    struct batch_plan *plan = &q->plans[worker];
    reach(q, batch);
    if (find(plan->at, plan->count, batch) >= 0 || !take_back(q, worker, batch)) return;
    append(plan, (struct batch_range){batch, batch + 1});
}

bool batch_queue_has_next(const struct batch_queue *q, int worker)
{
    return q->plans[worker].again || q->plans[worker].count;
}

bool batch_queue_plan(struct batch_queue *q, int worker, uint64_t room)
{
    struct batch_plan *plan = &q->plans[worker];
    const uint64_t wanted = q->stretch ? (uint64_t)q->stretch + 1 : (uint64_t)q->ahead;
    if (q->back_count > BACK_MANY && planned(plan) > PLAN_BATCHES_MAX)
        batch_queue_give_back(q, worker);
    uint64_t there = planned(plan);
    if (plan->again || there > (uint64_t)q->ahead / 2) return true;
    for (int w = 0; w < q->workers; w++)
        if (w != worker) give_up_old(q, w);
    for (; there < wanted && plan->count < PLAN_RANGES_MAX; there = planned(plan)) {
        const uint64_t front = q->front;
        const struct batch_range r = next_free(q, wanted - there, room);
        if (!size_of(&r)) break;
        room -= q->front - front;
        append(plan, r);
    }
    if (plan->count) return true;
    const struct batch_range r = take_over(q);
    if (size_of(&r)) append(plan, r);
    return plan->count > 0;
}

uint64_t batch_queue_take(struct batch_queue *q, int worker)
{
    struct batch_plan *plan = &q->plans[worker];
    assert(batch_queue_has_next(q, worker));
    const uint64_t batch = plan->again ? plan->again - 1 : plan->at[0].begin++;
    const bool is_again = plan->again != 0;
    plan->last = batch + 1;
    plan->lost = plan->again = 0;
    plan->is_committed = false;
    if (is_again) return batch;
    if (plan->at[0].begin < plan->at[0].end) return batch;
    plan->count--;
    memmove(plan->at, plan->at + 1, (size_t)plan->count * sizeof plan->at[0]);
    return batch;
}

int batch_queue_tell(struct batch_queue *q, int worker, uint64_t ret[PLAN_NUMBERS_MAX],
                     int *ret_first)
{
    struct batch_plan *plan = &q->plans[worker];
    int count = 0;
    *ret_first = plan->last == 0;
    if (plan->last) {
        ret[count++] = plan->last - 1;
        ret[count++] = plan->last;
    }
    if (plan->again) {
        ret[count++] = plan->again - 1;
        ret[count++] = plan->again;
    }
    for (int i = 0; i < plan->count; i++) {
        ret[count++] = plan->at[i].begin;
        ret[count++] = plan->at[i].end;
    }
    plan->is_told = true;
    return count;
}

/* ---- as numbers ---- */

/* front, workers; for each worker its last and its committed batch, each + 1 or 0; then begin and
 * end of each other open range. */
enum { OF_QUEUE = 2, OF_WORKER = 2 };

static int ranges_of(const struct batch_queue *q)
{
    int count = q->back_count;
    for (int w = 0; w < q->workers; w++) count += q->plans[w].count;
    return count;
}

int batch_queue_count(const struct batch_queue *q)
{
    return OF_QUEUE + OF_WORKER * q->workers + 2 * ranges_of(q);
}

static int64_t *put_range(int64_t *to, struct batch_range r)
{
    *to++ = (int64_t)r.begin;
    *to++ = (int64_t)r.end;
    return to;
}

void batch_queue_numbers(const struct batch_queue *q, int64_t *ret)
{
    int64_t *to = ret, *const end = ret + batch_queue_count(q);
    *to++ = (int64_t)q->front;
    *to++ = q->workers;
    for (int w = 0; w < q->workers; w++) {
        const struct batch_plan *plan = &q->plans[w];
        *to++ = (int64_t)plan->last;
        *to++ = keeps_first(plan) ? (int64_t)plan->at[0].begin + 1 : 0;
    }
    for (int i = 0; i < q->back_count; i++) to = put_range(to, q->back[i]);
    for (int w = 0; w < q->workers; w++) {
        struct batch_plan plan = q->plans[w];
        for (int i = 0; i < plan.count; i++) {
            if (i == 0 && keeps_first(&plan)) plan.at[0].begin++;
            to = put_range(to, plan.at[i]); /* may be empty */
        }
    }
    assert(to == end);
}

static int compare_ranges(const void *a, const void *b)
{
    const struct batch_range *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Sorts the open ranges. false: they overlap, or are beyond the front. */
static bool sort_back(struct batch_queue *q)
{
    struct batch_range *const all = q->back;
    const int count = q->back_count;
    qsort(all, (size_t)count, sizeof *all, compare_ranges);
    q->back_count = 0;
    for (int i = 0; i < count; i++) {
        const struct batch_range r = all[i];
        if (r.begin > r.end || r.end > q->front) return false;
        if (r.begin == r.end) continue;
        if (q->back_count && r.begin < all[q->back_count - 1].end) return false;
        if (q->back_count && r.begin == all[q->back_count - 1].end)
            all[q->back_count - 1].end = r.end;
        else
            all[q->back_count++] = r;
    }
    return true;
}

/* A worker continues with its committed batch; that of a worker that takes part no more is open. */
static void read_plan(struct batch_queue *q, int worker, const int64_t *numbers)
{
    const uint64_t next = (uint64_t)numbers[1];
    struct batch_plan *plan = worker < q->workers ? &q->plans[worker] : NULL;
    if (plan) plan->last = (uint64_t)numbers[0];
    if (next) q->back[q->back_count++] = (struct batch_range){next - 1, next};
}

static void keep_committed(struct batch_queue *q, int worker, uint64_t next)
{
    struct batch_plan *plan = &q->plans[worker];
    for (int i = 0; next && i < q->back_count; i++) {
        const struct batch_range r = q->back[i];
        if (next - 1 < r.begin || next > r.end) continue;
        remove_back(q, i);
        if (r.begin < next - 1) add_back(q, (struct batch_range){r.begin, next - 1});
        if (next < r.end) add_back(q, (struct batch_range){next, r.end});
        append(plan, (struct batch_range){next - 1, next});
        return;
    }
}

bool batch_queue_read(struct batch_queue *q, const int64_t *numbers, int count)
{
    if (count < OF_QUEUE || count > QUEUE_NUMBERS_MAX) return false;
    for (int i = 0; i < count; i++)
        if (numbers[i] < 0 || numbers[i] > (int64_t)BATCHES_MAX) return false;
    const int64_t workers = numbers[1], left = count - OF_QUEUE - OF_WORKER * workers;
    if (workers < 1 || left < 0 || left % 2) return false;
    const int64_t *of_workers = numbers + OF_QUEUE, *ranges = numbers + (count - left);
    q->front = (uint64_t)numbers[0];
    q->back_count = 0;
    for (int64_t w = 0; w < workers; w++) read_plan(q, (int)w, of_workers + OF_WORKER * w);
    for (int64_t i = 0; i < left; i += 2)
        q->back[q->back_count++] =
            (struct batch_range){(uint64_t)ranges[i], (uint64_t)ranges[i + 1]};
    if (!sort_back(q)) return false;
    for (int w = 0; w < q->workers && w < workers; w++)
        keep_committed(q, w, (uint64_t)of_workers[OF_WORKER * w + 1]);
    return true;
}

/* ---- for tests ---- */

static const char *check_plan(const struct batch_queue *q, const struct batch_plan *plan)
{
    if (plan->count > PLAN_RANGES_MAX) return "a plan of too many ranges";
    if (plan->is_committed && !plan->count && !plan->again)
        return "a batch is committed, and there is none";
    for (int i = 0; i < plan->count; i++)
        if (plan->at[i].begin >= plan->at[i].end || plan->at[i].end > q->front)
            return "a plan has what cannot be";
    return NULL;
}

/* No batch is open twice. */
static bool is_apart(const struct batch_queue *q, const struct batch_range *r)
{
    int found = 0;
    for (int i = 0; i < q->back_count; i++)
        found += r->begin < q->back[i].end && q->back[i].begin < r->end;
    for (int w = 0; w < q->workers; w++)
        for (int i = 0; i < q->plans[w].count; i++)
            found += r->begin < q->plans[w].at[i].end && q->plans[w].at[i].begin < r->end;
    return found == 1;
}

const char *batch_queue_check(const struct batch_queue *q)
{
    const char *wrong = NULL;
    for (int i = 0; i < q->back_count; i++) {
        if (q->back[i].begin >= q->back[i].end) return "an empty range is given back";
        if (i && q->back[i].begin <= q->back[i - 1].end) return "what is back is in no order";
        if (!is_apart(q, &q->back[i])) return "a batch is open twice";
    }
    for (int w = 0; w < q->workers && !wrong; w++) {
        wrong = check_plan(q, &q->plans[w]);
        for (int i = 0; i < q->plans[w].count && !wrong; i++)
            if (!is_apart(q, &q->plans[w].at[i])) wrong = "a batch is planned twice";
    }
    return wrong;
}
