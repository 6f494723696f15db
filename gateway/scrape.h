/* /metrics: gauges read off the parts of the process, and the text. */
#ifndef GATEWAY_SCRAPE_H
#define GATEWAY_SCRAPE_H

#include "gateway/app.h"
#include "gateway/reply.h"

#define GATEWAY_VERSION "0.1.0"

void scrape(struct app *app, struct reply *out);

#endif
