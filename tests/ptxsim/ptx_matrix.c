/* Warp matrix instructions. A product is exact (f16, bf16, fp8, tf32 and int8 products fit a float
 * or an int); sums are float, one rounding a term, k ascending, starting from c: a stated order,
 * deterministic, not a tensor core's. Fragments are laid out as the PTX ISA's figures say. */
#include <string.h>

#include "tests/ptxsim/ptx_access.h"
#include "tests/ptxsim/ptx_numbers.h"
#include "tests/ptxsim/ptx_opcodes.h"

enum { ROWS = 16, COLUMNS = 8, DEPTH_MAX = 32 };

struct product {
    float a[ROWS][DEPTH_MAX];
    float b[DEPTH_MAX][COLUMNS];
    float c[ROWS][COLUMNS];
    int32_t a_int[ROWS][DEPTH_MAX], b_int[DEPTH_MAX][COLUMNS], c_int[ROWS][COLUMNS];
};

static uint32_t word(const struct ptx_warp *w, const struct ptx_instruction *in, int operand,
                     int lane) {
    return ((const uint32_t *)ptx_operand(w, in, operand))[lane];
}

static float element(enum ptx_type type, uint32_t bits) {
    if (type == PTX_F16)
        return ptx_numbers_f16((uint16_t)bits);
    if (type == PTX_BF16)
        return ptx_numbers_bf16((uint16_t)bits);
    if (type == PTX_TF32)
        return ptx_numbers_f32(bits & 0xffffe000);
    return (float)ptx_numbers_value(type, bits & 0xff);
}

static bool is_int(enum ptx_type type) {
    return type == PTX_S8 || type == PTX_U8;
}

static int32_t integer(enum ptx_type type, uint32_t bits) {
    return type == PTX_S8 ? (int8_t)bits : (int32_t)(bits & 0xff);
}

/* A register of A covers `per` elements of row r, at column k; registers go down the rows first,
 * then right. B's go down k. */
static void read_fragments(const struct ptx_warp *w, const struct ptx_instruction *in,
                           struct product *p, int depth) {
    const enum ptx_type a_type = (enum ptx_type)in->types[1], b_type = (enum ptx_type)in->types[2];
    const int per = 4 / (int)ptx_types_bytes(a_type), bits = 32 / per;
    const int a_first = in->write_count, a_count = in->vector_counts[1];
    const int b_first = a_first + a_count, b_count = in->vector_counts[2];
    for (int lane = 0; lane < PTX_LANES; lane++) {
        const int group = lane / 4, within = lane % 4;
        for (int i = 0; i < a_count * per; i++) {
            const int reg = i / per;
            const uint32_t value = word(w, in, a_first + reg, lane) >> (i % per * bits);
            const int row = group + 8 * (reg & 1), k = within * per + i % per + 4 * per * (reg / 2);
            if (is_int(a_type))
                p->a_int[row][k] = integer(a_type, value);
            else
                p->a[row][k] = element(a_type, value);
        }
        for (int i = 0; i < b_count * per; i++) {
            const int reg = i / per, k = within * per + i % per + 4 * per * reg;
            const uint32_t value = word(w, in, b_first + reg, lane) >> (i % per * bits);
            if (is_int(b_type))
                p->b_int[k][group] = integer(b_type, value);
            else
                p->b[k][group] = element(b_type, value);
        }
    }
    (void)depth;
}

/* Element (row, column) of accumulator `i` of a lane. */
static int row_of(int lane, int i) {
    return lane / 4 + 8 * (i / 2);
}

static int column_of(int lane, int i) {
    return lane % 4 * 2 + i % 2;
}

static void read_sums(const struct ptx_warp *w, const struct ptx_instruction *in,
                      struct product *p) {
    const int first = in->operand_count - in->vector_counts[3];
    const bool half = in->types[3] == PTX_F16;
    for (int lane = 0; lane < PTX_LANES; lane++) {
        for (int i = 0; i < 4; i++) {
            const uint32_t bits = half ? word(w, in, first + i / 2, lane) >> (i % 2 * 16)
                                       : word(w, in, first + i, lane);
            p->c[row_of(lane, i)][column_of(lane, i)] =
                half ? ptx_numbers_f16((uint16_t)bits) : ptx_numbers_f32(bits);
            p->c_int[row_of(lane, i)][column_of(lane, i)] = (int32_t)bits;
        }
    }
}

