/* Attention over pages: against sums in double, and the promise that a row's bits depend on its own
 * position only: whatever the chunking, the page numbers, the rubbish in unused pages and behind
 * the last token, and whether spans are tasks of their own or attended with other blocks. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu_features.h"
#include "core/kernels/attention_block.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/random_tensor.h"

/* One sequence of one KV head. */
struct scene {
    int head_dim, group, token_count, window;
    float softcap;
    enum attention_page_type type;
    float score_size; /* of queries: larger is a sharper softmax */
    bool rising;      /* later keys are larger: each span moves the maximum */
    float *queries;   /* [tokens][group][head_dim] */
    float *keys;      /* [tokens][head_dim] */
    float *values;    /* [tokens][head_dim] */
};

static float *random_floats(size_t count, float size, uint64_t *seed) {
    float *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = size * random_tensor_float(seed);
    return values;
}

static void fill_scene(struct scene *scene, uint64_t seed) {
    size_t tokens = (size_t)scene->token_count, dim = (size_t)scene->head_dim;
    float size = scene->score_size > 0 ? scene->score_size : 1;
    scene->queries = random_floats(tokens * (size_t)scene->group * dim, size, &seed);
    scene->keys = random_floats(tokens * dim, 1, &seed);
    scene->values = random_floats(tokens * dim, 1, &seed);
    for (size_t i = 0; scene->rising && i < tokens * dim; i++)
        scene->keys[i] *= (float)(i / dim) / 500.0f;
}

static void free_scene(struct scene *scene) {
    free(scene->queries);
    free(scene->keys);
    free(scene->values);
}

enum cut {
    CUT_NOWHERE,
    CUT_SPANS, /* every span a task of its own */
    CUT_SHARED /* positions are blocks of their own that share the spans before them */
};

/* How a scene is computed. */
struct course {
    const struct kernels *kernels;
    uint64_t seed; /* of page numbers and chunks */
    int chunk_max; /* rows of a chunk, at most; chosen at random */
    enum cut cut;
};

struct pages {
    char *bytes;
    size_t page_bytes;
    int32_t *numbers;
};

/* Pages numbered at random, all of them full of NaN. */
static struct pages make_pages(const struct scene *scene, uint64_t *seed) {
    int count = (scene->token_count + PANEL_COLUMNS - 1) / PANEL_COLUMNS;
    struct pages pages = {.page_bytes = attention_page_bytes(scene->type, scene->head_dim)};
    pages.bytes = aligned_alloc(64, pages.page_bytes * (size_t)count);
    memset(pages.bytes, 0xff, pages.page_bytes * (size_t)count);
    pages.numbers = malloc((size_t)count * sizeof *pages.numbers);
    for (int i = 0; i < count; i++) {
        int other = (int)(random_tensor_next(seed) % (uint64_t)(i + 1));
        pages.numbers[i] = pages.numbers[other];
        pages.numbers[other] = i;
    }
    return pages;
}

static void write_tokens(const struct scene *scene, const struct pages *pages, int first,
                         int count) {
    while (count > 0) {
        int slot = first % PANEL_COLUMNS;
        int now = count < PANEL_COLUMNS - slot ? count : PANEL_COLUMNS - slot;
        struct attention_page_tokens tokens = {
            .keys = scene->keys + (size_t)first * (size_t)scene->head_dim,
            .values = scene->values + (size_t)first * (size_t)scene->head_dim,
            .stride = (size_t)scene->head_dim,
            .slot_first = slot,
            .count = now};
        int32_t page = pages->numbers[first / PANEL_COLUMNS];
        attention_page_write(scene->type, scene->head_dim,
                             pages->bytes + (size_t)page * pages->page_bytes, &tokens);
        first += now, count -= now;
    }
}

static void attend_spans(const struct attention_view *view, const struct attention_queries *queries,
                         void *scratch) {
    struct attention_spans spans = attention_block_spans(view, queries);
    size_t bytes =
        attention_block_state_bytes(view->head_dim, queries->position_count * view->group);
    float *states = aligned_alloc(64, bytes * (size_t)spans.count);
    for (int i = spans.count - 1; i >= 0; i--)
        attention_block_run_span(view, queries, spans.first + i,
                                 states + (size_t)i * bytes / sizeof(float), scratch);
    attention_block_merge(view, queries, states);
    free(states);
}

/* Blocks of one and two positions by turns. */
static int cut_blocks(const struct attention_queries *queries, struct attention_queries *blocks) {
    int count = 0;
    for (int first = 0; first < queries->position_count; count++) {
        struct attention_queries *block = &blocks[count];
        *block = *queries;
        block->in += (size_t)first * queries->in_stride;
        block->out += (size_t)first * queries->out_stride;
        block->position_first += first;
        block->position_count = count % 2 > 0 && first + 2 <= queries->position_count ? 2 : 1;
        first += block->position_count;
    }
    return count;
}

