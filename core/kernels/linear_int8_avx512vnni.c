/* The int8 matmul on AVX-512 with VPDPBUSD: unsigned codes of 64 columns against four signed
 * activations a lane. Three rows × 64 columns keep twelve integer and twelve fp32 sums in
 * registers, so that a group's dot products never leave them.
 *
 * The tiles' words hold a lane's codes of four columns; a byte transposition within 128 bits and
 * one interleaving of two pairs make them quads. The columns come out as column_of() says: scales
 * are brought into that order once a group, sums back once a call. */
#include <immintrin.h>

#include "core/kernels/int8_layout.h"
#include "core/kernels/kernels_variants.h"
#include "core/kernels/unpack_avx512.h"

enum { BLOCK_ROWS = 3, VECTORS = PANEL_COLUMNS / TILE_LANES, SPIN_SUMS = 24 };

static bool available(const struct cpu_features *features) {
    return features->avx512 && features->avx512_vnni;
}

/* ---- rows ---- */

/* To nearest even, as lrintf; the largest size comes out as 127 and nothing past it. */
ALWAYS_INLINE __m128i narrow(__m512 values, __m512 factors) {
    return _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(values, factors)));
}

/* Four quads' sums in each half. */
ALWAYS_INLINE void sum_halves(__m256i bytes, int *sums) {
    __m256i quads = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes);
    quads = _mm256_add_epi32(quads, _mm256_shuffle_epi32(quads, _MM_SHUFFLE(1, 0, 3, 2)));
    quads = _mm256_add_epi32(quads, _mm256_shuffle_epi32(quads, _MM_SHUFFLE(2, 3, 0, 1)));
    sums[0] = _mm256_extract_epi32(quads, 0);
    sums[1] = _mm256_extract_epi32(quads, 4);
}

static void convert_group(const float *in, struct int8_row_group *out) {
    const __m512 zero = _mm512_setzero_ps();
    __m512 low = _mm512_loadu_ps(in), high = _mm512_loadu_ps(in + TILE_LANES);
    __m512 sizes = _mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high));
    float scale = _mm512_reduce_max_ps(sizes) / 127.0f, factor = 1.0f / scale;
    int sums[2];
    if (_mm512_cmp_ps_mask(low, high, _CMP_UNORD_Q) != 0 || !(scale <= __FLT_MAX__))
        scale = __builtin_nanf("");
    if (!(scale > 0 && factor <= __FLT_MAX__)) {
        low = high = zero;
        factor = 0;
    }
    __m512 factors = _mm512_set1_ps(factor);
    __m256i bytes = _mm256_set_m128i(narrow(high, factors), narrow(low, factors));
    _mm256_storeu_si256((void *)out->values, bytes);
    sum_halves(bytes, sums);
    out->scale = scale;
    out->half_sum[0] = scale * (float)sums[0];
    out->half_sum[1] = scale * (float)sums[1];
    out->sum = scale * (float)(sums[0] + sums[1]);
}

static void convert_row(const float *in, int count, void *out) {
    struct int8_row_group *groups = out;
    assert(count % INT8_GROUP == 0);
    for (int i = 0; i < count; i += INT8_GROUP)
        convert_group(in + i, groups++);
}

/* ---- the order of columns ----
 * Lane 4l + e of vector 2f + h is column 32h + 16(e/2) + 8f + 2l + e%2. */

/* Of vectors 2h (natural columns 32h to 32h + 15) and 2h + 1. */
ALWAYS_INLINE __m512i to_panel(int f) {
    const __m512i index = _mm512_setr_epi32(0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
    return _mm512_add_epi32(index, _mm512_set1_epi32(8 * f));
}

/* Of panel vectors h (f = 0) and 2 + h (f = 1): natural vector 2h + odd. */
ALWAYS_INLINE __m512i from_panel(int odd) {
    const __m512i index =
        _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29);
    return _mm512_add_epi32(index, _mm512_set1_epi32(2 * odd));
}

ALWAYS_INLINE void order_columns(const __m512 *natural, __m512 *panel) {
    UNROLL(4)
    for (int v = 0; v < VECTORS; v++)
        panel[v] =
            _mm512_permutex2var_ps(natural[2 * (v % 2)], to_panel(v / 2), natural[2 * (v % 2) + 1]);
}

ALWAYS_INLINE void restore_columns(const __m512 *panel, __m512 *natural) {
    UNROLL(4)
    for (int i = 0; i < VECTORS; i++)
        natural[i] = _mm512_permutex2var_ps(panel[i / 2], from_panel(i % 2), panel[2 + i / 2]);
}