static void write_sums(const struct ptx_warp *w, const struct ptx_instruction *in,
                       const struct product *p) {
    for (int lane = 0; lane < PTX_LANES; lane++) {
        for (int i = 0; i < 4; i++) {
            const float sum = p->c[row_of(lane, i)][column_of(lane, i)];
            if (in->types[0] == PTX_F16) {
                uint16_t *pair = (uint16_t *)ptx_operand(w, in, i / 2) + 2 * lane;
                pair[i % 2] = (uint16_t)ptx_numbers_round(PTX_F16, (double)sum, PTX_NEAREST, false);
            } else {
                ((uint32_t *)ptx_operand(w, in, i))[lane] =
                    in->types[0] == PTX_S32
                        ? (uint32_t)p->c_int[row_of(lane, i)][column_of(lane, i)]
                        : ptx_numbers_bits(sum);
            }
        }
    }
}

static void multiply(struct product *p, int depth) {
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < depth; k++)
            for (int column = 0; column < COLUMNS; column++)
                p->c[row][column] += p->a[row][k] * p->b[k][column];
}

/* 32-bit sums wrap unless .satfinite. */
static void multiply_integers(struct product *p, int depth, bool saturate) {
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            int64_t sum = p->c_int[row][column];
            for (int k = 0; k < depth; k++)
                sum += p->a_int[row][k] * p->b_int[k][column];
            if (saturate && sum != (int32_t)sum)
                sum = sum < 0 ? INT32_MIN : INT32_MAX;
            p->c_int[row][column] = (int32_t)sum;
        }
    }
}

static bool mma(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    struct product p;
    const int per = 4 / (int)ptx_types_bytes((enum ptx_type)in->types[1]);
    const int depth = in->vector_counts[2] * per * 4;
    (void)mask;
    read_fragments(w, in, &p, depth);
    read_sums(w, in, &p);
    if (is_int((enum ptx_type)in->types[1]))
        multiply_integers(&p, depth, ptx_field(in, PTX_FIELD_SAT));
    else
        multiply(&p, depth);
    write_sums(w, in, &p);
    w->block->counters.matrix_instructions++;
    return true;
}

/* ---- ldmatrix, stmatrix, movmatrix: 8×8 matrices of 16-bit elements ---- */
static uint8_t *matrix_row(struct ptx_warp *w, const struct ptx_instruction *in,
                           const struct ptx_register *base, int lane, enum ptx_access access,
                           struct ptx_traffic *traffic) {
    struct ptx_place place = {
        .space = PTX_SHARED,
        .address = ptx_machine_get(w, base, lane) + (uint64_t)in->offsets[0],
        .bytes = 16,
        .access = access,
        .lane = PTX_WHOLE_WARP, /* every lane takes part of every row */
    };
    traffic->addresses[traffic->count++] = place.address;
    return ptx_access_at(w, in, &place);
}

static bool ldmatrix(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const bool transposed = ptx_field(in, PTX_FIELD_TRANS);
    const struct ptx_register *base = &in->operands[in->operand_count - 1];
    uint32_t results[4][PTX_LANES];
    (void)mask;
    for (int matrix = 0; matrix < in->write_count; matrix++) {
        uint16_t elements[8][8];
        struct ptx_traffic traffic = {0};
        for (int row = 0; row < 8; row++) {
            const uint8_t *at = matrix_row(w, in, base, matrix * 8 + row, PTX_READ, &traffic);
            if (!at)
                return false;
            memcpy(elements[row], at, sizeof elements[row]);
        }
        ptx_access_count_shared(w->block, &traffic, 16);
        for (int lane = 0; lane < PTX_LANES; lane++) {
            const int i = lane / 4, j = lane % 4 * 2;
            const uint32_t low = transposed ? elements[j][i] : elements[i][j];
            const uint32_t high = transposed ? elements[j + 1][i] : elements[i][j + 1];
            results[matrix][lane] = low | high << 16;
        }
    }
    for (int matrix = 0; matrix < in->write_count; matrix++)
        memcpy(ptx_operand(w, in, matrix), results[matrix], sizeof results[matrix]);
    return true;
}

