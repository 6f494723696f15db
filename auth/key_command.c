/* `flamegate key create|list|revoke|hash`. */
#include "auth/key_command.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "auth/keyring.h"
#include "auth/secret.h"

enum { EXIT_GOOD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char usage_text[] =
    "usage: flamegate key create --name NAME --type server|reader|admin|browser\n"
    "                            [--project PROJECT] [--expires 90d] [--secret-file FILE] [--print]\n"
    "       flamegate key list\n"
    "       flamegate key revoke NAME\n"
    "       flamegate key hash [--secret-file FILE]\n"
    "\n"
    "create writes the new secret, alone, on standard output, and its hash into the keys file.\n"
    "  --project      the project that the key belongs to; \"default\" if it is not given\n"
    "  --expires      30m, 12h or 90d from now; never if it is not given\n"
    "  --secret-file  takes the secret from a file (- is standard input) instead of making one\n"
    "  --print        leaves the keys file alone; its new line goes to standard error\n"
    "hash reads a secret from standard input or a file and writes what the keys file holds of it.\n";

struct arguments {
    const char *name, *type, *project, *expires, *secret_file;
    bool print;
};

static int usage(const char *what, const char *which)
{
    fprintf(stderr, "flamegate key: %s%s%s\n%s", what, which ? " " : "", which ? which : "", usage_text);
    return EXIT_USAGE;
}

static int failed(const struct fault *f)
{
    fprintf(stderr, "flamegate key: %s\n", f->text);
    return EXIT_FAILED;
}

/* false: wrong use, said. What is not an option is left from argv[optind] on. */
static bool read_options(int argc, char **argv, struct arguments *a)
{
    static const struct option options[] = {
        {"name", required_argument, NULL, 'n'},
        {"type", required_argument, NULL, 't'},
        {"project", required_argument, NULL, 'p'},
        {"expires", required_argument, NULL, 'e'},
        {"print", no_argument, NULL, 'P'},
        {"secret-file", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0},
    };
    int c;

    optind = 0; /* main has used getopt before us */
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        const char **to = c == 'n'   ? &a->name
                          : c == 't' ? &a->type
                          : c == 'p' ? &a->project
                          : c == 'e' ? &a->expires
                          : c == 's' ? &a->secret_file
                                     : NULL;
        if (c == 'P')
            a->print = true;
        else if (to)
            *to = optarg;
        else {
            usage(c == ':' ? "an option lacks its value:" : "unknown option", argv[optind - 1]);
            return false;
        }
    }
    return true;
}

/* "90d" as seconds from now. */
static bool parse_expiry(const char *text, int64_t now, int64_t *at)
{
    char *end;

    errno = 0;
    long long n = strtoll(text, &end, 10);
    int64_t scale = str_eq(str_of(end), STR("d"))   ? 86400
                    : str_eq(str_of(end), STR("h")) ? 3600
                    : str_eq(str_of(end), STR("m")) ? 60
                                                    : 0;
    if (errno || end == text || text[0] < '0' || text[0] > '9' || scale == 0 || n < 1 || n > 36500LL * 86400 / scale)
        return false;
    *at = now + n * scale;
    return true;
}

/* One line of a file; line ends behind it do not count. */
static bool read_secret(const char *path, struct buf *out)
{
    char piece[4096];
    size_t n;
    bool standard = str_eq(str_of(path), STR("-"));
    FILE *f = standard ? stdin : fopen(path, "re");

    if (!f) {
        fprintf(stderr, "flamegate key: %s: %s\n", path, strerror(errno));
        return false;
    }
    while (out->len <= SECRET_BYTES_MAX + 2 && (n = fread(piece, 1, sizeof piece, f)) > 0)
        buf_add(out, piece, n);
    bool good = !ferror(f) && !out->failed;
    if (!standard)
        fclose(f);
    secret_wipe(piece, sizeof piece);
    while (out->len && (out->p[out->len - 1] == '\n' || out->p[out->len - 1] == '\r'))
        out->len--;
    if (!good || out->len == 0)
        fprintf(stderr, "flamegate key: %s: %s\n", path, good ? "holds no secret" : "cannot be read");
    return good && out->len > 0;
}

