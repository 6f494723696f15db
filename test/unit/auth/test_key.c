/* Keys on disk: made, listed, revoked; by the functions and by the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "auth/key_command.h"
#include "auth/keyring.h"
#include "auth/secret.h"

static char folder[] = "/tmp/flamegate-keys-XXXXXX";
static char keys[64], secret_path[64];
static char out[65536], err[65536]; /* of the last command */

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return 1;
    snprintf(keys, sizeof keys, "%s/keys.yaml", folder);
    snprintf(secret_path, sizeof secret_path, "%s/secret", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(keys);
    unlink(secret_path);
    return rmdir(folder); /* fails if a temporary file was left behind */
}

static int forget_keys(void **state)
{
    (void)state;
    unlink(keys);
    return 0;
}

static void slurp(const char *path, char *to, size_t cap)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    to[fread(to, 1, cap - 1, f)] = '\0';
    fclose(f);
}

static void spill(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* Runs `flamegate key WORDS` in a child with its outputs in files. */
static int run(const char *words, const char *input)
{
    char copy[512], *argv[32] = {"key"}, *save = NULL, path[96];
    int argc = 1, status;

    snprintf(copy, sizeof copy, "%s", words);
    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    snprintf(path, sizeof path, "%s.in", folder);
    spill(path, input ? input : "");
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bool good = freopen(path, "r", stdin) != NULL;
        snprintf(path, sizeof path, "%s.out", folder);
        good = good && freopen(path, "w", stdout) != NULL;
        snprintf(path, sizeof path, "%s.err", folder);
        good = good && freopen(path, "w", stderr) != NULL;
        int code = good ? key_command(argc, argv, keys) : 99;
        fflush(NULL);
        _exit(code);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    unlink(path);
    snprintf(path, sizeof path, "%s.out", folder);
    slurp(path, out, sizeof out);
    unlink(path);
    snprintf(path, sizeof path, "%s.err", folder);
    slurp(path, err, sizeof err);
    unlink(path);
    snprintf(path, sizeof path, "%s.in", folder);
    unlink(path);
    return WEXITSTATUS(status);
}

static struct keyring *load(void)
{
    struct fault f = {0};
    struct keyring *r = keyring_load(keys, &f);
    if (!r)
        fail_msg("%s", f.text);
    return r;
}

static void test_create(void **state)
{
    (void)state;
    int64_t now = time(NULL);

    assert_int_equal(run("create --name web --type server --project shop --expires 90d", NULL), 0);
    assert_int_equal(strlen(out), SECRET_TEXT + 1); /* the secret alone, and its line end */
    assert_int_equal(strspn(out, "0123456789abcdef"), SECRET_TEXT);
    assert_null(strstr(err, "blake2b")); /* nothing of the secret beside it */
    struct keyring *r = load();
    const struct key *k = keyring_find(r, (struct str){out, SECRET_TEXT}, now);
    assert_non_null(k);
    assert_string_equal(k->name, "web");
    assert_string_equal(k->project, "shop");
    assert_int_equal(k->type, KEY_SERVER);
    assert_true(k->expires_s >= now + 90 * 86400 && k->expires_s <= now + 90 * 86400 + 60);
    keyring_free(r);

    struct stat st;
    assert_int_equal(stat(keys, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);

    assert_int_equal(run("create --name=page --type=reader", NULL), 0);
    r = load();
    assert_int_equal(keyring_count(r), 2);
    assert_string_equal(keyring_at(r, 1)->project, "default");
    assert_int_equal(keyring_at(r, 1)->expires_s, 0);
    keyring_free(r);

    assert_int_equal(run("create --name web --type reader", NULL), 1);
    assert_non_null(strstr(err, "there is a key named \"web\" already"));
    assert_string_equal(out, "");
}

static void test_usage(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "make",
        "create",
        "create --name a",
        "create --type server",
        "create --name a --type writer",
        "create --name a --type server --expires 90",
        "create --name a --type server --expires -1d",
        "create --name a --type server --expires 0d",
        "create --name a --type server --expires 99999999d",
        "create --name a --type server --expires soon",
        "create --name a --type server --colour red",
        "create --name a --type server extra",
        "create --name",
        "revoke",
        "revoke a b",
        "list all",
        "hash secret",
    };
    for (size_t i = 0; i < COUNTOF(wrong); i++) {
        if (run(wrong[i], NULL) != 2)
            fail_msg("not refused: key %s", wrong[i]);
        assert_string_equal(out, "");
        assert_non_null(strstr(err, "usage:"));
    }
    assert_int_equal(access(keys, F_OK), -1);
}

static void test_bad_names(void **state)
{
    (void)state;
    assert_int_equal(run("create --name a --type server --project a/b", NULL), 1);
    assert_non_null(strstr(err, "a project's name has"));
    assert_int_equal(run("create --name a\nb --type server", NULL), 1);
    assert_non_null(strstr(err, "a key's name has"));
    assert_int_equal(access(keys, F_OK), -1);
}

static void test_print(void **state)
{
    (void)state;
    struct fault f = {0};

    assert_int_equal(run("create --name web --type server --print", NULL), 0);
    assert_int_equal(strlen(out), SECRET_TEXT + 1);
    assert_int_equal(access(keys, F_OK), -1);
    struct keyring *r = keyring_parse(str_of(err), "line", &f); /* the line is the whole of standard error */
    assert_non_null(r);
    assert_non_null(keyring_find(r, (struct str){out, SECRET_TEXT}, 0));
    keyring_free(r);
}

static void test_import(void **state)
{
    (void)state;
    static const struct {
        const char *secret, *objection; /* NULL: good */
    } t[] = {
        {"0123456789abcdef0123456789abcdef\n", NULL},
        {"0123456789abcdef0123456789abcde\n", "under 128 bits"},
        {"3141592653589793238462643383279502884197", NULL},
        {"31415926535897932384626433832795028841", "under 128 bits"},
        {"Zq8vLr2_XkW0pTn5.Ygh~m", NULL},
        {"Zq8vLr2_XkW0pTn5.Ygh~", "under 128 bits"},
        {"lab-token", "under 128 bits"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "repeats"},
        {"Zq8vLr2_XkW0p Tn5.Ygh~m", "only visible ASCII"},
        {"Zq8vLr2_XkW0p\nTn5.Ygh~m", "only visible ASCII"},
        {"\n", "holds no secret"},
        {"", "holds no secret"},
    };
    for (size_t i = 0; i < COUNTOF(t); i++) {
        char words[200];
        unlink(keys);
        spill(secret_path, t[i].secret);
        snprintf(words, sizeof words, "create --name k --type server --secret-file %s", secret_path);
        assert_int_equal(run(words, NULL), t[i].objection ? 1 : 0);
        assert_string_equal(out, ""); /* whoever has it does not need it again */
        if (t[i].objection) {
            assert_non_null(strstr(err, t[i].objection));
            continue;
        }
        struct keyring *r = load();
        assert_non_null(keyring_find(r, str_trim(str_of(t[i].secret)), 0));
        keyring_free(r);
    }
    assert_int_equal(run("create --name stdin --type server --secret-file -", "0123456789abcdef0123456789abcdef"), 0);
    assert_int_equal(run("create --name again --type server --secret-file -", "0123456789abcdef0123456789abcdef"), 1);
    assert_non_null(strstr(err, "have the same secret"));
    assert_int_equal(run("create --name none --type server --secret-file /nonexistent", NULL), 1);
}

static void test_list_and_revoke(void **state)
{
    (void)state;
    assert_int_equal(run("list", NULL), 1);
    assert_int_equal(run("create --name web --type server", NULL), 0);
    char secret[SECRET_TEXT + 1];
    snprintf(secret, sizeof secret, "%.*s", SECRET_TEXT, out);
    assert_int_equal(run("create --name page --type reader --project shop --expires 1h", NULL), 0);
    assert_int_equal(run("revoke nobody", NULL), 1);
    assert_non_null(strstr(err, "no key named \"nobody\""));
    assert_int_equal(run("revoke web", NULL), 0);
    assert_int_equal(run("revoke --name web", NULL), 0); /* twice is fine */
    struct keyring *r = load();
    assert_int_equal(keyring_count(r), 2);
    assert_null(keyring_find(r, str_of(secret), 0));
    keyring_free(r);
    assert_int_equal(run("list", NULL), 0);
    assert_non_null(strstr(out, "revoked"));
    assert_non_null(strstr(out, "enabled"));
    assert_null(strstr(out, secret));
    assert_int_equal(run("create --name web --type server", NULL), 1); /* its name is not given away */
}

static void test_hash(void **state)
{
    (void)state;
    assert_int_equal(run("hash", "abc\n"), 0);
    assert_string_equal(out, "blake2b-256:bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319\n");
    assert_int_equal(run("hash", ""), 1);
}

/* A file that cannot be read as keys is never replaced. */
static void test_spoiled_file_stays(void **state)
{
    (void)state;
    char text[100];

    spill(keys, "- { name: half");
    assert_int_equal(run("create --name web --type server", NULL), 1);
    assert_string_equal(out, "");
    slurp(keys, text, sizeof text);
    assert_string_equal(text, "- { name: half");
    assert_int_equal(run("revoke web", NULL), 1);
}

static void test_link_stays(void **state)
{
    (void)state;
    char target[96];
    struct stat st;

    snprintf(target, sizeof target, "%s/real.yaml", folder);
    assert_int_equal(run("create --name web --type server", NULL), 0);
    assert_int_equal(rename(keys, target), 0);
    assert_int_equal(symlink("real.yaml", keys), 0);
    assert_int_equal(run("create --name page --type reader", NULL), 0);
    assert_int_equal(lstat(keys, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    struct keyring *r = load();
    assert_int_equal(keyring_count(r), 2);
    keyring_free(r);
    unlink(target);
}

/* Two at a time do not lose each other's key. */
static void test_side_by_side(void **state)
{
    (void)state;
    enum { N = 16 };
    pid_t pids[N];

    for (int i = 0; i < N; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            char name[20], secret[SECRET_TEXT + 1];
            struct key k = {.name = name, .project = (char[]){"p"}, .enabled = true};
            struct buf line = {0};
            struct fault f = {0};
            snprintf(name, sizeof name, "key-%d", i);
            enum err e = key_create(keys, &k, STR(""), false, secret, &line, &f);
            buf_free(&line);
            _exit(e == E_OK ? 0 : 1);
        }
    }
    for (int i = 0; i < N; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    struct keyring *r = load();
    assert_int_equal(keyring_count(r), N);
    keyring_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_create, forget_keys),
        cmocka_unit_test_teardown(test_usage, forget_keys),
        cmocka_unit_test_teardown(test_bad_names, forget_keys),
        cmocka_unit_test_teardown(test_print, forget_keys),
        cmocka_unit_test_teardown(test_import, forget_keys),
        cmocka_unit_test_teardown(test_list_and_revoke, forget_keys),
        cmocka_unit_test_teardown(test_hash, forget_keys),
        cmocka_unit_test_teardown(test_spoiled_file_stays, forget_keys),
        cmocka_unit_test_teardown(test_link_stays, forget_keys),
        cmocka_unit_test_teardown(test_side_by_side, forget_keys),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
