/* The walk over spans, pages and rows; arithmetic is in attention_<isa>.c. Sub-blocks of rows keep
 * their scores, probabilities and output in the first-level cache; a span's pages stay in the
 * second level while all sub-blocks pass over it. */
#include "core/kernels/attention_block.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/kernels/math_scalar.h"

enum {
    SUB_ROWS_MAX = 32, /* of any variant */
    SPAN_PAGES = ATTENTION_SPAN_TOKENS / PANEL_COLUMNS,
    STATE_TAIL = 16, /* floats behind a state's output: maximum, sum, padding */
};

static const float log2_e = 1.44269504f;

/* A row's state: output[dim], maximum, sum. */
static size_t state_stride(int head_dim) {
    return (size_t)attention_page_dim(head_dim) + STATE_TAIL;
}

size_t attention_block_state_bytes(int head_dim, int row_count) {
    return state_stride(head_dim) * (size_t)row_count * sizeof(float);
}

int attention_block_positions(int group) {
    return group < ATTENTION_BLOCK_ROWS ? ATTENTION_BLOCK_ROWS / group : 1;
}

/* The parts of a worker's scratch, each 64-byte aligned. */
struct scratch {
    char *queries; /* [rows][dim] in unit format */
    size_t query_stride;
    float *merged;        /* [rows] states */
    float *span;          /* [sub rows] states */
    float *scores;        /* [sub rows][64] */
    float *probabilities; /* [sub rows][64], unit format */
    float *row_max;       /* [sub rows] */
    float *row_sum;       /* [sub rows][SOFTMAX_LANES] */
    float *factors;       /* [sub rows] */
    uint16_t *expanded;   /* [SPAN_PAGES][2] panels of int8 pages; nothing for bf16 pages */
    size_t expanded_stride;
    const uint16_t *keys[SPAN_PAGES]; /* the span's panels, found when first needed */
    const uint16_t *values[SPAN_PAGES];
};

static size_t take(size_t *used, size_t bytes) {
    size_t at = *used;
    *used += (bytes + 63) / 64 * 64;
    return at;
}

static size_t lay_out(enum attention_page_type type, int head_dim, int group, char *memory,
                      struct scratch *scratch) {
    int row_count = attention_block_positions(group) * group;
    size_t used = 0, dim = (size_t)attention_page_dim(head_dim);
    size_t sub = SUB_ROWS_MAX * sizeof(float);
    scratch->query_stride = dim * sizeof(float);
    scratch->queries = memory + take(&used, (size_t)row_count * scratch->query_stride);
    scratch->merged =
        (void *)(memory + take(&used, attention_block_state_bytes(head_dim, row_count)));
    scratch->span =
        (void *)(memory + take(&used, attention_block_state_bytes(head_dim, SUB_ROWS_MAX)));
    scratch->scores = (void *)(memory + take(&used, sub * PANEL_COLUMNS));
    scratch->probabilities = (void *)(memory + take(&used, sub * PANEL_COLUMNS));
    scratch->row_max = (void *)(memory + take(&used, sub));
    scratch->row_sum = (void *)(memory + take(&used, sub * SOFTMAX_LANES));
    scratch->factors = (void *)(memory + take(&used, sub));
    size_t page_bytes =
        type == ATTENTION_PAGE_INT8 ? attention_page_bytes(ATTENTION_PAGE_BF16, head_dim) : 0;
    scratch->expanded_stride = page_bytes / 2 / sizeof(uint16_t);
    scratch->expanded = (void *)(memory + take(&used, SPAN_PAGES * page_bytes));
    return used;
}

size_t attention_block_scratch_bytes(enum attention_page_type type, int head_dim, int group) {
    static char none[1];
    struct scratch scratch;
    return lay_out(type, head_dim, group, none, &scratch);
}

/* Rows [first, end) of a block. */
struct rows {
    int first;
    int end;
};

static int clamp(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}

