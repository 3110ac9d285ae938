/* Pages that remember. A cell holds the token, the position, and a hash of the whole history up to
 * it, read through the page table as a kernel would; so a wrong page, a page written twice, or one
 * given away while it was needed shows as a different token later, or at once as a fault.
 * fake_expect is the same function of the tokens alone. Behind the last row of a run its page must
 * be blank: what wrong guesses left there would be a fault. */
#ifndef TESTS_CORE_ENGINE_FAKE_DEVICE_H
#define TESTS_CORE_ENGINE_FAKE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/step_plan.h"

struct fake_cell {
    int32_t token;
    int32_t position;
    uint64_t history;
};

struct fake_device {
    int group_count;
    int windows[MODEL_KV_GROUPS_MAX];
    int64_t page_count[MODEL_KV_GROUPS_MAX];
    struct fake_cell *cells[MODEL_KV_GROUPS_MAX]; /* [page_count][KV_PAGE_TOKENS] */
    bool echo;   /* mostly, what a row sees is its own token: texts repeat themselves */
    long faults; /* a row saw a page that is missing or holds other positions */
};

static inline uint64_t fake_mix(uint64_t a, uint64_t b) {
    uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    x ^= x >> 32;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 29;
}

static inline int32_t fake_token(uint64_t value, int vocab_count) {
    return (int32_t)(value % (uint64_t)vocab_count);
}

static inline void fake_open(struct fake_device *device) {
    for (int group = 0; group < device->group_count; group++)
        device->cells[group] =
            calloc((size_t)device->page_count[group] * KV_PAGE_TOKENS, sizeof(struct fake_cell));
}

static inline void fake_close(struct fake_device *device) {
    for (int group = 0; group < device->group_count; group++)
        free(device->cells[group]);
}

static inline struct fake_cell *fake_at(struct fake_device *device, const struct step_run *run,
                                        int group, int position) {
    static struct fake_cell missing;
    int32_t page = run->pages[group][position / KV_PAGE_TOKENS];
    if (page < 0 || page >= device->page_count[group]) {
        device->faults++;
        missing = (struct fake_cell){-1, -1, 0};
        return &missing;
    }
    return &device->cells[group][(size_t)page * KV_PAGE_TOKENS + position % KV_PAGE_TOKENS];
}

static inline int fake_first_seen(int position, int window) {
    return window == 0 || position < window ? 0 : position - window + 1;
}

/* Cells of the page that holds `position`, from it on: blanked, or checked to be blank. */
static inline void fake_blank(struct fake_device *device, const struct step_run *run, int group,
                              int position, int count) {
    for (int slot = position % KV_PAGE_TOKENS; slot < KV_PAGE_TOKENS; slot++, position++, count--) {
        struct fake_cell *cell = fake_at(device, run, group, position);
        if (count > 0)
            *cell = (struct fake_cell){0};
        device->faults += cell->token != 0 || cell->position != 0 || cell->history != 0;
    }
}

/* The rows' own cells, each on top of the history read from the cell before it. */
static inline void fake_write(struct fake_device *device, const struct step_plan *plan,
                              const struct step_run *run) {
    for (int i = 0; i < run->row_count; i++) {
        int position = run->position_first + i;
        int32_t token = plan->tokens[run->row_first + i];
        for (int group = 0; group < device->group_count; group++) {
            uint64_t before = 0;
            if (position % KV_PAGE_TOKENS == 0)
                fake_blank(device, run, group, position, KV_PAGE_TOKENS);
            if (position > 0)
                before = fake_at(device, run, group, position - 1)->history;
            *fake_at(device, run, group, position) =
                (struct fake_cell){token, position, fake_mix(before, (uint64_t)token)};
        }
    }
    int end = run->position_first + run->row_count;
    for (int group = 0; group < device->group_count && end % KV_PAGE_TOKENS > 0; group++)
        fake_blank(device, run, group, end, run->stale_count);
}

/* Of all that a row sees: usually nothing but its own token in a device of echoes. */
static inline uint64_t fake_seen(const struct fake_device *device, uint64_t value, int32_t token) {
    return device->echo && value % 23 != 0 ? fake_mix(23, (uint64_t)token) : value;
}

/* What the row at `position` sees: everything in its windows. */
static inline uint64_t fake_attend(struct fake_device *device, const struct step_run *run,
                                   int position) {
    uint64_t value = 0;
    for (int group = 0; group < device->group_count; group++)
        for (int seen = fake_first_seen(position, device->windows[group]); seen <= position;
             seen++) {
            const struct fake_cell *cell = fake_at(device, run, group, seen);
            device->faults += cell->position != seen;
            value = fake_mix(value, cell->history + (uint64_t)cell->token);
        }
    return fake_seen(device, value, fake_at(device, run, 0, position)->token);
}

/* The same, from the tokens. */
static inline uint64_t fake_expect(const struct fake_device *device, const int32_t *tokens,
                                   int count) {
    uint64_t value = 0;
    for (int group = 0; group < device->group_count; group++) {
        uint64_t history = 0;
        int first = fake_first_seen(count - 1, device->windows[group]);
        for (int position = 0; position < count; position++) {
            history = fake_mix(history, (uint64_t)tokens[position]);
            if (position >= first)
                value = fake_mix(value, history + (uint64_t)tokens[position]);
        }
    }
    return fake_seen(device, value, tokens[count - 1]);
}

/* A whole step; values[i] is what sample row i saw. Every other row is checked for the pages it
 * would read: their first and last cell. */
static inline void fake_compute(struct fake_device *device, const struct step_plan *plan,
                                uint64_t *values) {
    int sample = 0;
    for (int r = 0; r < plan->run_count; r++)
        fake_write(device, plan, &plan->runs[r]);
    for (int r = 0; r < plan->run_count; r++) {
        const struct step_run *run = &plan->runs[r];
        for (int row = run->row_first; row < run->row_first + run->row_count; row++) {
            int position = run->position_first + row - run->row_first;
            if (sample < plan->sample_count && plan->sample_rows[sample] == row)
                values[sample++] = fake_attend(device, run, position);
            for (int group = 0; group < device->group_count; group++) {
                int first = fake_first_seen(position, device->windows[group]);
                device->faults += fake_at(device, run, group, first)->position != first;
                device->faults += fake_at(device, run, group, position)->position != position;
            }
        }
    }
    device->faults += sample != plan->sample_count;
}

/* xorshift, for workloads. */
static inline uint64_t fake_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline int fake_between(uint64_t *state, int low, int high) {
    return low + (int)(fake_random(state) % (uint64_t)(high - low + 1));
}

#endif
