"""A PostgreSQL of the tests' own: private folder, free port, a database for every gateway. With FLAMEGATE_SAMPLES=postgres in the
environment every gateway that names no store of its own keeps its samples there."""

import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile

OVER_POSTGRES = os.environ.get("FLAMEGATE_SAMPLES") == "postgres"
PROGRAMS = "/usr/lib/postgresql/15/bin"
# Durable as it comes: tests stop it with -m immediate. Small, because it shares the machine with what is tested.
SETTINGS = """\
listen_addresses = '127.0.0.1'
port = %d
unix_socket_directories = '%s'
max_connections = 60
shared_buffers = 32MB
max_wal_size = 128MB
autovacuum_naptime = 10min
log_min_messages = warning
"""


class Postgres:
    """start() and stop() as often as a test likes; close() leaves nothing."""

    more = ""  # settings

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="flamegate-pg-")
        self.data = os.path.join(self.dir, "data")
        self.port, self.made, self.timeline = 0, 0, 1
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.dir, user.pw_uid, user.pw_gid)
        self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

    def _run(self, program, *args, ok=True):
        """As user postgres where we are root: the server refuses to be."""
        who = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        with open(os.path.join(self.dir, "said"), "w+") as said:  # no pipe: the server would keep it open
            done = subprocess.run([*who, os.path.join(PROGRAMS, program), *args], stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self.dir, timeout=60)
            said.seek(0)
            text = said.read()
        assert done.returncode == 0 or not ok, (program, args, text)
        return done.returncode

    def start(self):
        """On the port that it had, or on a free one at first."""
        for _ in range(1 if self.port else 5):
            port = self.port or self._free_port()
            with open(os.path.join(self.data, "postgresql.auto.conf"), "w") as f:
                f.write(SETTINGS % (port, self.dir) + self.more)
            if self._run("pg_ctl", "-D", self.data, "-l", os.path.join(self.dir, "log"), "-w", "-t", "30", "start", ok=False) == 0:
                self.port = port
                return self
        with open(os.path.join(self.dir, "log")) as f:
            raise AssertionError("PostgreSQL does not start: " + f.read()[-2000:])

    @staticmethod
    def _free_port():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def stop(self, mode="immediate"):
        self._run("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop")

    def running(self):
        return self._run("pg_ctl", "-D", self.data, "status", ok=False) == 0

    def signal(self, number):
        """To every process of the server: SIGSTOP, SIGCONT."""
        with open(os.path.join(self.data, "postmaster.pid")) as f:
            main = int(f.readline())
        with open("/proc/%d/task/%d/children" % (main, main)) as f:
            for pid in [main, *map(int, f.read().split())]:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass  # a connection's process that has just ended

    def copy(self):
        """A standby as it is now: what comes later it will lack. The server stops for a moment."""
        self.stop("fast")
        subprocess.run(["cp", "-a", self.data, self.data + ".standby"], check=True, timeout=60)
        return self.start()

    def fail_over(self):
        """The server is lost, and its copy takes over, on a timeline of its own, where it was."""
        self.stop("immediate")
        os.rename(self.data, self.data + ".lost")
        os.rename(self.data + ".standby", self.data)
        self.timeline += 1
        self._run("pg_resetwal", "-f", "-l", "%08X%08X%08X" % (self.timeline, self.timeline, 1), "-D", self.data)
        shutil.rmtree(self.data + ".lost")
        return self.start()

    def close(self):
        if self.running():
            self.stop()
        shutil.rmtree(self.dir)

    def ask(self, sql, database="postgres"):
        """The answer's rows, columns parted by '|'."""
        done = subprocess.run([os.path.join(PROGRAMS, "psql"), "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", self.dir, "-p", str(self.port),
                               "-U", "postgres", "-d", database, "-c", sql], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (sql, done.stderr)
        return done.stdout.splitlines()

    def standby(self):
        """A copy that follows this one, asynchronously. promote() makes it a server of its own."""
        return Standby(self)

    def create(self):
        """The address of a new database."""
        self.made += 1
        name = "gate%d" % self.made
        self.ask("CREATE DATABASE " + name)
        return "postgres://postgres@127.0.0.1:%d/%s" % (self.port, name)

    def drop(self, address):
        self.ask("DROP DATABASE IF EXISTS %s WITH (FORCE)" % re.search(r"\w+$", address).group())


class Standby(Postgres):
    def __init__(self, primary):
        self.dir = tempfile.mkdtemp(prefix="flamegate-pg-")
        self.data = os.path.join(self.dir, "data")
        self.port, self.made = 0, primary.made
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.dir, user.pw_uid, user.pw_gid)
        follows = "host=127.0.0.1 port=%d user=postgres" % primary.port
        self._run("pg_basebackup", "-D", self.data, "-d", follows, "-X", "stream", "-c", "fast", "--no-sync")
        self.more = "primary_conninfo = '%s'\n" % follows
        open(os.path.join(self.data, "standby.signal"), "w").close()
        if os.getuid() == 0:
            os.chown(os.path.join(self.data, "standby.signal"), user.pw_uid, user.pw_gid)

    def promote(self):
        self._run("pg_ctl", "-D", self.data, "-w", "promote")
