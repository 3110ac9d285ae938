/* GGUF files that are well formed: values of every type and width, tensors, alignment, splits. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/weights/gguf.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/gguf_builder.h"

static char folder[] = "/tmp/sheaf-gguf-XXXXXX";

static void make_folder(void) {
    cr_assert(mkdtemp(folder));
}

static void remove_folder(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(gguf, .init = make_folder, .fini = remove_folder);

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static struct gguf *open_built(struct gguf_builder *builder) {
    struct error error = {0};
    struct gguf *gguf = NULL;
    const char *path = in_folder("m.gguf");
    gguf_builder_write(builder, path);
    gguf_builder_deinit(builder);
    cr_assert_eq(gguf_open(path, &gguf, &error), STATUS_OK, "%s", error.text);
    return gguf;
}

Test(gguf, integers_of_any_width_convert_when_they_fit) {
    struct gguf_builder builder;
    gguf_builder_init(&builder);
    gguf_builder_value(&builder, "u8", GGUF_U8, &(uint8_t){200}, 1);
    gguf_builder_value(&builder, "i8", GGUF_I8, &(int8_t){-7}, 1);
    gguf_builder_value(&builder, "u16", GGUF_U16, &(uint16_t){60000}, 2);
    gguf_builder_value(&builder, "i16", GGUF_I16, &(int16_t){-300}, 2);
    gguf_builder_u32(&builder, "u32", 4000000000u);
    gguf_builder_value(&builder, "i32", GGUF_I32, &(int32_t){-70000}, 4);
    gguf_builder_value(&builder, "u64", GGUF_U64, &(uint64_t){UINT64_MAX}, 8);
    gguf_builder_value(&builder, "i64", GGUF_I64, &(int64_t){INT64_MIN}, 8);
    gguf_builder_value(&builder, "bool", GGUF_BOOL, &(uint8_t){1}, 1);
    struct gguf *gguf = open_built(&builder);
    static const struct {
        const char *key;
        bool has_u64;
        uint64_t u;
        bool has_i64;
        int64_t i;
    } cases[] = {
        {"u8", true, 200, true, 200},
        {"i8", false, 0, true, -7},
        {"u16", true, 60000, true, 60000},
        {"i16", false, 0, true, -300},
        {"u32", true, 4000000000u, true, 4000000000},
        {"i32", false, 0, true, -70000},
        {"u64", true, UINT64_MAX, false, 0},
        {"i64", false, 0, true, INT64_MIN},
        {"bool", true, 1, true, 1},
    };
    cr_assert_eq(gguf_value_count(gguf), sizeof cases / sizeof cases[0]);
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const struct gguf_value *value = gguf_find(gguf, cases[n].key);
        uint64_t u = 0;
        int64_t i = 0;
        struct view string;
        cr_assert(value == gguf_value_at(gguf, n));
        cr_assert_eq(gguf_read_u64(value, &u), cases[n].has_u64, "%s", cases[n].key);
        cr_assert_eq(gguf_read_i64(value, &i), cases[n].has_i64, "%s", cases[n].key);
        cr_assert(u == cases[n].u && i == cases[n].i, "%s", cases[n].key);
        cr_assert_not(gguf_read_string(value, &string));
        cr_assert_not(gguf_read_array_i64(value, 0, &i));
    }
    gguf_close(gguf);
}

Test(gguf, floats_booleans_and_strings) {
    struct gguf_builder builder;
    gguf_builder_init(&builder);
    gguf_builder_value(&builder, "f32", GGUF_F32, &(float){0.1f}, 4);
    gguf_builder_value(&builder, "f64", GGUF_F64, &(double){0.1}, 8);
    gguf_builder_value(&builder, "no", GGUF_BOOL, &(uint8_t){0}, 1);
    gguf_builder_string(&builder, "name", "sm\xc3\xb6l");
    gguf_builder_string(&builder, "empty", "");
    gguf_builder_u32(&builder, "u32", 7);
    struct gguf *gguf = open_built(&builder);
    double number = 0;
    bool flag = true;
    struct view string;
    int64_t integer;
    cr_assert(gguf_read_f64(gguf_find(gguf, "f32"), &number) && number == (double)0.1f);
    cr_assert(gguf_read_f64(gguf_find(gguf, "f64"), &number) && number == 0.1);
    cr_assert(gguf_read_f64(gguf_find(gguf, "u32"), &number) && number == 7);
    cr_assert_not(gguf_read_f64(gguf_find(gguf, "no"), &number));
    cr_assert_not(gguf_read_i64(gguf_find(gguf, "f32"), &integer));
    cr_assert(gguf_read_bool(gguf_find(gguf, "no"), &flag) && !flag);
    cr_assert_not(gguf_read_bool(gguf_find(gguf, "u32"), &flag));
    cr_assert(gguf_read_string(gguf_find(gguf, "name"), &string) && view_is(string, "sm\xc3\xb6l"));
    cr_assert(gguf_read_string(gguf_find(gguf, "empty"), &string) && string.length == 0);
    cr_assert_null(gguf_find(gguf, "absent"));
    cr_assert_null(gguf_value_at(gguf, 6));
    gguf_close(gguf);
}

Test(gguf, arrays_are_read_by_element) {
    static const char *const words[] = {"", "ab", "\xff\xfe", "last"};
    struct gguf_builder builder;
    gguf_builder_init(&builder);
    gguf_builder_array(&builder, "i32", GGUF_I32, 3, (int32_t[]){1, -2, 3}, 12);
    gguf_builder_array(&builder, "f32", GGUF_F32, 2, (float[]){0.5f, -1.5f}, 8);
    gguf_builder_array(&builder, "none", GGUF_U8, 0, NULL, 0);
    gguf_builder_strings(&builder, "words", words, 4);
    struct gguf *gguf = open_built(&builder);
    int64_t integer = 0;
    double number = 0;
    struct view strings[4];
    const struct gguf_value *value = gguf_find(gguf, "i32");
    cr_assert(value->type == GGUF_ARRAY && value->element_type == GGUF_I32 && value->count == 3);
    cr_assert(gguf_read_array_i64(value, 1, &integer) && integer == -2);
    cr_assert(gguf_read_array_f64(value, 2, &number) && number == 3);
    cr_assert_not(gguf_read_array_i64(value, 3, &integer));
    cr_assert_not(gguf_read_array_strings(value, strings));
    cr_assert_not(gguf_read_i64(value, &integer));
    cr_assert(gguf_read_array_f64(gguf_find(gguf, "f32"), 1, &number) && number == -1.5);
    cr_assert_not(gguf_read_array_i64(gguf_find(gguf, "f32"), 1, &integer));
    cr_assert_eq(gguf_find(gguf, "none")->count, 0);
    value = gguf_find(gguf, "words");
    cr_assert(gguf_read_array_strings(value, strings));
    for (int i = 0; i < 4; i++)
        cr_assert(view_is(strings[i], words[i]));
    cr_assert_not(gguf_read_array_i64(value, 0, &integer));
    gguf_close(gguf);
}

Test(gguf, tensors_have_checked_shapes_and_point_at_their_bytes) {
    struct gguf_builder builder;
    gguf_builder_init(&builder);
    static const uint64_t flat[] = {3};
    static const uint64_t deep[] = {32, 2, 3};
    float numbers[] = {1, 2, 3};
    uint8_t blocks[6 * 34];
    for (size_t i = 0; i < sizeof blocks; i++)
        blocks[i] = (uint8_t)i;
    gguf_builder_tensor(&builder, "flat", 1, flat, QUANT_F32, numbers, sizeof numbers);
    gguf_builder_tensor(&builder, "deep", 3, deep, QUANT_Q8_0, blocks, sizeof blocks);
    struct gguf *gguf = open_built(&builder);
    cr_assert_eq(gguf_tensor_count(gguf), 2);
    const struct tensor *tensor = gguf_find_tensor(gguf, "deep");
    cr_assert(tensor == gguf_tensor_at(gguf, 1));
    cr_assert(tensor->dim_count == 3 && tensor->dims[0] == 32 && tensor->dims[2] == 3 &&
              tensor->dims[3] == 1);
    cr_assert(tensor->row_count == 6 && tensor->row_bytes == 34 && tensor->byte_count == 204);
    cr_assert(memcmp(tensor->bytes, blocks, sizeof blocks) == 0);
    cr_assert(memcmp(gguf_find_tensor(gguf, "flat")->bytes, numbers, sizeof numbers) == 0);
    cr_assert_null(gguf_find_tensor(gguf, "flatt"));
    cr_assert_null(gguf_tensor_at(gguf, 2));
    gguf_forget_tensor(gguf, tensor);
    cr_assert(memcmp(tensor->bytes, blocks, sizeof blocks) == 0, "forgotten pages come back");
    gguf_close(gguf);
}

Test(gguf, version_two_and_other_alignments_are_read) {
    static const uint64_t dims[] = {2};
    for (uint32_t alignment = 8; alignment <= 4096; alignment *= 2) {
        struct gguf_builder builder;
        gguf_builder_init(&builder);
        builder.version = 2;
        builder.alignment = alignment;
        gguf_builder_u32(&builder, "general.alignment", alignment);
        gguf_builder_tensor(&builder, "a", 1, dims, QUANT_F32, (float[]){1, 2}, 8);
        gguf_builder_tensor(&builder, "b", 1, dims, QUANT_F32, (float[]){3, 4}, 8);
        struct gguf *gguf = open_built(&builder);
        float row[2];
        tensor_unpack_row(gguf_find_tensor(gguf, "b"), 0, row);
        cr_assert(row[0] == 3 && row[1] == 4, "alignment %u", alignment);
        gguf_close(gguf);
    }
}

Test(gguf, an_empty_file_of_metadata_is_a_model_without_tensors) {
    struct gguf_builder builder;
    gguf_builder_init(&builder);
    struct gguf *gguf = open_built(&builder);
    cr_assert(gguf_value_count(gguf) == 0 && gguf_tensor_count(gguf) == 0);
    cr_assert_null(gguf_find(gguf, "x"));
    cr_assert_null(gguf_find_tensor(gguf, "x"));
    cr_assert(gguf_file_count(gguf) == 1 && gguf_file_bytes(gguf) == 32);
    gguf_close(gguf);
    gguf_close(NULL);
}

/* --- splits ---------------------------------------------------------------------------------- */

