/* Arenas: alignment, the stated maximum, overflow of counts, reuse after a reset. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "core/base/arena.h"

Test(arena, allocations_are_aligned_and_do_not_overlap) {
    struct arena arena;
    arena_init(&arena, 256, 1 << 20);
    unsigned char *blocks[64];
    for (int i = 0; i < 64; i++) {
        blocks[i] = arena_alloc(&arena, (size_t)i + 1);
        cr_assert_not_null(blocks[i]);
        cr_assert_eq((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], i, (size_t)i + 1);
    }
    for (int i = 0; i < 64; i++)
        for (int j = 0; j <= i; j++)
            cr_assert_eq(blocks[i][j], i);
    arena_deinit(&arena);
}

Test(arena, a_request_larger_than_a_chunk_gets_its_own) {
    struct arena arena;
    arena_init(&arena, 64, 1 << 20);
    char *large = arena_alloc(&arena, 10000);
    cr_assert_not_null(large);
    memset(large, 1, 10000);
    cr_assert_not_null(arena_alloc(&arena, 8));
    arena_deinit(&arena);
}

Test(arena, the_maximum_is_never_passed) {
    struct arena arena;
    arena_init(&arena, 1024, 8192);
    int count = 0;
    while (arena_alloc(&arena, 100))
        count++;
    cr_assert_gt(count, 50);
    cr_assert_leq(arena.used_bytes, 8192);
    cr_assert_null(arena_alloc(&arena, 9000));
    arena_deinit(&arena);
    cr_assert_eq(arena.used_bytes, 0);
}

Test(arena, sizes_that_overflow_are_refused) {
    struct arena arena;
    arena_init(&arena, 1024, SIZE_MAX);
    cr_assert_null(arena_alloc(&arena, SIZE_MAX));
    cr_assert_null(arena_alloc(&arena, SIZE_MAX - 31));
    cr_assert_null(arena_calloc(&arena, SIZE_MAX / 2, 3));
    cr_assert_null(arena_copy_text(&arena, "x", SIZE_MAX));
    arena_deinit(&arena);
}

Test(arena, calloc_zeroes_reused_memory) {
    struct arena arena;
    arena_init(&arena, 1024, 1 << 20);
    memset(arena_alloc(&arena, 512), 0xFF, 512);
    arena_reset(&arena);
    const unsigned char *zeroed = arena_calloc(&arena, 16, 32);
    for (int i = 0; i < 512; i++)
        cr_assert_eq(zeroed[i], 0);
    arena_deinit(&arena);
}

Test(arena, reset_keeps_one_chunk_only) {
    struct arena arena;
    arena_init(&arena, 1024, 1 << 20);
    for (int i = 0; i < 100; i++)
        cr_assert_not_null(arena_alloc(&arena, 500));
    cr_assert_not_null(arena_alloc(&arena, 50000));
    arena_reset(&arena);
    cr_assert_leq(arena.used_bytes, 1024 + 64);
    cr_assert_not_null(arena_alloc(&arena, 1000));
    cr_assert_leq(arena.used_bytes, 1024 + 64);
    arena_deinit(&arena);
}

Test(arena, copied_text_ends_with_nul) {
    struct arena arena;
    arena_init(&arena, 64, 1024);
    cr_assert_str_eq(arena_copy_text(&arena, "abcdef", 3), "abc");
    cr_assert_str_eq(arena_copy_text(&arena, NULL, 0), "");
    arena_deinit(&arena);
}
