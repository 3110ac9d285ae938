/* GGUF files that lie: cut at every byte, with every header byte changed, and the public holes of
 * other readers (CVE-2024-21802 and its siblings, CVE-2025-53630, CVE-2026-27940, CVE-2026-33298,
 * ...), each as a small file. The bytes lie in front of an inaccessible page, so reading past them
 * faults. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/weights/gguf_parse.h"
#include "tests/support/gguf_builder.h"

/* A region whose last byte is followed by a page without access. */
struct guarded {
    uint8_t *end;
    uint8_t *region;
    size_t region_bytes;
};

static struct guarded guarded_create(size_t capacity) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t usable = (capacity + page - 1) / page * page;
    struct guarded guarded = {.region_bytes = usable + page};
    guarded.region = mmap(NULL, guarded.region_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(guarded.region != MAP_FAILED);
    guarded.end = guarded.region + usable;
    cr_assert_eq(mprotect(guarded.end, page, PROT_NONE), 0);
    return guarded;
}

static const uint8_t *guarded_copy(struct guarded *guarded, const uint8_t *bytes, size_t length) {
    if (length)
        memcpy(guarded->end - length, bytes, length);
    return guarded->end - length;
}

static void read_value(const struct gguf_value *value) {
    uint64_t u;
    int64_t i;
    double f;
    bool b;
    struct view string;
    gguf_read_u64(value, &u);
    gguf_read_i64(value, &i);
    gguf_read_f64(value, &f);
    gguf_read_bool(value, &b);
    if (gguf_read_string(value, &string) && string.length)
        cr_assert(string.bytes[string.length - 1] | 1);
    for (uint64_t n = 0; value->type == GGUF_ARRAY && n < value->count; n++) {
        gguf_read_array_i64(value, n, &i);
        gguf_read_array_f64(value, n, &f);
    }
    if (value->type == GGUF_ARRAY && value->element_type == GGUF_STRING) {
        struct view *strings = calloc(value->count + 1, sizeof *strings);
        cr_assert(gguf_read_array_strings(value, strings));
        free(strings);
    }
}

/* Whatever the parser lets through must be readable to its last byte. */
static void read_everything(const struct gguf_content *content) {
    for (size_t i = 0; i < content->value_count; i++)
        read_value(&content->values[i]);
    for (size_t i = 0; i < content->tensor_count; i++) {
        const struct tensor *tensor = &content->tensors[i];
        float *row = calloc(tensor->dims[0], sizeof *row);
        tensor_unpack_row(tensor, 0, row);
        tensor_unpack_row(tensor, tensor->row_count - 1, row);
        free(row);
    }
}

static enum status parse(const uint8_t *bytes, size_t length, struct error *error) {
    struct arena arena;
    struct gguf_content content;
    arena_init(&arena, 1 << 12, 1 << 24);
    enum status status = gguf_parse(bytes, length, &arena, &content, error);
    if (status == STATUS_OK)
        read_everything(&content);
    else
        cr_assert(error->text[0], "an error without a reason");
    arena_deinit(&arena);
    return status;
}

/* A small file with every kind of value and three tensors. */
static uint8_t *build_model(size_t *length, size_t *header_length) {
    static const char *const tokens[] = {"<unk>", "a", "", "bc"};
    static const uint64_t matrix[] = {32, 2};
    static const uint64_t vector[] = {5};
    uint8_t blocks[68] = {0, 0x3c, 1, 2, 3};
    struct gguf_builder builder;
    gguf_builder_init(&builder);
    gguf_builder_string(&builder, "general.architecture", "llama");
    gguf_builder_u32(&builder, "general.alignment", 32);
    gguf_builder_u32(&builder, "llama.block_count", 1);
    gguf_builder_value(&builder, "llama.rope.freq_base", GGUF_F32, &(float){1e4f}, 4);
    gguf_builder_value(&builder, "b", GGUF_BOOL, &(uint8_t){1}, 1);
    gguf_builder_value(&builder, "i", GGUF_I64, &(int64_t){-1}, 8);
    gguf_builder_strings(&builder, "tokenizer.ggml.tokens", tokens, 4);
    gguf_builder_array(&builder, "tokenizer.ggml.token_type", GGUF_I32, 4, (int32_t[]){2, 1, 1, 1},
                       16);
    gguf_builder_tensor(&builder, "token_embd.weight", 2, matrix, QUANT_Q8_0, blocks, 68);
    gguf_builder_tensor(&builder, "output_norm.weight", 1, vector, QUANT_F32, blocks, 20);
    gguf_builder_tensor(&builder, "blk.0.x", 2, matrix, QUANT_Q4_0, blocks, 36);
    uint8_t *bytes = gguf_builder_finish(&builder, length, header_length);
    gguf_builder_deinit(&builder);
    return bytes;
}