/* ---- decoding ---- */

/* A pair's codes as bytes: those of even vectors and of odd ones. `kind` is a constant wherever
 * this is inlined. */
ALWAYS_INLINE void load_fields(enum tile_kind kind, const struct tile_format *format,
                               const uint8_t *low, const uint8_t *high, int pair, __m512i *fields) {
    if (tile_kind_high_bits(kind) > 0) {
        unpack_fields(kind, low, high, pair, fields);
        return;
    }
    const int bits = tile_kind_low_bits(kind);
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    __m512i word = unpack_word(low, bits, pair);
    fields[0] = _mm512_and_si512(word, mask);
    fields[1] = _mm512_and_si512(_mm512_srli_epi32(word, (unsigned)bits), mask);
    if (kind != TILE_4_CODEBOOK)
        return;
    __m512i codebook =
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)format->codebook));
    fields[0] = _mm512_shuffle_epi8(codebook, fields[0]);
    fields[1] = _mm512_shuffle_epi8(codebook, fields[1]);
}

/* Four inputs of 64 columns from the fields of two pairs. */
ALWAYS_INLINE void make_quads(const __m512i *first, const __m512i *second, __m512i *quads) {
    const __m512i transpose =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    UNROLL(2)
    for (int f = 0; f < 2; f++) {
        __m512i a = _mm512_shuffle_epi8(first[f], transpose);
        __m512i b = _mm512_shuffle_epi8(second[f], transpose);
        quads[2 * f] = _mm512_unpacklo_epi16(a, b);
        quads[2 * f + 1] = _mm512_unpackhi_epi16(a, b);
    }
}

/* The same from signed bytes, which lie column by column. */
ALWAYS_INLINE void make_byte_quads(const uint8_t *low, int pair, __m512i *quads) {
    const uint8_t *first = low + (size_t)pair * 2 * PANEL_COLUMNS;
    const __m512i index = _mm512_setr_epi32(
        0x200000, 0x210001, 0x300010, 0x310011, 0x220002, 0x230003, 0x320012, 0x330013, 0x240004,
        0x250005, 0x340014, 0x350015, 0x260006, 0x270007, 0x360016, 0x370017);
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    UNROLL(4)
    for (int v = 0; v < VECTORS; v++) {
        const uint8_t *at = first + 64 * (v % 2);
        __m512i shifted = _mm512_add_epi16(index, _mm512_set1_epi16((short)(8 * (v / 2))));
        __m512i quad = _mm512_permutex2var_epi16(_mm512_loadu_si512(at), shifted,
                                                 _mm512_loadu_si512(at + 2 * PANEL_COLUMNS));
        quads[v] = _mm512_xor_si512(quad, sign);
    }
}

ALWAYS_INLINE void load_quads(enum tile_kind kind, const struct tile_format *format,
                              const uint8_t *low, const uint8_t *high, int pair, __m512i *quads) {
    if (kind == TILE_8) {
        make_byte_quads(low, pair, quads);
        return;
    }
    __m512i first[2], second[2];
    load_fields(kind, format, low, high, pair, first);
    load_fields(kind, format, low, high, pair + 1, second);
    make_quads(first, second, quads);
}

/* Scales and minima of one group in the panel's order. */
ALWAYS_INLINE void load_scales(const struct tile_format *format, const uint8_t *chunk,
                               const struct tile_offsets *at, int group, float *out) {
    const uint8_t *group_scale = chunk + at->group_scale + (size_t)group * PANEL_COLUMNS;
    const uint8_t *group_min = chunk + at->group_min + (size_t)group * PANEL_COLUMNS;
    const __m512 offset = _mm512_set1_ps((float)int8_layout_offset(format));
    __m512 scales[VECTORS], minima[VECTORS], ordered[VECTORS];
    UNROLL(4)
    for (int i = 0; i < VECTORS; i++) {
        scales[i] = unpack_half_floats(chunk, i);
        if (format->two_level)
            scales[i] =
                _mm512_mul_ps(scales[i], _mm512_cvtepi32_ps(unpack_bytes(group_scale, i, true)));
        minima[i] = format->has_min ? unpack_load_min(format, chunk, at, group_min, i, scales[i])
                                    : _mm512_mul_ps(scales[i], offset);
    }
    order_columns(scales, ordered);
    UNROLL(4)
    for (int v = 0; v < VECTORS; v++)
        _mm512_store_ps(out + TILE_LANES * v, ordered[v]);
    order_columns(minima, ordered);
    UNROLL(4)
    for (int v = 0; v < VECTORS; v++)
        _mm512_store_ps(out + PANEL_COLUMNS + TILE_LANES * v, ordered[v]);
}

