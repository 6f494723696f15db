/* `flamegate healthcheck`: asks the gateway of this machine whether it is ready. */
#ifndef GATEWAY_PROBE_H
#define GATEWAY_PROBE_H

#include "conf/conf.h"

/* GET /readyz on the admin listener, else on the first that needs no client certificate; at most a few seconds. */
bool probe_ready(const struct conf *c) MUST_CHECK;

#endif
