/*
 * The configuration: one table of options (conf/options.def) gives this struct, the YAML loader, --help, the defaults
 * and the sample file. Names and meanings are the contract of api.md. conf/ fills a struct and knows nothing else.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include "codecs/base.h"
#include "conf/bounds.h"

/* "host:port"; port 0 takes any free one. */
struct conf_address {
    char *host;
    uint16_t port;
    bool proxy_protocol;        /* of a listener: every connection begins with a PROXY header */
    char *cert_file, *key_file; /* NULL: in the clear */
    char *client_ca_file;       /* clients must show a certificate of these; NULL: they are not asked */
    bool client_optional;       /* or may */
};

/* An address and how many of its bits count; IPv4 is ::ffff:a.b.c.d. */
struct conf_network {
    uint8_t base[16];
    uint8_t bits;
};

enum { CONF_SECRET_FILES = 8 };
enum { ROLE_INGEST = 1, ROLE_QUERY = 2 };
enum { MAY_SEND = 1, MAY_READ = 2 };
enum conf_log_format { LOG_LOGFMT, LOG_JSON };

/* A retention override: of a project ("shop") or of a service ("shop/checkout", or "checkout" in any project). */
struct conf_retention {
    char *key;
    uint32_t days;
};

struct conf {
    struct conf_address *listen;
    size_t n_listen;
    struct conf_address admin;
    bool admin_on;
    struct conf_network *trusted_proxies;
    size_t n_trusted_proxies;
    char *data_dir, *keys_file, *hash_key_file;
    char *samples, *shares; /* store addresses, "sqlite:" */
    char **prefixes;
    size_t n_prefixes;
    char **token_headers;
    size_t n_token_headers;
    int64_t window_past_ns, window_future_ns;    /* -1: off */
    uint32_t retention_days, retention_raw_days; /* raw 0: as long as the rest */
    struct conf_retention *retention_projects, *retention_services;
    size_t n_retention_projects, n_retention_services;
    uint64_t originals_max_bytes;
    uint32_t uploads_keep;
    uint64_t memory;
    struct limits limits;
    struct conf_rates rates;
    struct conf_override *overrides; /* `projects` */
    size_t n_overrides;
    uint32_t max_head_bytes, max_headers, max_connections, max_per_address, max_services,
        max_series;                                                       /* limits.head, limits.headers, ... */
    uint64_t head_ms, body_ms, idle_ms, write_ms, admission_ms, query_ms; /* timeouts.* */
    uint64_t drain_ms, shutdown_ms, max_age_ms;
    uint32_t max_requests; /* of a connection; 0: any number */
    unsigned roles;
    bool migrate_auto;
    uint64_t resend_ms;
    uint64_t spool_after_ms, spool_max_bytes;
    enum conf_log_format log_format;
    int log_level; /* 0 error .. 3 debug */
    uint64_t log_fold_ms;
    char *anonymous_project; /* NULL: no anonymous access */
    unsigned anonymous_may;
    const char *secret_files[CONF_SECRET_FILES]; /* of the options NAME_file */
    size_t n_secret_files;
};

/* Every error of a file, not only the first: "file:line:col: text" lines. */
struct conf_errors {
    struct buf text;
    unsigned count;
};

/* path NULL: FLAMEGATE_CONFIG, else the defaults. NULL: errors say why. The caller frees. */
struct conf *conf_load(const char *path, struct conf_errors *errors) MUST_CHECK;
struct conf *conf_parse(struct str yaml, const char *file_name, struct conf_errors *errors) MUST_CHECK;
void conf_free(struct conf *c);
/* Names of options that differ and need a restart ("listen"), comma separated, "" if none: for the log line of a
 * reload. */
void conf_restart_only(const struct conf *now, const struct conf *next, struct buf *names);
/*
 * Puts into `next` what `now` has of the options that need a restart, as copies: fields of one struct conf never move
 * into another, since each frees all of its own. limits.decoded stays under half of the memory that is in force. false:
 * out of memory.
 */
bool conf_keep_restart(struct conf *next, const struct conf *now) MUST_CHECK;
/* The options for --help; the sample configuration with every default (conf/flamegate.yaml is proven equal by a test).
 */
void conf_help(struct buf *out);
void conf_sample(struct buf *out);
void conf_text(const struct conf *c,
               struct buf *out); /* every option with its value: for comparing, it may hold secrets */
/* Whether an address (IPv4 as ::ffff:a.b.c.d) lies in trusted_proxies. */
bool conf_trusts(const struct conf *c, const uint8_t ip[16]);
/* Days of a service's data before rounding up to a class. */
uint32_t conf_retention_days(const struct conf *c, struct str project, struct str service);

#endif
