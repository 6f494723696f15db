"""A Redis of the tests' own: private folder, free port, a database number for every gateway that asks. With FLAMEGATE_SHARES=redis in the
environment every gateway that names no share store of its own keeps its function shares there."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

OVER_REDIS = os.environ.get("FLAMEGATE_SHARES") == "redis"
USER, PASSWORD = "gate", "a made-up pass/word"
DATABASES = 1000


class Redis:
    """start() and kill() as often as a test likes; close() leaves nothing. Its default user may do nothing."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="flamegate-redis-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process, self.made = None, 0

    def start(self):
        with open(os.path.join(self.dir, "conf"), "w") as f:
            f.write('port %d\nbind 127.0.0.1\ndir %s\nsave ""\nappendonly no\nmaxmemory-policy noeviction\ndatabases %d\nunixsocket %s/socket\n'
                    "user default off\nuser %s on \">%s\" ~* +@all\n" % (self.port, self.dir, DATABASES, self.dir, USER, PASSWORD))
        self.process = subprocess.Popen(["redis-server", os.path.join(self.dir, "conf")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            try:
                assert self.ask("PING") == "PONG"
                return self
            except OSError:
                time.sleep(0.02)
        raise AssertionError("Redis does not start")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stand_still(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.dir)

    def create(self):
        """The address of an empty database."""
        self.made = self.made % (DATABASES - 1) + 1
        self.ask("FLUSHDB", db=self.made)
        return "redis://%s:%s@127.0.0.1:%d/%d" % (USER, PASSWORD.replace("/", "%2F").replace(" ", "%20"), self.port, self.made)

    def ask(self, *words, db=0):
        """One command; its answer as text, number, list or None."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as s:
            stream = s.makefile("rb")

            def one(*words):
                words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
                s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
                return read()

            def read():
                line = stream.readline()
                if not line:
                    raise OSError("closed")
                kind, rest = line[:1], line[1:-2]
                if kind == b"$":
                    return None if rest == b"-1" else stream.read(int(rest) + 2)[:-2]
                if kind == b"*":
                    return [read() for _ in range(int(rest))]
                if kind == b":":
                    return int(rest)
                if kind == b"-":
                    raise AssertionError(rest.decode())
                return rest.decode()

            one("AUTH", USER, PASSWORD)
            if db:
                one("SELECT", db)
            return one(*words)
