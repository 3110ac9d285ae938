/* The one forward pass: walks a model's ops and calls the backend. */
#ifndef CORE_MODEL_DECODER_H
#define CORE_MODEL_DECODER_H

#include "core/model/backend.h"

/* Compute one step; afterwards backend->ops->logits_view holds the sampled rows' logits. */
enum status decoder_step(const struct model *model, struct backend *backend,
                         const struct step_plan *plan, struct error *error);

#endif
