/* What every command with a model needs: the model opened, its tokenizer, threads, a backend and an
 * engine, made step by step so that a command stops where it has enough. The only file that knows
 * which backends exist is runtime.c. */
#ifndef CMD_RUNTIME_H
#define CMD_RUNTIME_H

#include "core/base/cpu_features.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "core/engine/engine.h"
#include "core/engine/weight_stream.h"
#include "core/job/budget.h"
#include "core/job/model_id.h"
#include "core/job/prompt.h"
#include "core/job/settings.h"
#include "core/model/model.h"
#include "core/profile/span_backend.h"
#include "tokenizer/tokenizer.h"

struct runtime {
    const struct settings *settings;
    struct arena *arena; /* the command line's */
    struct log log;
    const char *model_path;
    struct model *model;
    char sha256[SHA256_HEX_BYTES];
    struct tokenizer *tokenizer;
    struct chat_template *chat; /* NULL: plain text */
    struct view chat_source;    /* what it was parsed from */
    const char *architecture;   /* the text of --architecture, or NULL */
    struct cpu_features features;
    struct thread_pool *pool;
    struct backend *backend;
    struct span_backend spans; /* around the backend: what the engine computes with */
    struct engine *engine;
    struct span_recorder *recorder;
    bool profile; /* record in detail, against: */
    struct classify_roofs roofs;
    const atomic_int *stop; /* of the user's; NULL: signals just end the process */
    char numerics[64];
    int context; /* positions of a sequence */
    struct budget budget;
    bool streams_weights; /* from the tile cache, in every step */
    double load_ms;
};

/* The log on stderr, quiet or verbose as the settings say. */
void runtime_init(struct runtime *runtime, const struct settings *settings, struct arena *arena);
void runtime_deinit(struct runtime *runtime);
/* Engine and backend are not needed any more: weights that were packed are kept for the next start,
 * and their memory goes back. */
void runtime_close_engine(struct runtime *runtime);

/* Each opens what it names and what that needs. */
enum status runtime_open_model(struct runtime *runtime, struct error *error);
enum status runtime_open_tokenizer(struct runtime *runtime, struct error *error);
/* The chat template by the settings: --chat-template, the model's own, or none with
 * --no-chat-template. */
enum status runtime_open_template(struct runtime *runtime, struct error *error);
/* Threads and instruction set. */
enum status runtime_open_threads(struct runtime *runtime, struct error *error);
/* Threads if there are none yet, backend (not prepared), numerics, context. */
enum status runtime_open_backend(struct runtime *runtime, struct error *error);
/* Memory is checked; refused with numbers when it cannot be enough. Weights that do not fit are
 * streamed where that helps. */
enum status runtime_plan_memory(struct runtime *runtime, struct error *error);
/* Memory is said, then weights are prepared and the engine made. `kv_bytes`: what the queue needs
 * of the KV budget when that is known, else 0. */
enum status runtime_open_engine(struct runtime *runtime, uint64_t kv_bytes, struct error *error);

/* What all weights of the model take as the backend keeps them. */
uint64_t runtime_weights_bytes(const struct runtime *runtime);
/* Of them, about what a step reads anew. */
uint64_t runtime_step_bytes(const struct runtime *runtime);
/* What was read of streamed weights so far. */
struct weight_stream_totals runtime_streamed(const struct runtime *runtime);

struct engine_options runtime_engine_options(const struct runtime *runtime);

/* Whether the CPU backend computes. */
bool runtime_uses_cpu(const struct runtime *runtime);

/* Another backend beside the run's, for verify. */
enum status runtime_create_backend(struct runtime *runtime, int device, struct backend **backend,
                                   struct error *error);

/* A whole small file as text in the arena (prompts, templates), without a trailing newline. */
enum status runtime_read_text(struct runtime *runtime, const char *path, const char **text,
                              struct error *error);

#endif