/* Writes shard `index` of `count`, holding one tensor, as the `name`. */
static void write_shard(const char *name, uint16_t index, uint16_t count, int32_t tensor_count,
                        const char *tensor_name) {
    static const uint64_t dims[] = {1};
    struct gguf_builder builder;
    gguf_builder_init(&builder);
    if (index == 0)
        gguf_builder_string(&builder, "general.architecture", "llama");
    gguf_builder_value(&builder, "split.no", GGUF_U16, &index, 2);
    gguf_builder_value(&builder, "split.count", GGUF_U16, &count, 2);
    gguf_builder_value(&builder, "split.tensors.count", GGUF_I32, &tensor_count, 4);
    gguf_builder_tensor(&builder, tensor_name, 1, dims, QUANT_F32, (float[]){(float)index}, 4);
    gguf_builder_write(&builder, in_folder(name));
    gguf_builder_deinit(&builder);
}

static void write_three_shards(void) {
    write_shard("m-00001-of-00003.gguf", 0, 3, 3, "a");
    write_shard("m-00002-of-00003.gguf", 1, 3, 3, "b");
    write_shard("m-00003-of-00003.gguf", 2, 3, 3, "c");
}

static void assert_refused(const char *name, enum status status, const char *reason) {
    struct error error = {0};
    struct gguf *gguf;
    cr_assert_eq(gguf_open(in_folder(name), &gguf, &error), status, "%s: %s", name, error.text);
    cr_assert_null(gguf);
    cr_assert(strstr(error.text, reason), "'%s' does not say '%s'", error.text, reason);
}

