/* The reusable memory of one encoding thread; what it holds grows with the texts it meets. */
#include "tokenizer/tokenizer_state.h"

#include <stdlib.h>

struct tokenizer_scratch *tokenizer_scratch_create(void) {
    return calloc(1, sizeof(struct tokenizer_scratch));
}

void tokenizer_scratch_destroy(struct tokenizer_scratch *scratch) {
    if (!scratch)
        return;
    normalizer_deinit(&scratch->normalizer);
    bpe_deinit(&scratch->work);
    word_cache_deinit(&scratch->cache);
    free(scratch);
}
