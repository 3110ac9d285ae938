/* A page's chain is kept under its number in the pool, because the next chunk of its sequence, or
 * of another that shares it, finds it there. A chunk that ends inside a page leaves the hash so far
 * under the page's number, too. */
#include "core/profile/census.h"

#include <stdlib.h>

enum { SEEN_MAX = 1 << 20 };

static const uint64_t CHAIN_START = 0x9e3779b97f4a7c15u;

enum status census_init(struct census *census, int64_t page_count, struct error *error) {
    *census = (struct census){.capacity = SEEN_MAX, .page_count = page_count};
    census->seen = calloc(SEEN_MAX, sizeof *census->seen);
    census->page_chains = calloc((size_t)page_count, sizeof *census->page_chains);
    if (census->seen != NULL && census->page_chains != NULL)
        return STATUS_OK;
    census_deinit(census);
    return error_no_memory(error, "the census of prompt pages");
}

void census_deinit(struct census *census) {
    free(census->seen);
    free(census->page_chains);
    census->seen = NULL;
    census->page_chains = NULL;
}

static uint64_t mix(uint64_t chain, int32_t token) {
    chain = (chain ^ (uint32_t)token) * 0xff51afd7ed558ccdu;
    return chain ^ (chain >> 32);
}

/* Whether the chain was there already; it is from now on. */
static bool note(struct census *census, uint64_t chain) {
    uint64_t mask = (uint64_t)census->capacity - 1;
    uint64_t at = (chain * CHAIN_START) >> 20 & mask;
    for (; census->seen[at] != 0; at = (at + 1) & mask)
        if (census->seen[at] == chain)
            return true;
    if (census->seen_count < census->capacity / 2) {
        census->seen[at] = chain;
        census->seen_count++;
    }
    return false;
}

/* The chain before a run's first token; 0 when its beginning was never seen. */
static uint64_t chain_before(const struct census *census, const struct step_run *run) {
    if (run->position_first == 0)
        return CHAIN_START;
    int32_t page = run->pages[0][(run->position_first - 1) / KV_PAGE_TOKENS];
    return page >= 0 && page < census->page_count ? census->page_chains[page] : 0;
}

static void add_run(struct census *census, const struct step_run *run, const int32_t *tokens) {
    uint64_t chain = chain_before(census, run);
    for (int i = 0; i < run->row_count; i++) {
        int position = run->position_first + i, page = position / KV_PAGE_TOKENS;
        bool ends_page = position % KV_PAGE_TOKENS == KV_PAGE_TOKENS - 1;
        census->tokens++;
        census->pairs += position + 1;
        if (chain == 0)
            continue;
        chain = mix(chain, tokens[i]);
        chain += chain == 0;
        if (ends_page && note(census, chain)) {
            census->repeated_tokens += KV_PAGE_TOKENS;
            census->repeated_pairs +=
                (int64_t)KV_PAGE_TOKENS * (2 * position + 3 - KV_PAGE_TOKENS) / 2;
        }
        int32_t number = run->pages[0][page];
        if ((ends_page || i == run->row_count - 1) && number >= 0 && number < census->page_count)
            census->page_chains[number] = chain;
    }
}

void census_add_step(struct census *census, const struct step_plan *plan) {
    for (int i = 0; i < plan->run_count; i++)
        if (plan->runs[i].prefill)
            add_run(census, &plan->runs[i], plan->tokens + plan->runs[i].row_first);
}
