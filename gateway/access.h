/* Who sends a request: its credentials against the keys in force, and what its route asks for (product.md F2). */
#ifndef GATEWAY_ACCESS_H
#define GATEWAY_ACCESS_H

#include "auth/auth.h"
#include "conf/conf.h"
#include "gateway/head.h"
#include "gateway/route.h"

/* Copies: keys may be reloaded while the request lives. */
struct access {
    char *project, *name;
    enum key_type type;
    int64_t expires_s;
    bool anonymous;
};
/* keys NULL: nobody has one. E_UNAUTHENTICATED, E_FORBIDDEN (it is known whose key it is), E_NO_MEMORY. */
enum err access_check(struct access *a, const struct conf *c, const struct keyring *keys, const struct head *h,
                      enum route_who who, int64_t now_s, struct fault *f) MUST_CHECK;
void access_free(struct access *a);

#endif