static bool stmatrix(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    const bool transposed = ptx_field(in, PTX_FIELD_TRANS);
    (void)mask;
    for (int matrix = 0; matrix < in->operand_count - 1; matrix++) {
        struct ptx_traffic traffic = {0};
        const uint16_t *source = ptx_operand(w, in, 1 + matrix);
        for (int row = 0; row < 8; row++) {
            uint8_t *at =
                matrix_row(w, in, &in->operands[0], matrix * 8 + row, PTX_WRITE, &traffic);
            if (!at)
                return false;
            for (int column = 0; column < 8; column++) {
                const int i = transposed ? column : row, j = transposed ? row : column;
                memcpy(at + column * 2, &source[(i * 4 + j / 2) * 2 + j % 2], 2);
            }
        }
        ptx_access_count_shared(w->block, &traffic, 16);
    }
    return true;
}

static bool movmatrix(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) {
    uint16_t elements[8][8];
    (void)mask;
    memcpy(elements, ptx_operand(w, in, 1), sizeof elements); /* lane order is row order */
    uint16_t *d = ptx_operand(w, in, 0);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            d[i * 8 + j] = elements[j][i];
    return true;
}

/* ---- m8n8k4: four products of 8×8×4, one a quad pair (lanes 4q..4q+3 and 16+4q..16+4q+3) ---- */
static int pair_lane(int quad, int index) {
    return quad * 4 + index % 4 + (index < 4 ? 0 : 16);
}

static float half_of(const struct ptx_warp *w, const struct ptx_instruction *in, int first,
                     int lane, int i) {
    return ptx_numbers_f16((uint16_t)(word(w, in, first + i / 2, lane) >> (i % 2 * 16)));
}

/* A row-major: lane `row` has its 4 columns; column-major: lane % 4 is the column, the upper four
 * lanes have rows 4-7. B mirrors it. */
static void read_quad(const struct ptx_warp *w, const struct ptx_instruction *in, int quad,
                      bool a_columns, bool b_rows, struct product *p) {
    const int a = in->write_count, b = a + 2;
    for (int index = 0; index < 8; index++) {
        const int lane = pair_lane(quad, index);
        for (int i = 0; i < 4; i++) {
            const int across = i + (index < 4 ? 0 : 4), k = index % 4;
            if (a_columns)
                p->a[across][k] = half_of(w, in, a, lane, i);
            else
                p->a[index][i] = half_of(w, in, a, lane, i);
            if (b_rows)
                p->b[k][across] = half_of(w, in, b, lane, i);
            else
                p->b[i][index] = half_of(w, in, b, lane, i);
        }
    }
}

/* Where accumulator `i` of a quad pair's lane stands, for f32. */
static void quad_place(int index, int i, int *row, int *column) {
    *row = (index & 1) + (i & 2) + (index < 4 ? 0 : 4);
    *column = (i & 4) + (index & 2) + (i & 1);
}

static bool mma_quads(struct ptx_warp *w, const struct ptx_instruction *in, bool a_columns,
                      bool b_rows) {
    const int c = in->operand_count - 8;
    for (int quad = 0; quad < 4; quad++) {
        struct product p = {0};
        int row, column;
        read_quad(w, in, quad, a_columns, b_rows, &p);
        for (int n = 0; n < 64; n++) {
            quad_place(n / 8, n % 8, &row, &column);
            p.c[row][column] = ptx_numbers_f32(word(w, in, c + n % 8, pair_lane(quad, n / 8)));
        }
        multiply(&p, 4);
        for (int n = 0; n < 64; n++) {
            quad_place(n / 8, n % 8, &row, &column);
            ((float *)ptx_operand(w, in, n % 8))[pair_lane(quad, n / 8)] = p.c[row][column];
        }
    }
    w->block->counters.matrix_instructions++;
    return true;
}