/* Where a tile is read from, record by record. */
struct reader {
    const struct tile_format *format;
    struct tile_offsets at;
    const uint8_t *chunk;
    size_t chunk_bytes;
    int group; /* of the chunk */
};

static struct reader begin_reading(const struct tile *tile, int block, int k_first) {
    return (struct reader){.format = tile->format,
                           .at = tile_format_offsets(tile->format),
                           .chunk = tile_chunk(tile, block, k_first),
                           .chunk_bytes = tile->chunk_bytes};
}

/* The next record, 64-byte aligned. */
ALWAYS_INLINE void read_record(enum tile_kind kind, struct reader *reader, uint8_t *record) {
    const struct tile_format *format = reader->format;
    int pairs = format->group / 2, pair = reader->group * pairs;
    size_t packed = reader->at.end / (size_t)(format->chunk / format->group);
    unpack_prefetch(reader->chunk + (size_t)reader->group * packed, packed);
    for (int q = 0; q < pairs / 2; q++) {
        __m512i quads[VECTORS];
        load_quads(kind, format, reader->chunk + reader->at.low, reader->chunk + reader->at.high,
                   pair + 2 * q, quads);
        UNROLL(4)
        for (int v = 0; v < VECTORS; v++)
            _mm512_store_si512(record + 256 * (size_t)q + 64 * v, quads[v]);
    }
    load_scales(format, reader->chunk, &reader->at, reader->group,
                (float *)(void *)(record + (size_t)format->group * PANEL_COLUMNS));
    if (++reader->group == format->chunk / format->group) {
        reader->group = 0;
        reader->chunk += reader->chunk_bytes;
    }
}

#define READ_RECORD_DEFINE(KIND)                                      \
    static void read_##KIND(struct reader *reader, uint8_t *record) { \
        read_record(KIND, reader, record);                            \
    }

READ_RECORD_DEFINE(TILE_2)
READ_RECORD_DEFINE(TILE_2_1)
READ_RECORD_DEFINE(TILE_4)
READ_RECORD_DEFINE(TILE_4_1)
READ_RECORD_DEFINE(TILE_4_2)
READ_RECORD_DEFINE(TILE_4_CODEBOOK)
READ_RECORD_DEFINE(TILE_8)

/* By kind; formats without codes have no int8 matmul. */
static void (*const read_by_kind[])(struct reader *reader, uint8_t *record) = {
    [TILE_2] = read_TILE_2,     [TILE_2_1] = read_TILE_2_1,
    [TILE_4] = read_TILE_4,     [TILE_4_1] = read_TILE_4_1,
    [TILE_4_2] = read_TILE_4_2, [TILE_4_CODEBOOK] = read_TILE_4_CODEBOOK,
    [TILE_8] = read_TILE_8,
};

static void unpack_panel(const struct tile *tile, int block, int k_first, int k_count,
                         void *panel) {
    struct reader reader = begin_reading(tile, block, k_first);
    struct int8_panel_header *header = panel;
    uint8_t *record = (uint8_t *)panel + INT8_HEADER_BYTES;
    header->group = reader.format->group;
    for (int k = 0; k < k_count; k += header->group) {
        read_by_kind[reader.format->kind](&reader, record);
        record += int8_layout_record_bytes(header->group);
    }
}

/* ---- products ---- */

/* In a register: gcc 12 would rather load it again for every row. */
ALWAYS_INLINE void keep(__m512i *columns) {
    __asm__("" : "+v"(*columns));
}

/* As _mm512_dpbusd_epi32, which gcc 12 surrounds with moves of its sums. */
ALWAYS_INLINE void add_products(__m512i *sums, __m512i codes, __m512i values) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sums) : "v"(codes), "v"(values));
}