/* First key that the position sees. */
static int first_key(const struct attention_view *view, int position) {
    return view->window > 0 && position >= view->window ? position - view->window + 1 : 0;
}

/* Those of `rows` that see a key of the page: positions ascend, so they are neighbours. */
static struct rows rows_seeing(const struct attention_view *view,
                               const struct attention_queries *queries, struct rows rows,
                               int page_first) {
    int page_last = page_first + PANEL_COLUMNS - 1;
    int first = page_first - queries->position_first;
    int end = queries->position_count;
    if (view->window > 0 && page_last < queries->position_first + end - view->window)
        end = page_last + view->window - queries->position_first;
    first = clamp(first, 0, queries->position_count) * view->group;
    end = clamp(end, 0, queries->position_count) * view->group;
    struct rows seeing = {clamp(first, rows.first, rows.end), clamp(end, rows.first, rows.end)};
    return seeing;
}

/* Scores of keys outside [first key, position] become -inf. */
static void mask_row(const struct attention_view *view, int position, int page_first,
                     float *scores) {
    int from = clamp(first_key(view, position) - page_first, 0, PANEL_COLUMNS);
    int end = clamp(position - page_first + 1, 0, PANEL_COLUMNS);
    for (int i = 0; i < from; i++)
        scores[i] = -INFINITY;
    for (int i = end; i < PANEL_COLUMNS; i++)
        scores[i] = -INFINITY;
}

static void mask_rows(const struct attention_view *view, const struct attention_queries *queries,
                      struct rows rows, int page_first, float *scores) {
    int position_end = queries->position_first + (rows.end - 1) / view->group;
    bool whole =
        page_first + PANEL_COLUMNS - 1 <= queries->position_first + rows.first / view->group;
    if (whole && first_key(view, position_end) <= page_first)
        return;
    for (int r = rows.first; r < rows.end; r++)
        mask_row(view, queries->position_first + r / view->group, page_first,
                 scores + (r - rows.first) * PANEL_COLUMNS);
}

static int sub_rows(const struct attention_view *view) {
    int rows = view->kernels->attention->sub_rows;
    assert(rows > 0 && rows <= SUB_ROWS_MAX);
    return rows;
}

/* Where panel `number` of the span, 2 a page, is expanded. A single sub-block uses each panel once,
 * so that one place, always the same, keeps it in the first-level cache. */
static uint16_t *expansion_place(const struct attention_view *view,
                                 const struct attention_queries *queries,
                                 const struct scratch *scratch, int number) {
    bool reused = queries->position_count * view->group > sub_rows(view);
    return scratch->expanded + (reused ? (size_t)number : 0) * scratch->expanded_stride;
}

static const uint16_t *find_keys(const struct attention_view *view,
                                 const struct attention_queries *queries, struct scratch *scratch,
                                 int page) {
    int place = page % SPAN_PAGES;
    if (scratch->keys[place] == NULL)
        scratch->keys[place] =
            attention_page_keys(view->kernels->attention, view->page_type, view->head_dim,
                                view->base + (size_t)view->pages[page] * view->page_stride,
                                expansion_place(view, queries, scratch, 2 * place));
    return scratch->keys[place];
}

static const uint16_t *find_values(const struct attention_view *view,
                                   const struct attention_queries *queries, struct scratch *scratch,
                                   int page) {
    int place = page % SPAN_PAGES;
    if (scratch->values[place] == NULL)
        scratch->values[place] =
            attention_page_values(view->kernels->attention, view->page_type, view->head_dim,
                                  view->base + (size_t)view->pages[page] * view->page_stride,
                                  expansion_place(view, queries, scratch, 2 * place + 1));
    return scratch->values[place];
}

static void forget_panels(struct scratch *scratch) {
    memset(scratch->keys, 0, sizeof scratch->keys);
    memset(scratch->values, 0, sizeof scratch->values);
}