Test(gguf_hostile, a_file_cut_at_any_byte_is_an_error) {
    size_t length;
    uint8_t *bytes = build_model(&length, NULL);
    struct guarded guarded = guarded_create(length);
    struct error error = {0};
    cr_assert_eq(parse(guarded_copy(&guarded, bytes, length), length, &error), STATUS_OK, "%s",
                 error.text);
    for (size_t cut = 0; cut < length; cut++) {
        enum status status = parse(guarded_copy(&guarded, bytes, cut), cut, &error);
        cr_assert_eq(status, STATUS_CORRUPT, "cut at %zu of %zu: %s", cut, length, error.text);
    }
    munmap(guarded.region, guarded.region_bytes);
    free(bytes);
}

Test(gguf_hostile, no_changed_header_byte_makes_a_fault) {
    static const uint8_t patterns[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff, 0x7f};
    size_t length;
    size_t header_length;
    uint8_t *bytes = build_model(&length, &header_length);
    struct guarded guarded = guarded_create(length);
    size_t refused = 0;
    for (size_t at = 0; at < header_length; at++)
        for (size_t p = 0; p < sizeof patterns; p++) {
            struct error error = {0};
            bytes[at] ^= patterns[p];
            refused += parse(guarded_copy(&guarded, bytes, length), length, &error) != STATUS_OK;
            bytes[at] ^= patterns[p];
        }
    cr_assert(refused > header_length, "the checks see most changes: %zu", refused);
    munmap(guarded.region, guarded.region_bytes);
    free(bytes);
}

Test(gguf_hostile, no_changed_word_makes_a_fault) {
    static const uint64_t words[] = {0,
                                     1,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     0x100000000,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     0xffffffffffffffff,
                                     0xfffffffffffffff8,
                                     0x1000000000000000};
    size_t length;
    size_t header_length;
    uint8_t *bytes = build_model(&length, &header_length);
    struct guarded guarded = guarded_create(length);
    for (size_t at = 4; at + 8 <= header_length; at++)
        for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
            struct error error = {0};
            uint8_t *copy = guarded.end - length;
            guarded_copy(&guarded, bytes, length);
            memcpy(copy + at, &words[w], 8);
            parse(copy, length, &error);
        }
    munmap(guarded.region, guarded.region_bytes);
    free(bytes);
}

/* --- files made to be refused, by reason ------------------------------------------------------ */

static void assert_refused(struct gguf_builder *builder, enum status status, const char *reason) {
    struct error error = {0};
    size_t length;
    uint8_t *bytes = gguf_builder_finish(builder, &length, NULL);
    struct guarded guarded = guarded_create(length);
    enum status found = parse(guarded_copy(&guarded, bytes, length), length, &error);
    cr_expect_eq(found, status, "%s: '%s'", reason, error.text);
    cr_expect(strstr(error.text, reason), "'%s' does not say '%s'", error.text, reason);
    munmap(guarded.region, guarded.region_bytes);
    free(bytes);
    gguf_builder_deinit(builder);
}

static struct gguf_builder new_builder(void) {
    struct gguf_builder builder;
    gguf_builder_init(&builder);
    return builder;
}

static void assert_dims_refused(uint32_t count, const uint64_t *dims, uint32_t type,
                                const char *reason) {
    uint8_t data[64] = {0};
    struct gguf_builder builder = new_builder();
    gguf_builder_tensor(&builder, "t", count, dims, type, data, sizeof data);
    assert_refused(&builder, STATUS_CORRUPT, reason);
}

Test(gguf_hostile, magic_versions_and_byte_order) {
    struct error error = {0};
    cr_assert_eq(parse((const uint8_t *)"PK\3\4", 4, &error), STATUS_CORRUPT);
    cr_assert(strstr(error.text, "not a GGUF file"));
    cr_assert_eq(parse(NULL, 0, &error), STATUS_CORRUPT);
    struct gguf_builder builder = new_builder();
    builder.version = 1;
    assert_refused(&builder, STATUS_UNSUPPORTED, "GGUF version 1");
    builder = new_builder();
    builder.version = 0x03000000;
    assert_refused(&builder, STATUS_UNSUPPORTED, "big-endian");
    builder = new_builder();
    builder.version = 4;
    assert_refused(&builder, STATUS_UNSUPPORTED, "GGUF version 4");
}