static void attend_shared(const struct attention_view *view,
                          const struct attention_queries *queries, void *scratch) {
    struct attention_queries blocks[ATTENTION_BLOCK_ROWS];
    float *states[ATTENTION_BLOCK_ROWS];
    int count = cut_blocks(queries, blocks);
    for (int i = 0; i < count; i++)
        states[i] = aligned_alloc(64, attention_block_state_bytes(
                                          view->head_dim, blocks[i].position_count * view->group));
    struct attention_shared shared = {blocks, states, count,
                                      queries->position_first / ATTENTION_SPAN_TOKENS};
    attention_block_run_shared(view, &shared, scratch);
    for (int i = 0; i < count; i++) {
        attention_block_continue(view, &blocks[i], shared.span_count, states[i], scratch);
        free(states[i]);
    }
}

static void attend(const struct attention_view *view, const struct attention_queries *queries,
                   enum cut cut, void *scratch) {
    if (cut == CUT_SPANS)
        attend_spans(view, queries, scratch);
    else if (cut == CUT_SHARED && view->window == 0)
        attend_shared(view, queries, scratch);
    else
        attention_block_run(view, queries, scratch);
}

/* Writes and attends in chunks as a run of steps would; returns [tokens][group][head_dim]. */
static float *compute(const struct scene *scene, struct course course) {
    struct pages pages = make_pages(scene, &course.seed);
    size_t row = (size_t)scene->group * (size_t)scene->head_dim;
    float *out = malloc((size_t)scene->token_count * row * sizeof *out);
    void *scratch = aligned_alloc(
        64, attention_block_scratch_bytes(scene->type, scene->head_dim, scene->group));
    struct attention_view view = {.kernels = course.kernels,
                                  .page_type = scene->type,
                                  .head_dim = scene->head_dim,
                                  .group = scene->group,
                                  .window = scene->window,
                                  .scale = 1 / sqrtf((float)scene->head_dim),
                                  .softcap = scene->softcap,
                                  .base = pages.bytes,
                                  .page_stride = pages.page_bytes,
                                  .pages = pages.numbers};
    int largest = attention_block_positions(scene->group);
    int limit = course.chunk_max < largest ? course.chunk_max : largest;
    for (int first = 0; first < scene->token_count;) {
        int count = 1 + (int)(random_tensor_next(&course.seed) % (uint64_t)limit);
        if (count > scene->token_count - first)
            count = scene->token_count - first;
        write_tokens(scene, &pages, first, count);
        struct attention_queries queries = {.in = scene->queries + (size_t)first * row,
                                            .in_stride = row,
                                            .out = out + (size_t)first * row,
                                            .out_stride = row,
                                            .position_first = first,
                                            .position_count = count};
        attend(&view, &queries, course.cut, scratch);
        first += count;
    }
    free(pages.bytes);
    free(pages.numbers);
    free(scratch);
    return out;
}

/* One row in double, from the unrounded keys and values. */
static void reference_row(const struct scene *scene, int position, int head, double *out) {
    int dim = scene->head_dim;
    int first = scene->window > 0 && position >= scene->window ? position - scene->window + 1 : 0;
    const float *query = scene->queries + ((size_t)position * scene->group + head) * dim;
    double *scores = malloc((size_t)(position + 1) * sizeof *scores), most = -INFINITY, sum = 0;
    for (int key = first; key <= position; key++) {
        double score = 0;
        for (int i = 0; i < dim; i++)
            score += (double)query[i] * scene->keys[(size_t)key * dim + i];
        score /= sqrt(dim);
        if (scene->softcap > 0)
            score = scene->softcap * tanh(score / scene->softcap);
        scores[key] = score;
        most = fmax(most, score);
    }
    memset(out, 0, (size_t)dim * sizeof *out);
    for (int key = first; key <= position; key++) {
        double weight = exp(scores[key] - most);
        sum += weight;
        for (int i = 0; i < dim; i++)
            out[i] += weight * scene->values[(size_t)key * dim + i];
    }
    for (int i = 0; i < dim; i++)
        out[i] /= sum;
    free(scores);
}

/* Relative L2 distance from the double reference over some rows. */
static double distance(const struct scene *scene, const float *out) {
    double expected[512], error = 0, size = 0;
    for (int position = 0; position < scene->token_count; position += position < 70 ? 1 : 37)
        for (int head = 0; head < scene->group; head++) {
            reference_row(scene, position, head, expected);
            const float *row = out + ((size_t)position * scene->group + head) * scene->head_dim;
            for (int i = 0; i < scene->head_dim; i++) {
                error += (row[i] - expected[i]) * (row[i] - expected[i]);
                size += expected[i] * expected[i];
            }
        }
    return sqrt(error / size);
}

/* The variants of this CPU: attention's own, the element-wise one that goes with it. */
static int list_kernels(struct kernels kernels[8]) {
    struct cpu_features features = cpu_features_detect();
    int count = 0;
    for (size_t i = 0; i < kernel_variants_attention_count(); i++) {
        const struct attention_kernels *variant = kernel_variants_attention_at(i);
        features.avx512_bf16_fast = features.avx512_bf16;
        if (!variant->available(&features))
            continue;
        kernels[count] = kernels_select(&features);
        kernels[count++].attention = variant;
    }
    return count;
}

