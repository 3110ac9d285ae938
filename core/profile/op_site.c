/* The list follows core/model/decoder.c; span_backend.c asserts at each call that the two agree. */
#include "core/profile/op_site.h"

#include <stdlib.h>

#include "core/weights/tensor.h"

enum { SITES_AN_OP_MAX = 4 };

static void add(struct op_site_list *list, enum op_site_kind kind, const struct op *op,
                const struct linear *linear) {
    list->sites[list->count++] = (struct op_site){
        .kind = kind,
        .layer = op != NULL ? op->layer : -1,
        .kv_group = op != NULL && op->kind == OP_ATTENTION &&
                            (kind == SITE_ATTENTION || kind == SITE_KV_WRITE)
                        ? op->attention.kv_group
                        : -1,
        .linear = linear,
    };
}

static void add_attention(struct op_site_list *list, const struct op *op) {
    add(list, SITE_QKV, op, &op->attention.qkv);
    add(list, SITE_KV_WRITE, op, NULL);
    add(list, SITE_ATTENTION, op, NULL);
    add(list, SITE_ATTENTION_OUT, op, &op->attention.out);
}

static void add_mlp(struct op_site_list *list, const struct op *op) {
    add(list, SITE_GATE_UP, op, &op->mlp.gate_up);
    add(list, SITE_ACTIVATION, op, NULL);
    add(list, SITE_DOWN, op, &op->mlp.down);
}

static void add_op(struct op_site_list *list, const struct op *op) {
    if (op->kind == OP_ATTENTION)
        add_attention(list, op);
    else if (op->kind == OP_MLP)
        add_mlp(list, op);
    else if (op->kind == OP_EMBED)
        add(list, SITE_EMBED, op, NULL);
    else if (op->kind == OP_NORM)
        add(list, SITE_NORM, op, NULL);
    else if (op->kind == OP_ADD_RESIDUAL)
        add(list, SITE_RESIDUAL, op, NULL);
    else
        add(list, SITE_LOGITS, op, &op->logits.head);
}

static bool same_linear(const struct linear *a, const struct linear *b) {
    if (a == NULL || b == NULL)
        return a == b;
    if (a->in != b->in || a->part_count != b->part_count)
        return false;
    for (int i = 0; i < a->part_count; i++)
        if (a->parts[i]->row_count != b->parts[i]->row_count ||
            a->parts[i]->byte_count != b->parts[i]->byte_count)
            return false;
    return true;
}

static void number_work(struct op_site_list *list) {
    for (int i = 0; i < list->count; i++) {
        struct op_site *site = &list->sites[i];
        int known = 0;
        for (; known < list->work_count; known++) {
            const struct op_site *other = &list->sites[list->work_sites[known]];
            if (site->kind == other->kind && site->kv_group == other->kv_group &&
                same_linear(site->linear, other->linear))
                break;
        }
        if (known == list->work_count)
            list->work_sites[list->work_count++] = i;
        site->work = known;
    }
}

enum status op_site_list_create(const struct model *model, struct op_site_list *list,
                                struct error *error) {
    size_t most = (size_t)model->op_count * SITES_AN_OP_MAX + 2;
    *list = (struct op_site_list){.sites = calloc(most, sizeof *list->sites),
                                  .work_sites = calloc(most, sizeof *list->work_sites)};
    if (list->sites == NULL || list->work_sites == NULL) {
        op_site_list_destroy(list);
        return error_no_memory(error, "the profile's list of ops");
    }
    add(list, SITE_BEGIN, NULL, NULL);
    for (int i = 0; i < model->op_count; i++)
        add_op(list, &model->ops[i]);
    add(list, SITE_END, NULL, NULL);
    number_work(list);
    return STATUS_OK;
}

void op_site_list_destroy(struct op_site_list *list) {
    free(list->sites);
    free(list->work_sites);
    *list = (struct op_site_list){0};
}

const char *op_site_kind_name(enum op_site_kind kind) {
    static const char *const names[SITE_KIND_COUNT] = {
        "begin",    "embed",   "norm",       "qkv",  "kv_write", "attention", "attention_out",
        "residual", "gate_up", "activation", "down", "logits",   "end",
    };
    return names[kind];
}

bool op_site_is_matmul(enum op_site_kind kind) {
    return kind == SITE_QKV || kind == SITE_ATTENTION_OUT || kind == SITE_GATE_UP ||
           kind == SITE_DOWN || kind == SITE_LOGITS;
}
