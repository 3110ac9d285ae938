/* A small model with random weights, made in memory: every op a backend implements, in shapes that
 * fit no vector and no page. Running out of memory ends the test. */
#ifndef TESTS_SUPPORT_RANDOM_MODEL_H
#define TESTS_SUPPORT_RANDOM_MODEL_H

#include "core/model/model.h"

struct random_model_shape {
    int layers, width, heads, kv_heads, head_dim, ffn_width, vocab;
    enum rope_pairing pairing;
    int window; /* of every second layer; 0: none */
    enum gate_kind gate;
    bool biases;     /* on q|k|v */
    bool head_norms; /* on q and k */
    bool post_norms; /* on what a sublayer adds */
    float softcap;   /* on scores and logits */
    enum quant_id type;
};

struct model *random_model_create(const struct random_model_shape *shape, uint64_t seed);
void random_model_destroy(struct model *model);

#endif