#define QUADS(name, a_columns, b_rows)                                                      \
    static bool name(struct ptx_warp *w, const struct ptx_instruction *in, uint32_t mask) { \
        (void)mask;                                                                         \
        return mma_quads(w, in, a_columns, b_rows);                                         \
    }
QUADS(mma_row_col, false, false)
QUADS(mma_row_row, false, true)
QUADS(mma_col_col, true, false)
QUADS(mma_col_row, true, true)

enum { SHAPED = PTX_MAY(COUNT_OF) | PTX_MAY(TRANS) };
#define MMA(shape, types, sm)                                                   \
    {                                                                           \
        "mma.sync.aligned." shape ".row.col." types, "Vvvv", PTX_MAY(SAT), mma, \
            PTX_FLOW_WHOLE_WARP, sm, 0                                          \
    }
#define QUAD_ROW(layout, run)                                                                      \
    {                                                                                              \
        "mma.sync.aligned.m8n8k4." layout ".f32.f16.f16.f32", "Vvvv", 0, run, PTX_FLOW_WHOLE_WARP, \
            70, 0                                                                                  \
    }

static const struct ptx_opcode rows[] = {
    MMA("m16n8k8", "f32.f16.f16.f32", 75),
    MMA("m16n8k8", "f16.f16.f16.f16", 75),
    MMA("m16n8k8", "f32.bf16.bf16.f32", 80),
    MMA("m16n8k4", "f32.tf32.tf32.f32", 80),
    MMA("m16n8k8", "f32.tf32.tf32.f32", 80),
    MMA("m16n8k16", "f32.f16.f16.f32", 80),
    MMA("m16n8k16", "f16.f16.f16.f16", 80),
    MMA("m16n8k16", "f32.bf16.bf16.f32", 80),
    MMA("m16n8k16", "s32.s8.s8.s32", 80),
    MMA("m16n8k16", "s32.u8.s8.s32", 80),
    MMA("m16n8k16", "s32.s8.u8.s32", 80),
    MMA("m16n8k16", "s32.u8.u8.s32", 80),
    MMA("m16n8k32", "s32.s8.s8.s32", 80),
    MMA("m16n8k32", "s32.u8.s8.s32", 80),
    MMA("m16n8k32", "s32.s8.u8.s32", 80),
    MMA("m16n8k32", "s32.u8.u8.s32", 80),
    MMA("m16n8k32", "f32.e4m3.e4m3.f32", 89),
    MMA("m16n8k32", "f32.e4m3.e5m2.f32", 89),
    MMA("m16n8k32", "f32.e5m2.e4m3.f32", 89),
    MMA("m16n8k32", "f32.e5m2.e5m2.f32", 89),
    QUAD_ROW("row.col", mma_row_col),
    QUAD_ROW("row.row", mma_row_row),
    QUAD_ROW("col.col", mma_col_col),
    QUAD_ROW("col.row", mma_col_row),
    {"ldmatrix.sync.aligned.m8n8.shared.b16", "Va", SHAPED, ldmatrix, PTX_FLOW_WHOLE_WARP, 75, 0},
    {"ldmatrix.sync.aligned.m8n8.shared::cta.b16", "Va", SHAPED, ldmatrix, PTX_FLOW_WHOLE_WARP, 75,
     0},
    {"stmatrix.sync.aligned.m8n8.shared.b16", "av", SHAPED, stmatrix, PTX_FLOW_WHOLE_WARP, 90, 0},
    {"movmatrix.sync.aligned.m8n8.trans.b16", "Rr", 0, movmatrix, PTX_FLOW_WHOLE_WARP, 75, 0},
};

const struct ptx_opcode_list ptx_matrix_opcodes = {rows, PTX_COUNT(rows)};
