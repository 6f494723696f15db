/* The certificates of listeners: read at the start, and again when their files change. Connections that are there keep
 * what they were made with. */
#ifndef GATEWAY_CERTS_H
#define GATEWAY_CERTS_H

#include "gateway/listen.h"

/* Of a listener that is bound. One without TLS is fine. false: logged. */
bool certs_open(struct listener *l) MUST_CHECK;
/* All of them once more; where a file is bad the old ones stay. */
void certs_reload(struct listeners *all);
void certs_close(struct listeners *all);
/* Whether the files of a configuration can be used: for check-config. */
bool certs_check(const struct conf *c, struct fault *f) MUST_CHECK;

#endif