static int create_with(const struct arguments *a, struct key *k, struct str imported, const char *keys_file)
{
    char secret[SECRET_TEXT + 1];
    struct buf line = {0};
    struct fault f = {0};
    int code = EXIT_GOOD;

    if (key_create(keys_file, k, imported, a->print, secret, &line, &f) != E_OK) {
        code = failed(&f);
    } else {
        if (a->print)
            fprintf(stderr, "%.*s", STR_ARG(buf_view(&line)));
        else
            fprintf(stderr, "key \"%s\" (%s, project %s) is in %s\n", k->name, key_type_names[k->type], k->project,
                    keys_file);
        if (secret[0] && (printf("%s\n", secret) < 0 || fflush(stdout) != 0)) {
            fprintf(stderr, "flamegate key: the secret could not be written: %s\n", strerror(errno));
            code = EXIT_FAILED;
        }
    }
    secret_wipe(secret, sizeof secret);
    buf_free(&line);
    return code;
}

static int create(const struct arguments *a, const char *keys_file)
{
    struct buf imported = {0};
    struct key k = {.name = (char *)(uintptr_t)a->name, .enabled = true};

    if (!a->name || !a->type)
        return usage("create needs --name and --type", NULL);
    if (!key_type_parse(str_of(a->type), &k.type))
        return usage("no such type:", a->type);
    if (a->expires && !parse_expiry(a->expires, time(NULL), &k.expires_s))
        return usage("not a time from now such as 90d:", a->expires);
    k.project = (char *)(uintptr_t)(a->project ? a->project : "default");
    int code = EXIT_FAILED;
    if (!a->secret_file || read_secret(a->secret_file, &imported))
        code = create_with(a, &k, buf_view(&imported), keys_file);
    if (imported.p)
        secret_wipe(imported.p, imported.cap);
    buf_free(&imported);
    return code;
}

static int list(const char *keys_file)
{
    struct fault f = {0};
    struct keyring *ring = keyring_load(keys_file, &f);
    int64_t now = time(NULL);

    if (!ring)
        return failed(&f);
    printf("%-24s %-16s %-8s %-9s %s\n", "NAME", "PROJECT", "TYPE", "STATE", "EXPIRES");
    for (size_t i = 0; i < keyring_count(ring); i++) {
        const struct key *k = keyring_at(ring, i);
        char expires[TIME_TEXT] = "never";
        if (k->expires_s)
            key_time_format(k->expires_s, expires);
        const char *state = !k->enabled ? "revoked" : k->expires_s && k->expires_s <= now ? "expired" : "enabled";
        printf("%-24s %-16s %-8s %-9s %s\n", k->name, k->project, key_type_names[k->type], state, expires);
    }
    keyring_free(ring);
    return EXIT_GOOD;
}

static int revoke(const char *name, const char *keys_file)
{
    struct fault f = {0};

    if (!name)
        return usage("revoke needs the name of a key", NULL);
    if (key_revoke(keys_file, str_of(name), &f) != E_OK)
        return failed(&f);
    fprintf(stderr, "key \"%s\" is revoked\n", name);
    return EXIT_GOOD;
}

static int hash(const struct arguments *a)
{
    struct buf secret = {0};
    uint8_t out[SECRET_HASH];
    char text[2 * SECRET_HASH + 1];
    bool good = read_secret(a->secret_file ? a->secret_file : "-", &secret);

    if (good) {
        key_hash(buf_view(&secret), out);
        secret_hex(out, sizeof out, text);
        printf("blake2b-256:%s\n", text);
    }
    if (secret.p)
        secret_wipe(secret.p, secret.cap);
    buf_free(&secret);
    return good ? EXIT_GOOD : EXIT_FAILED;
}

int key_command(int argc, char **argv, const char *keys_file)
{
    struct arguments a = {0};
    const char *verb = argc > 1 ? argv[1] : "";

    if (!secret_init()) {
        fprintf(stderr, "flamegate key: there is no source of random bytes\n");
        return EXIT_FAILED;
    }
    if (argc < 2)
        return usage("create, list, revoke or hash?", NULL);
    if (!read_options(argc - 1, argv + 1, &a))
        return EXIT_USAGE;
    const char *word = optind < argc - 1 ? argv[1 + optind] : NULL; /* behind the verb */
    bool is_revoke = str_eq(str_of(verb), STR("revoke"));
    if (word && (!is_revoke || optind + 1 < argc - 1))
        return usage("unexpected", word);
    if (str_eq(str_of(verb), STR("create")))
        return create(&a, keys_file);
    if (str_eq(str_of(verb), STR("list")))
        return list(keys_file);
    if (is_revoke)
        return revoke(word ? word : a.name, keys_file);
    if (str_eq(str_of(verb), STR("hash")))
        return hash(&a);
    return usage("unknown command", verb);
}