Test(gguf_hostile, counts_that_cannot_fit) {
    static const uint64_t counts[] = {1, 1 << 21, 1ull << 32, 1ull << 58, 1ull << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct gguf_builder builder = new_builder();
        builder.value_count = counts[i];
        assert_refused(&builder, STATUS_CORRUPT, "metadata entries do not fit");
        builder = new_builder();
        builder.tensor_count = counts[i];
        assert_refused(&builder, STATUS_CORRUPT, "tensors do not fit");
    }
}

Test(gguf_hostile, string_and_array_lengths_that_wrap) {
    static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 7, 1ull << 63, 1ull << 32, 100};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct gguf_builder builder = new_builder();
        gguf_builder_value(&builder, "s", GGUF_STRING, &lengths[i], 8);
        assert_refused(&builder, STATUS_CORRUPT, "key 's': the file ends inside a string");
        for (uint32_t type = GGUF_U8; type <= GGUF_F64; type++) {
            if (type == GGUF_ARRAY)
                continue;
            builder = new_builder();
            gguf_builder_array(&builder, "a", type, lengths[i], "12345678", 8);
            assert_refused(&builder, STATUS_CORRUPT, "key 'a': an array of");
        }
    }
    struct gguf_builder builder = new_builder();
    uint64_t words[2] = {0, 1ull << 40};
    gguf_builder_array(&builder, "a", GGUF_STRING, 2, words, sizeof words);
    assert_refused(&builder, STATUS_CORRUPT, "the file ends inside a string");
}

Test(gguf_hostile, keys_and_names) {
    struct gguf_builder builder = new_builder();
    gguf_builder_u32(&builder, "", 1);
    assert_refused(&builder, STATUS_CORRUPT, "metadata entry 0: a metadata key is 0 bytes long");
    builder = new_builder();
    gguf_builder_u32(&builder, "\033[2Jboo", 1);
    assert_refused(&builder, STATUS_CORRUPT, "the control byte 0x1b");
    builder = new_builder();
    gguf_builder_u32(&builder, "same", 1);
    gguf_builder_u32(&builder, "other", 1);
    gguf_builder_string(&builder, "same", "x");
    assert_refused(&builder, STATUS_CORRUPT, "the key 'same' occurs twice");
    static const uint64_t dims[] = {1};
    char long_name[66] = {0};
    memset(long_name, 'n', 65);
    builder = new_builder();
    gguf_builder_tensor(&builder, long_name, 1, dims, QUANT_F32, (float[]){1}, 4);
    assert_refused(&builder, STATUS_CORRUPT, "tensor 0: a tensor's name is 65 bytes long");
}

Test(gguf_hostile, value_types) {
    struct gguf_builder builder = new_builder();
    gguf_builder_value(&builder, "k", 13, "12345678", 8);
    assert_refused(&builder, STATUS_CORRUPT, "key 'k': unknown metadata type 13");
    builder = new_builder();
    gguf_builder_array(&builder, "k", 0xffffffff, 1, "12345678", 8);
    assert_refused(&builder, STATUS_CORRUPT, "unknown metadata type 4294967295");
    builder = new_builder();
    gguf_builder_array(&builder, "k", GGUF_ARRAY, 1, "1234567812345678", 16);
    assert_refused(&builder, STATUS_UNSUPPORTED, "arrays of arrays");
    builder = new_builder();
    gguf_builder_value(&builder, "k", GGUF_BOOL, "\2", 1);
    assert_refused(&builder, STATUS_CORRUPT, "a boolean has the value 2");
}

Test(gguf_hostile, alignments) {
    static const uint32_t bad[] = {0, 1, 4, 7, 24, 33, 0xffffffff};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct gguf_builder builder = new_builder();
        gguf_builder_u32(&builder, "general.alignment", bad[i]);
        assert_refused(&builder, STATUS_CORRUPT, "not a power of two of 8 or more");
    }
    struct gguf_builder builder = new_builder();
    gguf_builder_value(&builder, "general.alignment", GGUF_U64, &(uint64_t){1ull << 63}, 8);
    assert_refused(&builder, STATUS_CORRUPT, "not a power of two of 8 or more");
    builder = new_builder();
    gguf_builder_string(&builder, "general.alignment", "32");
    assert_refused(&builder, STATUS_CORRUPT, "not a positive integer");
}

