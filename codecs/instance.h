/*
 * Labels that name one instance of a service rather than the service: pods, hosts, processes. Hours leave them out, so
 * that a thousand pods of a service become one row (design.md 6). One table, instance.c.
 */
#ifndef CODECS_INSTANCE_H
#define CODECS_INSTANCE_H

#include "codecs/profile.h"

/* Of a series. Case and '.', '_', '-' make no difference. */
bool label_is_instance(struct str name);
/* Whether hours leave it out: of a series because it is an instance label, of samples because it links to a trace. */
bool label_left_out(struct str name);

#endif