/* One record × up to four rows; the sums of the whole k stay with the caller. */
ALWAYS_INLINE void multiply_record(const char *rows, size_t row_stride, const int row_count,
                                   const int group, int number, const uint8_t *record,
                                   __m512 (*sums)[VECTORS]) {
    const float *scales = (const void *)(record + (size_t)group * PANEL_COLUMNS);
    struct int8_step steps[LINEAR_FEW_ROWS];
    __m512i dots[LINEAR_FEW_ROWS][VECTORS];
    UNROLL(4)
    for (int r = 0; r < row_count; r++) {
        steps[r] = int8_layout_step(rows + (size_t)r * row_stride, group, number);
        UNROLL(4)
        for (int v = 0; v < VECTORS; v++)
            dots[r][v] = _mm512_setzero_si512();
    }
    const uint8_t *codes = record;
    UNROLL(8)
    for (int q = 0; q < group / INT8_QUAD; q++, codes += INT8_QUAD * PANEL_COLUMNS) {
        __m512i columns[VECTORS];
        UNROLL(4)
        for (int v = 0; v < VECTORS; v++) {
            columns[v] = _mm512_load_si512(codes + 64 * v);
            keep(&columns[v]);
        }
        UNROLL(4)
        for (int r = 0; r < row_count; r++) {
            int bits;
            memcpy(&bits, steps[r].values + INT8_QUAD * q, sizeof bits);
            __m512i values = _mm512_set1_epi32(bits);
            UNROLL(4)
            for (int v = 0; v < VECTORS; v++)
                add_products(&dots[r][v], columns[v], values);
        }
    }
    UNROLL(4)
    for (int r = 0; r < row_count; r++) {
        __m512 scale = _mm512_set1_ps(steps[r].scale), sum = _mm512_set1_ps(steps[r].sum);
        UNROLL(4)
        for (int v = 0; v < VECTORS; v++) {
            __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(dots[r][v]),
                                          _mm512_load_ps(scales + TILE_LANES * v));
            sums[r][v] = _mm512_fmadd_ps(scaled, scale, sums[r][v]);
            sums[r][v] = _mm512_fmadd_ps(_mm512_load_ps(scales + PANEL_COLUMNS + TILE_LANES * v),
                                         sum, sums[r][v]);
        }
    }
}

ALWAYS_INLINE void load_sums(const float *out, size_t out_stride, const int row_count,
                             __mmask64 columns, __m512 (*sums)[VECTORS]) {
    UNROLL(4)
    for (int r = 0; r < row_count; r++) {
        __m512 natural[VECTORS];
        UNROLL(4)
        for (int i = 0; i < VECTORS; i++)
            natural[i] = _mm512_maskz_loadu_ps((__mmask16)(columns >> TILE_LANES * i),
                                               out + (size_t)r * out_stride + TILE_LANES * i);
        order_columns(natural, sums[r]);
    }
}

ALWAYS_INLINE void store_sums(float *out, size_t out_stride, const int row_count, __mmask64 columns,
                              __m512 (*sums)[VECTORS]) {
    UNROLL(4)
    for (int r = 0; r < row_count; r++) {
        __m512 natural[VECTORS];
        restore_columns(sums[r], natural);
        UNROLL(4)
        for (int i = 0; i < VECTORS; i++)
            _mm512_mask_storeu_ps(out + (size_t)r * out_stride + TILE_LANES * i,
                                  (__mmask16)(columns >> TILE_LANES * i), natural[i]);
    }
}

ALWAYS_INLINE void clear_sums(const int row_count, __m512 (*sums)[VECTORS]) {
    UNROLL(4)
    for (int r = 0; r < row_count; r++) {
        UNROLL(4)
        for (int v = 0; v < VECTORS; v++)
            sums[r][v] = _mm512_setzero_ps();
    }
}

struct block {
    const char *rows;
    size_t row_stride; /* bytes */
    const uint8_t *records;
    int record_count;
    float *out;
    size_t out_stride; /* floats */
    __mmask64 columns;
    bool accumulate;
};

ALWAYS_INLINE void multiply_rows(const struct block *block, const int row_count, const int group) {
    __m512 sums[BLOCK_ROWS][VECTORS];
    if (block->accumulate)
        load_sums(block->out, block->out_stride, row_count, block->columns, sums);
    else
        clear_sums(row_count, sums);
    const uint8_t *record = block->records;
    for (int n = 0; n < block->record_count; n++, record += int8_layout_record_bytes(group))
        multiply_record(block->rows, block->row_stride, row_count, group, n, record, sums);
    store_sums(block->out, block->out_stride, row_count, block->columns, sums);
}

#define BLOCK_DEFINE(NAME, ROWS)                             \
    static void NAME(const struct block *block, int group) { \
        if (group == INT8_GROUP)                             \
            multiply_rows(block, ROWS, INT8_GROUP);          \
        else                                                 \
            multiply_rows(block, ROWS, INT8_GROUP_MIN);      \
    }

BLOCK_DEFINE(multiply_1, 1)
BLOCK_DEFINE(multiply_2, 2)
BLOCK_DEFINE(multiply_3, 3)