/* Few rows use a page faster than memory delivers it, and where the next one lies only the page
 * table knows: a quarter of it is asked for before each step of this one, so that the loads in
 * flight never outnumber what the core can track. Many rows come back to a span's pages in cache.
 */
enum { PREFETCH_QUARTERS = 4 };

static void prefetch_quarter(const struct attention_view *view,
                             const struct attention_queries *queries, int page, size_t quarter) {
    int last = (queries->position_first + queries->position_count - 1) / PANEL_COLUMNS;
    if (page > last || queries->position_count * view->group > sub_rows(view))
        return;
    size_t count = attention_page_bytes(view->page_type, view->head_dim) / PREFETCH_QUARTERS;
    const char *bytes =
        view->base + (size_t)view->pages[page] * view->page_stride + quarter * count;
    for (size_t at = 0; at < count; at += 64)
        __builtin_prefetch(bytes + at, 0, 2);
}

/* Rows of a sub-block at one page. `sub` is the whole sub-block, `rows` those that see the page. */
static void attend_page(const struct attention_view *view, const struct attention_queries *queries,
                        struct scratch *scratch, struct rows sub, struct rows rows, int page,
                        float *states) {
    const struct attention_kernels *kernels = view->kernels->attention;
    int dim = attention_page_dim(view->head_dim), count = rows.end - rows.first;
    size_t stride = state_stride(view->head_dim), skip = (size_t)(rows.first - sub.first);
    prefetch_quarter(view, queries, page + 1, 0);
    const uint16_t *keys = find_keys(view, queries, scratch, page);
    prefetch_quarter(view, queries, page + 1, 1);
    kernels->multiply_pairs(scratch->queries + (size_t)rows.first * scratch->query_stride,
                            scratch->query_stride, count, keys, PANEL_COLUMNS, dim, scratch->scores,
                            PANEL_COLUMNS, PANEL_COLUMNS, false);
    prefetch_quarter(view, queries, page + 1, 2);
    if (view->softcap > 0) {
        view->kernels->elementwise->softcap(scratch->scores, count * PANEL_COLUMNS, view->softcap);
        kernels->scale_row(scratch->scores, count * PANEL_COLUMNS, log2_e);
    }
    mask_rows(view, queries, rows, page * PANEL_COLUMNS, scratch->scores);
    kernels->softmax_page(scratch->scores, count, scratch->probabilities, scratch->row_max + skip,
                          scratch->row_sum + skip * SOFTMAX_LANES, scratch->factors);
    prefetch_quarter(view, queries, page + 1, 3);
    const uint16_t *values = find_values(view, queries, scratch, page);
    float *out = states + skip * stride;
    for (int r = 0; r < count; r++)
        if (scratch->factors[r] != 1)
            kernels->scale_row(out + (size_t)r * stride, dim, scratch->factors[r]);
    size_t row_bytes =
        PANEL_COLUMNS * (kernels->unit == UNIT_BF16 ? sizeof(uint16_t) : sizeof(float));
    kernels->multiply_pairs(scratch->probabilities, row_bytes, count, values, dim, PANEL_COLUMNS,
                            out, stride, dim, true);
}

/* States of the sub-block after all pages of the span, from empty ones. */
static void attend_span(const struct attention_view *view, const struct attention_queries *queries,
                        struct scratch *scratch, struct rows sub, int span, float *states) {
    int count = sub.end - sub.first, dim = attention_page_dim(view->head_dim);
    size_t stride = state_stride(view->head_dim);
    memset(states, 0, attention_block_state_bytes(view->head_dim, count));
    memset(scratch->row_sum, 0, (size_t)count * SOFTMAX_LANES * sizeof(float));
    for (int r = 0; r < count; r++)
        scratch->row_max[r] = -INFINITY;
    for (int page = span * SPAN_PAGES; page < (span + 1) * SPAN_PAGES; page++) {
        struct rows rows = rows_seeing(view, queries, sub, page * PANEL_COLUMNS);
        if (rows.first < rows.end)
            attend_page(view, queries, scratch, sub, rows, page, states);
    }
    for (int r = 0; r < count; r++) {
        float sum = 0;
        for (int i = 0; i < SOFTMAX_LANES; i++)
            sum += scratch->row_sum[r * SOFTMAX_LANES + i];
        float *tail = states + (size_t)r * stride + dim;
        tail[0] = scratch->row_max[r];
        tail[1] = sum;
    }
}

