/* What must hold between options. */
#ifndef CONF_CHECK_H
#define CONF_CHECK_H

#include "conf/doc.h"

/* root: the document that c was read from, so that errors have a place. */
void check_all(const struct source *s, const struct conf *c, const struct doc_node *root);

#endif
