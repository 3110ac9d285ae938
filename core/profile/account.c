/* Closed forms over positions; only pages are walked, because which of them are shared no formula
 * knows. */
#include "core/profile/account.h"

#include <stdlib.h>
#include <string.h>

#include "core/kernels/kernels.h"
#include "core/kernels/tile.h"

enum {
    ACTIVATION_BYTES = 4,
    PAGE = KV_PAGE_TOKENS,
};

/* ---- pairs ---- */

/* Pairs of positions [0, n). */
static int64_t pairs_before(int64_t n, int64_t window) {
    if (window == 0 || n <= window)
        return n * (n + 1) / 2;
    return window * (window + 1) / 2 + (n - window) * window;
}

int64_t account_pairs(int64_t first, int64_t count, int64_t window) {
    return pairs_before(first + count, window) - pairs_before(first, window);
}

/* Σ floor(p / PAGE) over p in [0, n). */
static int64_t pages_before(int64_t n) {
    int64_t whole = n / PAGE, rest = n % PAGE;
    return PAGE * (whole * (whole - 1) / 2) + rest * whole;
}

static int64_t not_below_zero(int64_t value) {
    return value > 0 ? value : 0;
}

int64_t account_pairs_issued(int64_t first, int64_t count, int64_t window) {
    int64_t end = first + count;
    int64_t pages = pages_before(end) - pages_before(first) + count;
    if (window > 0)
        pages -= pages_before(not_below_zero(end - window + 1)) -
                 pages_before(not_below_zero(first - window + 1));
    return PAGE * pages;
}

int64_t account_keys(int64_t first, int64_t count, int64_t window) {
    int64_t end = first + count;
    if (count == 0)
        return 0;
    return window == 0 ? end : end - not_below_zero(first - window + 1);
}

/* ---- a step ---- */

struct account_shape account_shape_of(const struct model *model, const uint64_t *page_bytes,
                                      int block_positions) {
    struct account_shape shape = {
        .heads = model->head_count,
        .kv_heads = model->kv_head_count,
        .head_dim = model->head_dim,
        .width = model->width,
        .ffn_width = model->ffn_width,
        .vocab = model->vocab_count,
        .group_count = model->kv_group_count,
        .block_positions = block_positions,
    };
    for (int g = 0; g < model->kv_group_count; g++)
        shape.windows[g] = model->kv_groups[g].window;
    if (model->kv_group_count > 0)
        shape.kv_token_bytes =
            (double)page_bytes[0] / model->kv_groups[0].layer_count / KV_PAGE_TOKENS;
    return shape;
}

enum status account_init(struct account *account, const struct account_shape *shape,
                         const int64_t *page_count, struct error *error) {
    *account = (struct account){.shape = *shape};
    for (int g = 0; g < shape->group_count; g++) {
        account->page_count[g] = page_count[g];
        account->marks[g] = calloc((size_t)page_count[g], sizeof *account->marks[g]);
        if (account->marks[g] == NULL) {
            account_deinit(account);
            return error_no_memory(error, "the accounting of pages");
        }
    }
    return STATUS_OK;
}

void account_deinit(struct account *account) {
    for (int g = 0; g < MODEL_KV_GROUPS_MAX; g++)
        free(account->marks[g]);
    memset(account->marks, 0, sizeof account->marks);
}

static int least(int a, int b) {
    return a < b ? a : b;
}

/* Slots [first, end) of a page are seen by some row. Those of a page's readers touch or overlap,
 * because a page with several readers is full and all of them see its end. */
static void mark_page(struct account *account, int g, int32_t page, int first, int end,
                      struct account_step_group *group) {
    struct account_mark *mark = &account->marks[g][page];
    if (mark->step != account->step) {
        *mark = (struct account_mark){account->step, (uint8_t)first, (uint8_t)end};
        group->keys += end - first;
        group->pages_held++;
        return;
    }
    int before = mark->end - mark->first;
    if (first < mark->first)
        mark->first = (uint8_t)first;
    if (end > mark->end)
        mark->end = (uint8_t)end;
    group->keys += mark->end - mark->first - before;
}

static void mark_pages(struct account *account, int g, const struct step_run *run,
                       struct account_step_group *group) {
    int end = run->position_first + run->row_count, window = account->shape.windows[g];
    int from = end - (int)account_keys(run->position_first, run->row_count, window);
    for (int at = from; at < end;) {
        int page_first = at / PAGE * PAGE, stop = least(page_first + PAGE, end);
        int32_t page = run->pages[g][at / PAGE];
        group->pages_apart++;
        if (page >= 0 && page < account->page_count[g])
            mark_page(account, g, page, at - page_first, stop - page_first, group);
        at = stop;
    }
}

/* Pages that each block of query positions reads. */
static int64_t pages_moved(const struct account_shape *shape, int window,
                           const struct step_run *run) {
    int64_t pages = 0;
    for (int done = 0; done < run->row_count; done += shape->block_positions) {
        int count = least(run->row_count - done, shape->block_positions);
        int first = run->position_first + done, last = first + count - 1;
        int from = last + 1 - (int)account_keys(first, count, window);
        pages += last / PAGE - from / PAGE + 1;
    }
    return pages;
}

