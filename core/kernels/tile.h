/* Weights as the kernels read them: made once at load from any GGUF type, without loss beyond the
 * type's own rounding, at ≤ 1.25 × the file's bytes. PANEL_COLUMNS outputs lie side by side so that
 * one load serves 16 or more columns; codes keep their bits (a nibble plane, a high-bit plane for
 * 5, 6 and 8 bits), scales keep their two levels. */
#ifndef CORE_KERNELS_TILE_H
#define CORE_KERNELS_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/weights/tensor.h"

struct tile; /* layout in tile_layout.h, for the kernels of this folder only */

/* Of the bytes of a packed set, for those who keep them: raised with every change of what a tensor
 * is packed to. It is the same for all instruction sets. */
enum { TILE_LAYOUT_VERSION = 1 };

/* Bytes that a set of these parts takes: all [rows][in] with the same `in`. Parts may differ in
 * type: each part is padded to whole column blocks of its own. */
uint64_t tile_bytes(const struct tensor *const *parts, int part_count);

/* Column blocks of the packed parts, and where each part's columns begin in the concatenated
 * output. */
struct tile_set {
    int in;
    int out;            /* sum of the parts' rows */
    int block_count;    /* of PANEL_COLUMNS columns, parts padded separately */
    struct tile *tiles; /* [part_count] */
    int part_count;
    void *memory;
    size_t memory_bytes;
    bool owns_memory;
};

/* One block's place: which tile, which block of it, first output column and how many are real. */
struct tile_block {
    const struct tile *tile;
    int block;
    int out_first;
    int out_count;
};

/* Memory for the parts side by side; nothing is packed yet. Parts of different row lengths or too
 * large are refused. */
enum status tile_set_create(struct tile_set *set, const struct tensor *const *parts, int part_count,
                            struct error *error);
/* The same in memory of the caller's: tile_bytes of it, 64-byte aligned, which outlive the set. It
 * may hold packed blocks already, and is then only read. */
enum status tile_set_create_in(struct tile_set *set, const struct tensor *const *parts,
                               int part_count, void *memory, struct error *error);
/* The packed blocks lie in `memory` from now on; of sets that own none. */
void tile_set_move(struct tile_set *set, void *memory);
/* A set of column blocks from `first` on, in the whole's memory: of one part, no more than
 * `bytes_max`, but one at least. Its outputs begin at tile_set_block(whole, first).out_first. */
enum status tile_set_slice(const struct tile_set *whole, int first, uint64_t bytes_max,
                           struct tile_set *slice, struct error *error);
/* Pack column block `block` of the set's own parts: independent of all others, so callers may run
 * blocks in parallel. */
void tile_set_pack_block(const struct tile_set *set, const struct tensor *const *parts, int block);
struct tile_block tile_set_block(const struct tile_set *set, int block);
void tile_set_destroy(struct tile_set *set);

#endif