/* into += from, both relative to their own maximum; an empty state has sum 0. */
static void merge_row(const struct attention_kernels *kernels, float *into, const float *from,
                      int dim) {
    if (from[dim + 1] == 0)
        return;
    if (into[dim + 1] == 0) {
        memcpy(into, from, ((size_t)dim + 2) * sizeof(float));
        return;
    }
    float most = into[dim] > from[dim] ? into[dim] : from[dim];
    float into_factor = math_exp2(into[dim] - most), from_factor = math_exp2(from[dim] - most);
    kernels->blend_row(into, into_factor, from, from_factor, dim);
    into[dim] = most;
    into[dim + 1] = into[dim + 1] * into_factor + from[dim + 1] * from_factor;
}

/* Queries to unit format, scaled so that scores come out in base 2 (unless a softcap comes
 * between). */
static void convert_queries(const struct attention_view *view,
                            const struct attention_queries *queries, const struct scratch *scratch,
                            int row_first) {
    const struct attention_kernels *kernels = view->kernels->attention;
    float factor = view->softcap > 0 ? view->scale : view->scale * log2_e;
    int dim = attention_page_dim(view->head_dim), rows = queries->position_count * view->group;
    char *out = scratch->queries + (size_t)row_first * scratch->query_stride;
    if (dim != view->head_dim)
        memset(out, 0, (size_t)rows * scratch->query_stride);
    for (int r = 0; r < rows; r++)
        kernels->convert_query(queries->in + (size_t)(r / view->group) * queries->in_stride +
                                   (size_t)(r % view->group) * (size_t)view->head_dim,
                               view->head_dim, factor, out + (size_t)r * scratch->query_stride);
}

/* Adding 0 turns -0 into 0: what masked keys contributed cannot even show in a sign. */
static void write_outputs(const struct attention_view *view,
                          const struct attention_queries *queries, const float *states) {
    size_t stride = state_stride(view->head_dim);
    int dim = attention_page_dim(view->head_dim), rows = queries->position_count * view->group;
    for (int r = 0; r < rows; r++, states += stride) {
        float *out = queries->out + (size_t)(r / view->group) * queries->out_stride +
                     (size_t)(r % view->group) * (size_t)view->head_dim;
        float factor = 1.0f / states[dim + 1];
        for (int i = 0; i < view->head_dim; i++)
            out[i] = states[i] * factor + 0.0f;
    }
}

struct attention_spans attention_block_spans(const struct attention_view *view,
                                             const struct attention_queries *queries) {
    int last = (queries->position_first + queries->position_count - 1) / ATTENTION_SPAN_TOKENS;
    int first = first_key(view, queries->position_first) / ATTENTION_SPAN_TOKENS;
    return (struct attention_spans){first, last - first + 1};
}

static struct rows sub_block(const struct attention_view *view, int first, int row_count) {
    return (struct rows){first, clamp(first + sub_rows(view), 0, row_count)};
}

/* Spans [first, end) of the converted queries, merged into scratch->merged. */
static void walk_spans(const struct attention_view *view, const struct attention_queries *queries,
                       struct scratch *scratch, int span_first, int span_end) {
    int row_count = queries->position_count * view->group;
    int dim = attention_page_dim(view->head_dim);
    size_t stride = state_stride(view->head_dim);
    for (int span = span_first; span < span_end; span++) {
        forget_panels(scratch);
        for (int first = 0; first < row_count; first += sub_rows(view)) {
            struct rows sub = sub_block(view, first, row_count);
            attend_span(view, queries, scratch, sub, span, scratch->span);
            for (int r = sub.first; r < sub.end; r++)
                merge_row(view->kernels->attention, scratch->merged + (size_t)r * stride,
                          scratch->span + (size_t)(r - first) * stride, dim);
        }
    }
}

