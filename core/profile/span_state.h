/* What the recorder does only for `sheaf profile`, for span.c only. */
#ifndef CORE_PROFILE_SPAN_STATE_H
#define CORE_PROFILE_SPAN_STATE_H

#include "core/profile/span.h"

enum status span_detail_create(struct span_recorder *recorder, struct error *error);
void span_detail_destroy(struct span_recorder *recorder);

void span_detail_begin(struct span_recorder *recorder, const struct step_plan *plan);
void span_detail_site(struct span_recorder *recorder, int site);
void span_detail_end(struct span_recorder *recorder);

#endif
