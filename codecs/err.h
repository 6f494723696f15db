/* What can go wrong, for everybody: one table. Reaches the tree through codecs/base.h. */
#ifndef CODECS_ERR_H
#define CODECS_ERR_H

/*
 * Everything that a client or an operator may be told: name, HTTP status, the `code` of the JSON
 * answer, the `reason` of the metric (design.md 5, operations.md 3), a default text.
 */
#define ERR_MAP(X)                                                                                                     \
    X(OK, 200, "", "", "ok")                                                                                           \
    X(BAD_REQUEST, 400, "invalid_argument", "bad_request", "bad request")                                              \
    X(BAD_FRAMING, 400, "invalid_argument", "bad_framing", "malformed HTTP request")                                   \
    X(BAD_ENCODING, 400, "invalid_argument", "bad_encoding", "body does not decompress")                               \
    X(BAD_INPUT, 400, "invalid_argument", "malformed_profile", "malformed payload")                                    \
    X(BAD_NAME, 400, "invalid_argument", "invalid_labels", "invalid name or labels")                                   \
    X(MISSING_LABELS, 400, "invalid_argument", "missing_labels", "missing labels")                                     \
    X(TOO_MANY_LABELS, 400, "invalid_argument", "max_label_names_per_series", "too many labels")                       \
    X(LABEL_NAME_LONG, 400, "invalid_argument", "label_name_too_long", "label name too long")                          \
    X(LABEL_VALUE_LONG, 400, "invalid_argument", "label_value_too_long", "label value too long")                       \
    X(DUPLICATE_LABEL, 400, "invalid_argument", "duplicate_label_names", "duplicate label name")                       \
    X(OUT_OF_WINDOW, 400, "invalid_argument", "not_in_ingestion_window", "outside of the accepted time window")        \
    X(CUMULATIVE, 400, "invalid_argument", "cumulative_profile", "cumulative since start; send deltas")                \
    X(NO_PROFILES, 400, "invalid_argument", "no_profiles", "no profiles received")                                     \
    X(TOO_MANY_SAMPLES, 400, "invalid_argument", "samples_limit", "too many samples")                                  \
    X(TOO_MANY_SAMPLE_LABELS, 400, "invalid_argument", "sample_labels_limit", "too many labels on a sample")           \
    X(TOO_MANY_PROFILES, 400, "invalid_argument", "profiles_limit", "too many profiles in one request")                \
    X(TOO_MANY_PARTS, 400, "invalid_argument", "parts_limit", "too many parts in a multipart body")                    \
    X(TOO_MANY_STRINGS, 400, "invalid_argument", "strings_limit", "too many strings")                                  \
    X(TOO_MANY_SERVICES, 400, "invalid_argument", "services_limit", "too many services in this project")               \
    X(TOO_MANY_SERIES, 400, "invalid_argument", "series_limit", "too many series in this project")                     \
    X(LENGTH_REQUIRED, 411, "invalid_argument", "bad_framing", "Content-Length required")                              \
    X(BODY_TOO_LARGE, 413, "invalid_argument", "body_size_limit_exceeded", "request body too large")                   \
    X(INFLATED_TOO_LARGE, 413, "invalid_argument", "decompressed_size", "decompressed body too large")                 \
    X(PROFILE_TOO_LARGE, 413, "invalid_argument", "profile_size_limit", "profile too large in memory")                 \
    X(URI_TOO_LONG, 414, "invalid_argument", "bad_framing", "request target too long")                                 \
    X(EXPECTATION_FAILED, 417, "invalid_argument", "bad_framing", "unknown expectation")                               \
    X(HEAD_TOO_LARGE, 431, "invalid_argument", "head_too_large", "request headers too large")                          \
    X(UNAUTHENTICATED, 401, "unauthenticated", "unauthenticated", "missing or unknown token")                          \
    X(FORBIDDEN, 403, "permission_denied", "permission_denied", "this key may not do that")                            \
    X(NOT_FOUND, 404, "not_found", "not_found", "no such object")                                                      \
    X(NO_ROUTE, 404, "unimplemented", "no_route", "no such path")                                                      \
    X(BAD_METHOD, 405, "unimplemented", "bad_method", "method not allowed")                                            \
    X(UNSUPPORTED_TYPE, 415, "unimplemented", "unsupported_media_type", "unsupported media type")                      \
    X(UNSUPPORTED_ENCODING, 415, "unimplemented", "unsupported_encoding", "unsupported content encoding")              \
    X(UNSUPPORTED_FRAMING, 501, "unimplemented", "bad_framing", "unsupported transfer encoding")                       \
    X(HTTP_VERSION, 505, "unimplemented", "bad_framing", "only HTTP/1.0 and HTTP/1.1 are served here")                 \
    X(RATE_LIMITED, 429, "resource_exhausted", "rate_limited", "rate limit of the project exceeded")                   \
    X(OVERLOADED, 503, "unavailable", "shed", "no capacity, retry later")                                              \
    X(NO_MEMORY, 503, "unavailable", "shed", "out of memory, retry later")                                             \
    X(STORE_DOWN, 503, "unavailable", "store_unavailable", "the store is not available, retry later")                  \
    X(DRAINING, 503, "unavailable", "draining", "shutting down, retry elsewhere")                                      \
    X(DEADLINE, 504, "deadline_exceeded", "deadline", "query deadline exceeded")                                       \
    X(CANCELLED, 499, "canceled", "canceled", "the client went away")                                                  \
    X(INTERNAL, 500, "internal", "internal", "internal error")
enum err {
#define X(name, status, code, reason, text) E_##name,
    ERR_MAP(X)
#undef X
        E_COUNT
};
int err_status(enum err e);
const char *err_code(enum err e);
const char *err_reason(enum err e);
const char *err_text(enum err e);

#endif
