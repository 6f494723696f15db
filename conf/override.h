/* `projects`: options of one project in place of those for all (rates.*, and limits.* of what is in an upload). */
#ifndef CONF_OVERRIDE_H
#define CONF_OVERRIDE_H

#include "conf/option.h"

/* { shop: { limits: { samples: 500000 }, rates: { bytes: 4MiB } } } */
void overrides_set(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n);
void overrides_text(const struct conf *c, struct buf *out);
/* One number of an option that can be overridden, within its bounds; what is wrong is listed. In setting.c. */
bool option_number(const struct source *s, const struct option *o, const struct doc_node *n, uint64_t *v);
/* Puts it where the option's value is. */
void option_put(struct conf *c, const struct option *o, uint64_t v);
/* As a name is written, quoted where it has to be. */
void option_quoted(struct buf *b, struct str s);

#endif
