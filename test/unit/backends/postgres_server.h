/*
 * A real PostgreSQL of the test's own, and a PgBouncer before it: a temporary folder, a socket in it and a free port.
 * initdb refuses root, so where the test is root the servers run as the package's user. They end with the test.
 * Behind conformance.c: each case may have a database of its own, in which its world lives.
 */
#ifndef TEST_UNIT_BACKENDS_POSTGRES_SERVER_H
#define TEST_UNIT_BACKENDS_POSTGRES_SERVER_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <glob.h>

#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* grp.h has a struct group of its own. */
extern int setgroups(size_t n, const gid_t *list);

static struct pg_server {
    char dir[64], bin[128];
    int port, bouncer_port;
    pid_t postmaster, bouncer;
    uid_t uid;
    gid_t gid;
} server;

static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    close(fd);
    return ntohs(a.sin_port);
}

/* A child as the server's user, which ends with us. Its output goes into the log. */
static pid_t spawn(char *const argv[])
{
    char log[96];
    pid_t pid;

    snprintf(log, sizeof log, "%s/log", server.dir);
    pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return pid;
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);

    dup2(fd, 1);
    dup2(fd, 2);
    for (fd = 3; fd < 256; fd++)
        close(fd);
    if (geteuid() == 0 && (setgroups(0, NULL) || setgid(server.gid) || setuid(server.uid)))
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (chdir(server.dir))
        _exit(126);
    execv(argv[0], argv);
    _exit(127);
}

static void run_as_server(char *const argv[])
{
    int status = 0;

    assert_int_equal(waitpid(spawn(argv), &status, 0) > 0, 1);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("%s failed (see %s/log)", argv[0], server.dir);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", server.dir, name);
    f = fopen(path, "a");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    if (geteuid() == 0)
        assert_int_equal(chown(path, server.uid, server.gid), 0);
}

static void wait_for_port(int port)
{
    char info[160];

    snprintf(info, sizeof info, "host=127.0.0.1 port=%d user=postgres dbname=postgres connect_timeout=2", port);
    for (int i = 0; i < 200; i++) {
        if (PQping(info) == PQPING_OK)
            return;
        usleep(50000);
    }
    fail_msg("nothing answers on port %d (see %s/log)", port, server.dir);
}

static void server_start(void)
{
    char program[160], data[96];
    char *argv[] = {program, "-D", data, NULL};

    snprintf(program, sizeof program, "%s/postgres", server.bin);
    snprintf(data, sizeof data, "%s/data", server.dir);
    server.postmaster = spawn(argv);
    wait_for_port(server.port);
}

static void server_stop(int signal_number)
{
    kill(server.postmaster, signal_number);
    waitpid(server.postmaster, NULL, 0);
    server.postmaster = 0;
}

/* One value of one statement on a database; NULL is "". */
static const char *server_ask(const char *database, const char *sql)
{
    static char value[256];
    char info[160];
    PGconn *c;
    PGresult *r;

    snprintf(info, sizeof info, "host=%s port=%d user=postgres dbname=%s", server.dir, server.port, database);
    c = PQconnectdb(info);
    r = PQexec(c, sql);
    if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(c));
    snprintf(value, sizeof value, "%s", PQntuples(r) ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    PQfinish(c);
    return value;
}

static void server_make(void)
{
    char initdb[160], data[96], conf[512];
    char *argv[] = {initdb, "-D", data, "-U", "postgres", "-A", "trust", "-N", "--no-locale", "-E", "UTF8", NULL};
    const struct passwd *user = getpwnam("postgres");
    glob_t found;

    if (!user)
        user = getpwnam("nobody");
    server.uid = user ? user->pw_uid : 65534;
    server.gid = user ? user->pw_gid : 65534;
    assert_int_equal(glob("/usr/lib/postgresql/*/bin", 0, NULL, &found), 0);
    snprintf(server.bin, sizeof server.bin, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    snprintf(server.dir, sizeof server.dir, "/tmp/flamegate-pg-XXXXXX");
    assert_non_null(mkdtemp(server.dir));
    assert_int_equal(chmod(server.dir, 0755), 0);
    if (geteuid() == 0)
        assert_int_equal(chown(server.dir, server.uid, server.gid), 0);
    snprintf(initdb, sizeof initdb, "%s/initdb", server.bin);
    snprintf(data, sizeof data, "%s/data", server.dir);
    run_as_server(argv);
    server.port = free_port();
    snprintf(conf, sizeof conf,
             "port = %d\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '%s'\nmax_connections = 60\n"
             "shared_buffers = 32MB\nfsync = %s\nautovacuum = off\nmax_wal_size = 256MB\n",
             server.port, server.dir, getenv("PG_FSYNC") ? "on" : "off");
    write_file("data/postgresql.conf", conf);
    server_start();
}

static inline void bouncer_start(void)
{
    char conf[512], path[96];
    char *argv[] = {"/usr/sbin/pgbouncer", path, NULL};

    server.bouncer_port = free_port();
    snprintf(
        conf, sizeof conf,
        "[databases]\n* = host=%s port=%d user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"
        "unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 100\n",
        server.dir, server.port, server.bouncer_port);
    write_file("bouncer.ini", conf);
    snprintf(path, sizeof path, "%s/bouncer.ini", server.dir);
    server.bouncer = spawn(argv);
    wait_for_port(server.bouncer_port);
}

static void server_remove(void)
{
    char *argv[] = {"/bin/rm", "-rf", server.dir, NULL};

    if (server.bouncer) {
        kill(server.bouncer, SIGKILL);
        waitpid(server.bouncer, NULL, 0);
    }
    if (server.postmaster)
        server_stop(SIGQUIT);
    run_as_server(argv); /* the folder itself is in /tmp, which is sticky */
    rmdir(server.dir);
}

static char address[256], database[32];

static void use_database(int port, const char *host)
{
    static int number;

    snprintf(database, sizeof database, "t%d", ++number);
    char sql[96];

    snprintf(sql, sizeof sql, "CREATE DATABASE %s TEMPLATE template0", database);
    server_ask("postgres", sql);
    if (host)
        snprintf(address, sizeof address, "postgresql://postgres@%s:%d/%s", host, port, database);
    else
        snprintf(address, sizeof address, "postgres://postgres@/%s?host=%s&port=%d", database, server.dir, server.port);
    conformance_address = address;
}

/* Every case has a database of its own. */
static int setup(void **state)
{
    use_database(0, NULL);
    return world_setup(state);
}

static int teardown(void **state)
{
    return world_teardown(state);
}

static inline const char *ask(const char *sql)
{
    return server_ask(database, sql);
}

/* Puts until all of it is stored; how often the store asked to come again. */
static inline int put_until_stored(struct world *w, struct group *g)
{
    for (int again = 0; again < 100; again++) {
        bool all = true;

        put_group(w, g);
        for (uint16_t i = 0; i < g->n; i++) {
            assert_true(g->results[i] == PUT_STORED || g->results[i] == PUT_AGAIN);
            all = all && g->results[i] == PUT_STORED;
        }
        if (all)
            return again;
        usleep(50000);
    }
    fail_msg("never stored");
    return 0;
}

#endif
