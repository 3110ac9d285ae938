/* The places of a forward pass where time is spent: every call that the decoder makes of a backend,
 * in its order, with the layer it is for. A profile is kept by these places, so that attention of
 * layer 7 can be told from the matmuls beside it. */
#ifndef CORE_PROFILE_OP_SITE_H
#define CORE_PROFILE_OP_SITE_H

#include "core/base/error.h"
#include "core/model/model.h"

enum op_site_kind {
    SITE_BEGIN, /* rotary tables, the list of tasks */
    SITE_EMBED,
    SITE_NORM,
    SITE_QKV,
    SITE_KV_WRITE, /* with q and k norms and rope */
    SITE_ATTENTION,
    SITE_ATTENTION_OUT,
    SITE_RESIDUAL,
    SITE_GATE_UP,
    SITE_ACTIVATION,
    SITE_DOWN,
    SITE_LOGITS,
    SITE_END, /* waits for the device */
    SITE_KIND_COUNT
};

struct op_site {
    enum op_site_kind kind;
    int layer;                   /* -1 outside the layers */
    int kv_group;                /* of attention and kv_write, else -1 */
    const struct linear *linear; /* of a matmul, else NULL */
    int work;                    /* sites with the same number ask for the same in any step */
};

struct op_site_list {
    struct op_site *sites; /* [count] in the decoder's order, begin and end included */
    int count;
    int work_count;
    int *work_sites; /* [work_count]: the first site of each */
};

enum status op_site_list_create(const struct model *model, struct op_site_list *list,
                                struct error *error);
void op_site_list_destroy(struct op_site_list *list);

/* "attention", "gate_up" */
const char *op_site_kind_name(enum op_site_kind kind);
bool op_site_is_matmul(enum op_site_kind kind);

#endif
