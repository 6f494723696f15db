/* A listener of the configuration: an address, or { address, tls: {...}, proxy_protocol }. */
#ifndef CONF_LISTENER_H
#define CONF_LISTENER_H

#include "conf/option.h"

/* Both false when something is wrong with the node; it has been listed. */
bool listener_address(const struct source *s, const struct option *o, const struct doc_node *n,
                      struct conf_address *a) MUST_CHECK;
bool listener_set(const struct source *s, const struct option *o, const struct doc_node *n,
                  struct conf_address *a) MUST_CHECK;

#endif
