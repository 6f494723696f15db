/* `flamegate migrate`: brings the schema of the sample store to what this program needs. */
#ifndef GATEWAY_MIGRATE_H
#define GATEWAY_MIGRATE_H

#include "conf/conf.h"

/* May be run at any time, also twice at once. Writes what it did on standard output, what went wrong on standard error;
 * an address may hold a password, so only its scheme is told. The exit code. */
int migrate_run(const struct conf *c);

#endif