static void multiply(const void *rows, size_t row_stride, int row_count, const void *panel,
                     int panel_columns, int k, float *out, size_t out_stride, int column_count,
                     bool accumulate) {
    static void (*const run[])(const struct block *, int) = {multiply_1, multiply_2, multiply_3};
    const struct int8_panel_header *header = panel;
    assert(panel_columns == PANEL_COLUMNS && k % header->group == 0);
    (void)panel_columns;
    struct block block = {
        .rows = rows,
        .row_stride = row_stride,
        .records = (const uint8_t *)panel + INT8_HEADER_BYTES,
        .record_count = k / header->group,
        .out = out,
        .out_stride = out_stride,
        .columns = ~(__mmask64)0 >> (PANEL_COLUMNS - column_count),
        .accumulate = accumulate,
    };
    for (int left = (row_count + BLOCK_ROWS - 1) / BLOCK_ROWS; left > 0; left--) {
        int count = (row_count + left - 1) / left;
        run[count - 1](&block, header->group);
        block.rows += (size_t)count * row_stride;
        block.out += (size_t)count * out_stride;
        row_count -= count;
    }
}

/* A few rows: a record at a time, read back from the first-level cache at once. */
ALWAYS_INLINE void multiply_few_rows(struct reader *reader, int record_count, const char *rows,
                                     size_t row_stride, const int row_count, const int group,
                                     __m512 (*sums)[VECTORS]) {
    _Alignas(64) uint8_t record[INT8_GROUP * PANEL_COLUMNS + 2 * PANEL_COLUMNS * sizeof(float)];
    for (int n = 0; n < record_count; n++) {
        read_by_kind[reader->format->kind](reader, record);
        multiply_record(rows, row_stride, row_count, group, n, record, sums);
    }
}

#define FEW_DEFINE(NAME, ROWS)                                                                \
    static void NAME(const struct tile *tile, int block, const void *rows, size_t row_stride, \
                     float *out, size_t out_stride) {                                         \
        struct reader reader = begin_reading(tile, block, 0);                                 \
        int group = tile->format->group, count = tile->in / group;                            \
        __m512 sums[ROWS][VECTORS];                                                           \
        clear_sums(ROWS, sums);                                                               \
        if (group == INT8_GROUP)                                                              \
            multiply_few_rows(&reader, count, rows, row_stride, ROWS, INT8_GROUP, sums);      \
        else                                                                                  \
            multiply_few_rows(&reader, count, rows, row_stride, ROWS, INT8_GROUP_MIN, sums);  \
        store_sums(out, out_stride, ROWS, ~(__mmask64)0, sums);                               \
    }

FEW_DEFINE(few_1, 1)
FEW_DEFINE(few_2, 2)
FEW_DEFINE(few_3, 3)
FEW_DEFINE(few_4, 4)

static void multiply_few(const struct tile *tile, int block, const void *rows, size_t row_stride,
                         int row_count, float *out, size_t out_stride) {
    static void (*const run[])(const struct tile *, int, const void *, size_t, float *,
                               size_t) = {few_1, few_2, few_3, few_4};
    run[row_count - 1](tile, block, rows, row_stride, out, out_stride);
}

/* ---- ceilings ---- */

static uint64_t spin(int rounds, float *sink) {
    __m512i sums[SPIN_SUMS], factor = _mm512_castps_si512(_mm512_set1_ps(*sink));
    UNROLL(24)
    for (int i = 0; i < SPIN_SUMS; i++)
        sums[i] = _mm512_set1_epi32(i);
    for (int round = 0; round < rounds; round++) {
        UNROLL(24)
        for (int i = 0; i < SPIN_SUMS; i++)
            add_products(&sums[i], factor, factor);
        __asm__ volatile("" : "+v"(factor));
    }
    UNROLL(23)
    for (int i = 1; i < SPIN_SUMS; i++)
        sums[0] = _mm512_add_epi32(sums[0], sums[i]);
    *sink += (float)_mm512_reduce_or_epi32(sums[0]);
    return (uint64_t)rounds * SPIN_SUMS * TILE_LANES * 2 * INT8_QUAD;
}

static uint64_t read_all(const void *bytes, size_t byte_count) {
    return linear_avx512.read(bytes, byte_count);
}

const struct linear_kernels linear_int8_avx512vnni = {
    .name = "avx512-vnni",
    .unit = UNIT_INT8,
    .available = available,
    .convert_row = convert_row,
    .multiply = multiply,
    .unpack_panel = unpack_panel,
    .few_rows = LINEAR_FEW_ROWS,
    .multiply_few = multiply_few,
    .k_step = INT8_GROUP,
    .chunk = 256,
    .pass_rows = 3,
    .unpack_rows = 8,
    .rows_bytes = SIZE_MAX,
    .spin = spin,
    .read = read_all,
};
