/* Which path with which method does what: one table. */
#ifndef GATEWAY_ROUTE_H
#define GATEWAY_ROUTE_H

#include "conf/conf.h"
#include "gateway/target.h"

/* Name as in metrics, method, path (a trailing '*' is a prefix), who may, where. */
#define ROUTE_MAP(X)                                                                                                   \
    X(INGEST, "ingest", "POST", "/ingest", SEND, PUBLIC)                                                               \
    X(PUSH, "push", "POST", "/push.v1.PusherService/Push", SEND, PUBLIC)                                               \
    X(OTLP, "otlp", "POST", "/v1development/profiles", SEND, PUBLIC)                                                   \
    X(OTLP_GRPC, "otlp_grpc", "POST", "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",  \
      SEND, PUBLIC)                                                                                                    \
    X(VALIDATE, "validate", "GET", "/otlp/v1/validate", KEY, PUBLIC)                                                   \
    X(UPLOADS, "uploads", "GET", "/api/v1/uploads", LEDGER, PUBLIC)                                                    \
    X(QUERY, "query", "GET", "/api/v1/*", READ, PUBLIC)                                                                \
    X(HEALTHZ, "healthz", "GET", "/healthz", OPEN, BOTH)                                                               \
    X(READYZ, "readyz", "GET", "/readyz", OPEN, BOTH)                                                                  \
    X(READY, "ready", "GET", "/ready", OPEN, BOTH)                                                                     \
    X(METRICS, "metrics", "GET", "/metrics", OPEN, ADMIN)                                                              \
    X(ROOT, "root", "GET", "/", OPEN, PUBLIC)                                                                          \
    X(NONE, "none", "", "", OPEN, BOTH)
enum route {
#define X(id, name, method, path, who, where) ROUTE_##id,
    ROUTE_MAP(X)
#undef X
        ROUTES
};
extern const char *const route_names[ROUTES];

enum route_who { ROUTE_OPEN, ROUTE_KEY, ROUTE_SEND, ROUTE_READ, ROUTE_LEDGER };
enum route_where { ROUTE_PUBLIC = 1, ROUTE_ADMIN = 2, ROUTE_BOTH = 3 };

struct routed {
    enum route route;
    enum route_who who;
    struct str rest;   /* what a prefix route has behind it; borrows the target's path */
    const char *allow; /* with E_BAD_METHOD: for the Allow header */
};
/* E_OK; E_NO_ROUTE with a text that lists where profiles go; E_BAD_METHOD. HEAD is taken as GET. */
enum err route_find(const struct conf *c, enum route_where listener, struct str method, struct str path,
                    struct routed *out, struct fault *f) MUST_CHECK;

#endif
