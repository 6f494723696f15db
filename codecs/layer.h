/* One compressed layer of a request: a decoder, one block of its output on the way, and the bound on all of it. */
#ifndef CODECS_LAYER_H
#define CODECS_LAYER_H

#include "codecs/intake.h"

struct layer;
/* NULL with in->fault set: no memory. `what` is a literal that names the layer in messages. */
struct layer *layer_new(struct intake *in, enum coding coding, const char *what) MUST_CHECK;
/* A fault of the content goes to f, which is in->fault or the payload's; one of the sink's is kept until layer_end (see
 * layer.c). */
enum step layer_feed(struct layer *l, struct str *in, uint32_t *budget, intake_sink sink, void *ctx,
                     struct fault *f) MUST_CHECK;
/* After all input: passes on what is left, then checks that the content ended. The sink is not ended. */
enum step layer_end(struct layer *l, uint32_t *budget, intake_sink sink, void *ctx, struct fault *f) MUST_CHECK;
void layer_free(struct layer *l, struct intake *in); /* NULL is fine; may stay as in->spare */
void layer_drop_spare(struct intake *in);

#endif