static void add_run(struct account *account, int g, const struct step_run *run,
                    struct account_step_group *group) {
    int window = account->shape.windows[g];
    int64_t pairs = account_pairs(run->position_first, run->row_count, window);
    group->pairs += pairs;
    group->decode_pairs += run->prefill ? 0 : pairs;
    group->pairs_issued += account_pairs_issued(run->position_first, run->row_count, window);
    group->keys_apart += account_keys(run->position_first, run->row_count, window);
    group->pages_moved += pages_moved(&account->shape, window, run);
    mark_pages(account, g, run, group);
}

void account_add_step(struct account *account, const struct step_plan *plan,
                      struct account_step *step) {
    *step = (struct account_step){
        .rows = plan->row_count, .samples = plan->sample_count, .runs = plan->run_count};
    account->step++;
    for (int i = 0; i < plan->run_count; i++) {
        const struct step_run *run = &plan->runs[i];
        int end = run->position_first + run->row_count;
        step->prefill_rows += run->prefill ? run->row_count : 0;
        step->tokens_held += end;
        if (end > step->context_most)
            step->context_most = end;
        for (int g = 0; g < account->shape.group_count; g++)
            add_run(account, g, run, &step->groups[g]);
    }
}

/* ---- work of an op ---- */

struct account_work account_linear(int rows, int in, int out, double weight_bytes,
                                   double packed_bytes) {
    double flops = 2.0 * rows * in * out;
    int padded = (out + PANEL_COLUMNS - 1) / PANEL_COLUMNS * PANEL_COLUMNS;
    return (struct account_work){
        .flops = flops,
        .flops_issued = 2.0 * rows * in * padded,
        .stream_min = rows > 0 ? weight_bytes : 0,
        .stream_moved = rows > 0 ? packed_bytes : 0,
        .local = (double)rows * (in + out) * ACTIVATION_BYTES,
    };
}

struct account_work account_attention(const struct account_shape *shape,
                                      const struct account_step_group *group, int rows) {
    double per_pair = 4.0 * shape->heads * shape->head_dim;
    return (struct account_work){
        .flops = per_pair * (double)group->pairs,
        .flops_issued = per_pair * (double)group->pairs_issued,
        .exponentials = (double)group->pairs_issued * shape->heads,
        .stream_min = (double)group->keys * shape->kv_token_bytes,
        .stream_moved = (double)group->pages_moved * PAGE * shape->kv_token_bytes,
        .local = 2.0 * rows * shape->heads * shape->head_dim * ACTIVATION_BYTES,
    };
}

static struct account_work linear_site(const struct linear *linear, int rows) {
    double bytes = 0;
    for (int i = 0; i < linear->part_count; i++)
        bytes += (double)linear->parts[i]->byte_count;
    return account_linear(rows, linear->in, linear->out, bytes,
                          (double)tile_bytes(linear->parts, linear->part_count));
}

/* Ops on each row alone: `flops` a value and `passes` over it, reads and writes. */
static struct account_work row_op(int rows, int values, double flops, double passes) {
    double count = (double)rows * values;
    return (struct account_work){.flops = flops * count,
                                 .flops_issued = flops * count,
                                 .local = passes * count * ACTIVATION_BYTES};
}

/* Rope of q and k, 3 FLOP a value; K and V of the rows go to pages. */
static struct account_work kv_write(const struct account_shape *shape, int rows) {
    int turned = (shape->heads + shape->kv_heads) * shape->head_dim;
    struct account_work work = row_op(rows, turned, 3, 2);
    work.local += (double)rows * shape->kv_heads * shape->head_dim * ACTIVATION_BYTES;
    work.stream_min = work.stream_moved = rows * shape->kv_token_bytes;
    return work;
}

static struct account_work activation(const struct account_shape *shape, int rows) {
    struct account_work work = row_op(rows, shape->ffn_width, 4, 3);
    work.exponentials = (double)rows * shape->ffn_width;
    return work;
}

struct account_work account_site(const struct account_shape *shape, const struct op_site *site,
                                 const struct account_step *step) {
    switch (site->kind) {
    case SITE_QKV:
    case SITE_ATTENTION_OUT:
    case SITE_GATE_UP:
    case SITE_DOWN:
        return linear_site(site->linear, step->rows);
    case SITE_LOGITS:
        return linear_site(site->linear, step->samples);
    case SITE_ATTENTION:
        return account_attention(shape, &step->groups[site->kv_group], step->rows);
    case SITE_KV_WRITE:
        return kv_write(shape, step->rows);
    case SITE_NORM:
        return row_op(step->rows, shape->width, 4, 2);
    case SITE_RESIDUAL:
        return row_op(step->rows, shape->width, 1, 3);
    case SITE_ACTIVATION:
        return activation(shape, step->rows);
    case SITE_EMBED:
        return row_op(step->rows, shape->width, 0, 1);
    case SITE_BEGIN:
    case SITE_END:
    case SITE_KIND_COUNT:
        break;
    }
    return (struct account_work){0};
}