Test(gguf, any_shard_opens_all_of_them) {
    write_three_shards();
    static const char *const names[] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                                        "m-00003-of-00003.gguf"};
    for (int i = 0; i < 3; i++) {
        struct error error = {0};
        struct gguf *gguf;
        struct view architecture;
        float value;
        cr_assert_eq(gguf_open(in_folder(names[i]), &gguf, &error), STATUS_OK, "%s", error.text);
        cr_assert(gguf_file_count(gguf) == 3 && gguf_tensor_count(gguf) == 3);
        cr_assert(gguf_read_string(gguf_find(gguf, "general.architecture"), &architecture));
        cr_assert_str_eq(gguf_tensor_at(gguf, 2)->name, "c");
        tensor_unpack_row(gguf_find_tensor(gguf, "b"), 0, &value);
        cr_assert_eq(value, 1.0f);
        cr_assert_str_eq(gguf_file_path(gguf, 1), in_folder(names[1]));
        cr_assert_null(gguf_file_path(gguf, 3));
        gguf_forget_tensor(gguf, gguf_find_tensor(gguf, "c"));
        gguf_close(gguf);
    }
}

Test(gguf, broken_splits_are_named) {
    write_three_shards();
    cr_assert_eq(unlink(in_folder("m-00002-of-00003.gguf")), 0);
    assert_refused("m-00001-of-00003.gguf", STATUS_NOT_FOUND, "m-00002-of-00003.gguf");
    write_shard("m-00002-of-00003.gguf", 1, 4, 3, "b");
    assert_refused("m-00001-of-00003.gguf", STATUS_CORRUPT, "shard 2 of 4, not 2 of 3");
    write_shard("m-00002-of-00003.gguf", 0, 3, 3, "b");
    assert_refused("m-00003-of-00003.gguf", STATUS_CORRUPT, "shard 1 of 3, not 2 of 3");
    write_shard("m-00002-of-00003.gguf", 1, 3, 3, "a");
    assert_refused("m-00001-of-00003.gguf", STATUS_CORRUPT, "the tensor 'a' occurs twice");
    write_shard("m-00002-of-00003.gguf", 1, 3, 3, "b");
    write_shard("m-00001-of-00003.gguf", 0, 3, 4, "a");
    assert_refused("m-00001-of-00003.gguf", STATUS_CORRUPT, "3 tensors, not 4");
    write_shard("renamed.gguf", 0, 3, 3, "a");
    assert_refused("renamed.gguf", STATUS_NOT_FOUND, "-00001-of-00003.gguf");
    write_shard("x-00001-of-00003.gguf", 5, 3, 3, "a");
    assert_refused("x-00001-of-00003.gguf", STATUS_CORRUPT, "shard 6 of 3");
}

