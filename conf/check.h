/* What must hold between options. */
#ifndef CONF_CHECK_H
#define CONF_CHECK_H

#include "conf/doc.h"

void check_all(const struct source *s, const struct conf *c);

#endif