/* `states` NULL: from empty ones at the first span that is seen. */
static void run_block(const struct attention_view *view, const struct attention_queries *queries,
                      int span_first, const float *states, void *memory) {
    struct scratch scratch;
    struct attention_spans spans = attention_block_spans(view, queries);
    size_t bytes =
        attention_block_state_bytes(view->head_dim, queries->position_count * view->group);
    assert(queries->position_count <= attention_block_positions(view->group));
    lay_out(view->page_type, view->head_dim, view->group, memory, &scratch);
    convert_queries(view, queries, &scratch, 0);
    if (states == NULL)
        memset(scratch.merged, 0, bytes);
    else
        memcpy(scratch.merged, states, bytes);
    walk_spans(view, queries, &scratch, span_first, spans.first + spans.count);
    write_outputs(view, queries, scratch.merged);
}

void attention_block_run(const struct attention_view *view, const struct attention_queries *queries,
                         void *scratch) {
    run_block(view, queries, attention_block_spans(view, queries).first, NULL, scratch);
}

void attention_block_continue(const struct attention_view *view,
                              const struct attention_queries *queries, int span_first,
                              const float *states, void *scratch) {
    run_block(view, queries, span_first, states, scratch);
}

/* All rows see all keys, as those of one block right behind the spans would. */
void attention_block_run_shared(const struct attention_view *view,
                                const struct attention_shared *shared, void *memory) {
    struct scratch scratch;
    struct attention_queries all = {.position_first = shared->span_count * ATTENTION_SPAN_TOKENS};
    assert(view->window == 0);
    lay_out(view->page_type, view->head_dim, view->group, memory, &scratch);
    for (int i = 0; i < shared->block_count; i++) {
        assert(shared->blocks[i].position_first >= all.position_first);
        convert_queries(view, &shared->blocks[i], &scratch, all.position_count * view->group);
        all.position_count += shared->blocks[i].position_count;
    }
    assert(all.position_count <= attention_block_positions(view->group));
    memset(scratch.merged, 0,
           attention_block_state_bytes(view->head_dim, all.position_count * view->group));
    walk_spans(view, &all, &scratch, 0, shared->span_count);
    const float *next = scratch.merged;
    for (int i = 0; i < shared->block_count; i++) {
        size_t bytes = attention_block_state_bytes(view->head_dim,
                                                   shared->blocks[i].position_count * view->group);
        memcpy(shared->states[i], next, bytes);
        next += bytes / sizeof(float);
    }
}

void attention_block_run_span(const struct attention_view *view,
                              const struct attention_queries *queries, int span, float *states,
                              void *memory) {
    struct scratch scratch;
    int row_count = queries->position_count * view->group;
    size_t stride = state_stride(view->head_dim);
    lay_out(view->page_type, view->head_dim, view->group, memory, &scratch);
    convert_queries(view, queries, &scratch, 0);
    forget_panels(&scratch);
    for (int first = 0; first < row_count; first += sub_rows(view))
        attend_span(view, queries, &scratch, sub_block(view, first, row_count), span,
                    states + (size_t)first * stride);
}

void attention_block_merge(const struct attention_view *view,
                           const struct attention_queries *queries, float *states) {
    struct attention_spans spans = attention_block_spans(view, queries);
    int row_count = queries->position_count * view->group;
    int dim = attention_page_dim(view->head_dim);
    size_t stride = state_stride(view->head_dim);
    for (int span = 1; span < spans.count; span++)
        for (int r = 0; r < row_count; r++)
            merge_row(view->kernels->attention, states + (size_t)r * stride,
                      states + ((size_t)span * (size_t)row_count + (size_t)r) * stride, dim);
    write_outputs(view, queries, states);
}
