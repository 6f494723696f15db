/* The command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/key_command.h"
#include "backends/shares.h"
#include "conf/conf.h"
#include "gateway/certs.h"
#include "gateway/import.h"
#include "gateway/migrate.h"
#include "gateway/probe.h"
#include "gateway/scrape.h"
#include "gateway/serve.h"
#include "gateway/spool_command.h"

enum { EXIT_GOOD = 0, EXIT_OTHER = 1, EXIT_USAGE = 2, EXIT_CONFIG = 78 };

static const char usage_text[] =
    "usage: flamegate [--config FILE] COMMAND\n\n"
    "  serve [--port-file FILE]   run the gateway (SIGTERM drains, SIGHUP reloads)\n"
    "  check-config               read the configuration: 0 good, 78 bad\n"
    "  key create --name N --type server|browser|reader|admin [--project P] [--expires 90d] [--secret-file F] "
    "[--print]\n"
    "  key list | key revoke --name N | key hash\n"
    "  migrate                    bring PostgreSQL's schema to this version (serve does it too, unless migrate: "
    "manual)\n"
    "  import DIR                 carry what the embedded store in DIR (another data_dir) holds over into `samples`\n"
    "  spool ls|verify [--dir D]  what waits here for a store that is away: list it, or check every record of it\n"
    "  healthcheck                ask a running gateway on this machine whether it is ready\n"
    "  version\n\n"
    "Without --config: FLAMEGATE_CONFIG, else the defaults. Exit codes: 0 good, 2 usage, 78 bad configuration, 1 "
    "else.\n";

static int usage(FILE *to)
{
    fputs(usage_text, to);
    return EXIT_USAGE;
}

static int help(void)
{
    struct buf b = {0};

    fputs(usage_text, stdout);
    conf_help(&b);
    printf("\n%.*s", (int)b.len, b.len ? b.p : "");
    buf_free(&b);
    return EXIT_GOOD;
}

static struct conf *load(const char *path)
{
    struct conf_errors errors = {0};
    struct conf *c = conf_load(path, &errors);

    if (!c)
        fprintf(stderr, "%.*s", (int)errors.text.len, errors.text.len ? errors.text.p : "");
    buf_free(&errors.text);
    return c;
}

static int check_config(const char *path)
{
    struct conf *c = load(path);
    struct fault f = {.err = E_OK};
    const char *where = "listen: tls";

    if (!c)
        return EXIT_CONFIG;
    bool good = certs_check(c, &f);
    if (good) {
        where = "shares";
        good = share_store_check(str_of(c->shares), &f) == E_OK;
    }
    conf_free(c);
    if (good)
        puts("configuration is good");
    else
        fprintf(stderr, "%s: %s\n", where, f.text);
    return good ? EXIT_GOOD : EXIT_CONFIG;
}

static int run_serve(const char *path, int argc, char **argv)
{
    const char *port_file = NULL;

    if (argc == 3 && strcmp(argv[1], "--port-file") == 0)
        port_file = argv[2];
    else if (argc != 1)
        return usage(stderr);
    struct conf *c = load(path);
    return c ? serve(c, path, port_file) : EXIT_CONFIG;
}

static int run_key(const char *path, int argc, char **argv)
{
    struct conf *c = load(path);

    if (!c)
        return EXIT_CONFIG;
    int code = key_command(argc, argv, c->keys_file);
    conf_free(c);
    return code;
}

static int run_spool(const char *path, int argc, char **argv)
{
    struct conf *c = load(path);

    if (!c)
        return EXIT_CONFIG;
    int code = spool_command(argc - 1, argv + 1, c->data_dir);
    conf_free(c);
    return code;
}

static int healthcheck(const char *path)
{
    struct conf *c = load(path);

    if (!c)
        return EXIT_CONFIG;
    bool ok = probe_ready(c);
    conf_free(c);
    if (!ok)
        fputs("not ready\n", stderr);
    return ok ? EXIT_GOOD : EXIT_OTHER;
}

static int migrate(const char *path)
{
    struct conf *c = load(path);

    if (!c)
        return EXIT_CONFIG;
    int code = migrate_run(c);
    conf_free(c);
    return code;
}

static int import(const char *path, const char *dir)
{
    struct conf *c = load(path);

    if (!c)
        return EXIT_CONFIG;
    int code = import_run(c, dir);
    conf_free(c);
    return code;
}

static int run(const char *path, int argc, char **argv)
{
    const char *command = argv[0];

    if (strcmp(command, "serve") == 0)
        return run_serve(path, argc, argv);
    if (strcmp(command, "key") == 0)
        return run_key(path, argc, argv);
    if (strcmp(command, "spool") == 0)
        return run_spool(path, argc, argv);
    if (strcmp(command, "import") == 0 && argc == 2)
        return import(path, argv[1]);
    if (argc != 1)
        return usage(stderr);
    if (strcmp(command, "check-config") == 0)
        return check_config(path);
    if (strcmp(command, "migrate") == 0)
        return migrate(path);
    if (strcmp(command, "healthcheck") == 0)
        return healthcheck(path);
    if (strcmp(command, "version") == 0)
        return puts("flamegate " GATEWAY_VERSION) < 0;
    return strcmp(command, "--help") == 0 || strcmp(command, "help") == 0 ? help() : usage(stderr);
}

int main(int argc, char **argv)
{
    const char *path = NULL;
    int at = 1;

    if (argc > 2 && strcmp(argv[1], "--config") == 0) {
        path = argv[2];
        at = 3;
    }
    return at < argc ? run(path, argc - at, argv + at) : usage(stderr);
}