/* Mostly the rounding of keys and values; sharp scores magnify that of keys. */
static double tolerance(const struct scene *scene, const struct kernels *kernels) {
    if (scene->type == ATTENTION_PAGE_INT8)
        return 2e-2;
    return kernels->attention->unit == UNIT_BF16 || scene->score_size > 1 ? 1e-2 : 3e-3;
}

static void check_scene(struct scene scene) {
    struct kernels kernels[8];
    int count = list_kernels(kernels);
    fill_scene(&scene, 7);
    size_t bytes = (size_t)scene.token_count * scene.group * scene.head_dim * sizeof(float);
    for (int i = 0; i < count; i++) {
        float *once = compute(&scene, (struct course){&kernels[i], 1, 1000, CUT_NOWHERE});
        double off = distance(&scene, once);
        cr_expect(off < tolerance(&scene, &kernels[i]), "%s: off by %g", kernels[i].attention->name,
                  off);
        struct course others[] = {
            {&kernels[i], 2, 1, CUT_NOWHERE},   {&kernels[i], 3, 9, CUT_NOWHERE},
            {&kernels[i], 4, 1000, CUT_SPANS},  {&kernels[i], 5, 5, CUT_SPANS},
            {&kernels[i], 6, 1000, CUT_SHARED}, {&kernels[i], 7, 6, CUT_SHARED}};
        for (size_t j = 0; j < sizeof others / sizeof others[0]; j++) {
            float *again = compute(&scene, others[j]);
            cr_expect(memcmp(once, again, bytes) == 0, "%s: course %zu differs",
                      kernels[i].attention->name, j);
            free(again);
        }
        free(once);
    }
    free_scene(&scene);
}

Test(attention_block, one_token) {
    check_scene((struct scene){.head_dim = 64, .group = 3, .token_count = 1});
}

Test(attention_block, grouped_heads_over_two_spans) {
    check_scene((struct scene){.head_dim = 64, .group = 3, .token_count = 700});
}

Test(attention_block, one_head_and_a_wide_one) {
    check_scene((struct scene){.head_dim = 128, .group = 1, .token_count = 130});
    check_scene((struct scene){.head_dim = 256, .group = 2, .token_count = 66});
}

Test(attention_block, head_dims_between_the_panel_steps) {
    check_scene((struct scene){.head_dim = 80, .group = 2, .token_count = 100});
    check_scene((struct scene){.head_dim = 10, .group = 5, .token_count = 100});
}

Test(attention_block, more_heads_than_a_block_has_rows) {
    check_scene((struct scene){.head_dim = 16, .group = 101, .token_count = 5});
}

Test(attention_block, window) {
    check_scene((struct scene){.head_dim = 32, .group = 2, .token_count = 300, .window = 1});
    check_scene((struct scene){.head_dim = 32, .group = 2, .token_count = 300, .window = 64});
    check_scene((struct scene){.head_dim = 32, .group = 2, .token_count = 1200, .window = 515});
}

Test(attention_block, softcap) {
    check_scene((struct scene){
        .head_dim = 64, .group = 2, .token_count = 150, .softcap = 2, .score_size = 8});
}

Test(attention_block, sharp_scores_move_the_maximum) {
    check_scene((struct scene){.head_dim = 64, .group = 2, .token_count = 600, .score_size = 40});
}

Test(attention_block, every_span_moves_the_maximum) {
    check_scene((struct scene){
        .head_dim = 16, .group = 1, .token_count = 2100, .score_size = 6, .rising = true});
}

Test(attention_block, int8_pages) {
    check_scene((struct scene){
        .head_dim = 64, .group = 3, .token_count = 600, .type = ATTENTION_PAGE_INT8});
    check_scene(
        (struct scene){.head_dim = 10, .group = 2, .token_count = 70, .type = ATTENTION_PAGE_INT8});
}

/* A sequence whose own values are not finite must say so. */
Test(attention_block, not_a_number_shows) {
    struct kernels kernels[8];
    int count = list_kernels(kernels);
    for (int type = ATTENTION_PAGE_BF16; type <= ATTENTION_PAGE_INT8; type++) {
        struct scene scene = {.head_dim = 32, .group = 1, .token_count = 80, .type = type};
        fill_scene(&scene, 3);
        scene.keys[70 * 32 + 5] = NAN;
        scene.values[75 * 32 + 6] = INFINITY;
        for (int i = 0; i < count; i++) {
            float *out = compute(&scene, (struct course){&kernels[i], 1, 4, CUT_NOWHERE});
            cr_expect(isfinite(out[69 * 32]) && isfinite(out[69 * 32 + 6]), "%s: leaks",
                      kernels[i].attention->name);
            cr_expect(isnan(out[70 * 32]), "%s: key", kernels[i].attention->name);
            cr_expect(!isfinite(out[79 * 32 + 6]), "%s: value", kernels[i].attention->name);
            free(out);
        }
        free_scene(&scene);
    }
}