Test(gguf_hostile, dimension_products_that_wrap) {
    static const uint64_t wraps_to_zero[] = {1ull << 32, 1ull << 32};
    static const uint64_t wraps_small[] = {32, (1ull << 59) + 1};
    static const uint64_t strides[] = {1ull << 22, (1ull << 42) + 1};
    static const uint64_t four[] = {1 << 16, 1 << 16, 1 << 16, 1 << 16};
    static const uint64_t negative[] = {1ull << 63};
    static const uint64_t past_the_end[] = {1ull << 40};
    static const uint64_t bytes_wrap[] = {1ull << 62};
    assert_dims_refused(2, wraps_to_zero, QUANT_F32, "the product of its dimensions overflows");
    assert_dims_refused(2, wraps_small, QUANT_Q8_0, "the product of its dimensions overflows");
    assert_dims_refused(2, strides, QUANT_F32, "the product of its dimensions overflows");
    assert_dims_refused(4, four, QUANT_F16, "the product of its dimensions overflows");
    assert_dims_refused(1, negative, QUANT_F32, "the product of its dimensions overflows");
    assert_dims_refused(1, bytes_wrap, QUANT_F32, "the product of its dimensions overflows");
    assert_dims_refused(1, past_the_end, QUANT_F32, "pass the end of the file");
}

Test(gguf_hostile, dimension_counts_and_rows) {
    static const uint64_t five[] = {1, 1, 1, 1, 1};
    static const uint64_t zero[] = {4, 0};
    static const uint64_t odd_row[] = {48};
    static const uint64_t odd_super_row[] = {896};
    assert_dims_refused(5, five, QUANT_F32, "5 dimensions, 1 to 4 are allowed");
    assert_dims_refused(0, NULL, QUANT_F32, "0 dimensions");
    assert_dims_refused(2, zero, QUANT_F32, "dimension 1 is zero");
    assert_dims_refused(1, odd_row, QUANT_Q4_0, "rows of 48 values are no multiple of Q4_0's 32");
    assert_dims_refused(1, odd_super_row, QUANT_Q6_K, "no multiple of Q6_K's 256");
}

Test(gguf_hostile, unknown_types_are_refused_by_name) {
    static const struct {
        uint32_t id;
        const char *name;
    } cases[] = {{4, "Q4_2 (removed)"},
                 {39, "MXFP4"},
                 {26, "I32"},
                 {1000, "type 1000"},
                 {31, "Q4_0_4_4 (removed)"},
                 {0xffffffff, "type 4294967295"}};
    static const uint64_t dims[] = {32};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t data[256] = {0};
        char reason[96];
        struct gguf_builder builder = new_builder();
        gguf_builder_tensor(&builder, "blk.0.w", 1, dims, cases[i].id, data, sizeof data);
        snprintf(reason, sizeof reason, "tensor 'blk.0.w': tensors of type %s are not supported",
                 cases[i].name);
        assert_refused(&builder, STATUS_UNSUPPORTED, reason);
    }
}

Test(gguf_hostile, offsets_outside_misaligned_or_overlapping) {
    static const uint64_t dims[] = {16};
    static const uint64_t offsets[] = {UINT64_MAX - 31, 1ull << 63, 64, 1ull << 32};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        struct gguf_builder builder = new_builder();
        gguf_builder_tensor(&builder, "a", 1, dims, QUANT_F32, (float[16]){0}, 64);
        gguf_builder_entry(&builder, "b", 1, dims, QUANT_F32, offsets[i]);
        assert_refused(&builder, STATUS_CORRUPT, "tensor 'b': its 64 bytes at offset");
    }
    struct gguf_builder builder = new_builder();
    gguf_builder_tensor(&builder, "a", 1, dims, QUANT_F32, (float[32]){0}, 128);
    gguf_builder_entry(&builder, "b", 1, dims, QUANT_F32, 8);
    assert_refused(&builder, STATUS_CORRUPT, "tensor 'b': offset 8 is not aligned to 32");
    builder = new_builder();
    gguf_builder_tensor(&builder, "a", 1, dims, QUANT_F32, (float[32]){0}, 128);
    gguf_builder_entry(&builder, "b", 1, dims, QUANT_F32, 32);
    assert_refused(&builder, STATUS_CORRUPT, "'a' and 'b' overlap");
}

Test(gguf_hostile, many_equal_keys_cost_no_quadratic_time) {
    struct gguf_builder builder = new_builder();
    char key[16];
    for (int i = 0; i < 100000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        gguf_builder_value(&builder, key, GGUF_U8, "", 1);
    }
    gguf_builder_value(&builder, "k99999", GGUF_U8, "", 1);
    assert_refused(&builder, STATUS_CORRUPT, "the key 'k99999' occurs twice");
}