Test(gguf, every_allocation_of_opening_may_fail) {
    write_three_shards();
    char path[128];
    snprintf(path, sizeof path, "%s", in_folder("m-00002-of-00003.gguf"));
    int n = 0;
    bool failed;
    do {
        struct error error = {0};
        struct gguf *gguf;
        failing_malloc_arm(++n);
        enum status status = gguf_open(path, &gguf, &error);
        failed = failing_malloc_disarm();
        cr_assert_eq(status, failed ? STATUS_NO_MEMORY : STATUS_OK, "allocation %d: %s", n,
                     error.text);
        cr_assert_eq(gguf == NULL, failed);
        gguf_close(gguf);
    } while (failed);
    cr_assert_gt(n, 5);
}

Test(gguf, a_header_ends_where_the_first_tensor_begins) {
    write_three_shards();
    struct error error;
    struct gguf *gguf;
    char path[128];
    snprintf(path, sizeof path, "%s", in_folder("m-00001-of-00003.gguf"));
    cr_assert_eq(gguf_open(path, &gguf, &error), STATUS_OK);
    for (size_t i = 0; i < 3; i++) {
        const struct file_map *map = gguf_file_map(gguf, i);
        cr_expect_eq(map->bytes + gguf_file_header_bytes(gguf, i), gguf_tensor_at(gguf, i)->bytes);
    }
    gguf_close(gguf);
}
