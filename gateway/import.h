/* `flamegate import DIR`: carries what an embedded store holds over into the store of the configuration. */
#ifndef GATEWAY_IMPORT_H
#define GATEWAY_IMPORT_H

#include "conf/conf.h"

/* dir: the other gateway's data_dir; nothing in it changes. May be repeated: what is there already stays as it is.
 * Writes what it did on standard output, what went wrong on standard error. The exit code. */
int import_run(const struct conf *c, const char *dir);

#endif
