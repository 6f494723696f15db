"""One running gateway: its folder, keys, process, log and metrics, and the two ways to talk to it (http.client and raw sockets)."""

import base64
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.abspath(os.environ.get("FLAMEGATE_BIN") or os.environ.get("FLAMEGATE") or os.path.join(ROOT, "build", "flamegate"))
SANITIZED = "address" in BINARY or "thread" in BINARY
PUSH = "/push.v1.PusherService/Push"
PROTO = {"Content-Type": "application/proto"}
JSON = {"Content-Type": "application/json"}

CONF = """\
listen: 127.0.0.1:0
admin: 127.0.0.1:0
data_dir: {dir}/data
keys_file: {dir}/keys.yaml
hash_key_file: {dir}/data/hash.key
drain_delay: 0s
"""


def flamegate(*args, **kw):
    """Runs a subcommand to its end; the finished process, text."""
    kw.setdefault("timeout", 20)
    env = dict(os.environ, **kw.pop("env", {}))
    return subprocess.run([BINARY, *map(str, args)], capture_output=True, text=True, env=env, **kw)


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()}


def bearer(token):
    return {"Authorization": "Bearer " + token}


class Reply:
    """Status, headers (names in lower case) and body of an answer."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def __repr__(self):
        return "<%d %s>" % (self.status, self.text[:300])


class Wire:
    """A raw connection: what is sent is exactly what is said, and answers are read one at a time."""

    def __init__(self, address, timeout=15):
        self.socket = socket.create_connection(address, timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.socket.sendall(data)
        return self

    def line(self):
        while b"\r\n" not in self.buffer:
            if not self._more():
                raise EOFError("closed after %r" % self.buffer)
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _more(self):
        data = self.socket.recv(1 << 16)
        self.buffer += data
        return bool(data)

    def exactly(self, n):
        while len(self.buffer) < n:
            if not self._more():
                raise EOFError("closed %d bytes early" % (n - len(self.buffer)))
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def head(self):
        """(status, headers) of the next answer, interim ones included."""
        status = self.line()
        assert status.startswith(b"HTTP/1."), status
        headers = {}
        while True:
            line = self.line()
            if not line:
                return int(status.split()[1]), headers
            name, value = line.decode("latin-1").split(":", 1)
            headers[name.lower()] = value.strip()

    def reply(self, interim=None):
        status, headers = self.head()
        while 100 <= status < 200:
            if interim is not None:
                interim.append(status)
            status, headers = self.head()
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while True:
                size = int(self.line().split(b";")[0], 16)
                if not size:
                    self.line()
                    break
                body += self.exactly(size)
                self.line()
        else:
            body = self.exactly(int(headers.get("content-length", 0)))
        return Reply(status, headers, body)

    def closed(self, within=5):
        """Whether the other side ends the connection, with nothing more to read."""
        self.socket.settimeout(within)
        try:
            return not self.buffer and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def close(self):
        self.socket.close()


class Gate:
    """Everything about one gateway under test. start() and stop() may be called many times over the same data."""

    def __init__(self, folder, conf="", keys=True, samples=None, shares=None):
        self.dir = str(folder)
        self.samples, self.shares = samples, shares  # addresses of other stores than the embedded one
        self.conf_file = os.path.join(self.dir, "conf.yaml")
        self.keys_file = os.path.join(self.dir, "keys.yaml")
        self.port_file = os.path.join(self.dir, "ports")
        self.log_file = os.path.join(self.dir, "log")
        self.process = None
        self.wrapper = []  # a command to run the gateway under
        self.errors_expected = []  # regular expressions of log lines at level error that a test provokes
        self.configure(conf)
        if keys:
            self.key, self.reader, self.admin = (self.create(t) for t in ("server", "reader", "admin"))

    def configure(self, conf=""):
        """Base settings, those of `conf` instead where both name one."""
        named = set(re.findall(r"^(\w+):", conf, re.M))
        base = CONF.format(dir=self.dir) + "".join('%s: "%s"\n' % (k, v) for k, v in (("samples", self.samples), ("shares", self.shares)) if v)
        with open(self.conf_file, "w") as f:
            f.write("".join(line for line in base.splitlines(True) if line.split(":")[0] not in named) + conf)

    def run(self, *args, **kw):
        return flamegate("--config", self.conf_file, *args, **kw)

    def create(self, kind, name=None, *more):
        done = self.run("key", "create", "--name", name or kind, "--type", kind, *more)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    # --- process ---
    def start(self, ready=10):
        if os.path.exists(self.port_file):
            os.unlink(self.port_file)
        self.log_start = os.path.getsize(self.log_file) if os.path.exists(self.log_file) else 0
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen([*self.wrapper, BINARY, "--config", self.conf_file, "serve", "--port-file", self.port_file],
                                            stdout=log, stderr=log, cwd=self.dir)
        until = time.monotonic() + ready
        while True:
            lines = open(self.port_file).read().split("\n") if os.path.exists(self.port_file) else []
            if len(lines) >= 2 and lines[0] and (lines[1] or len(lines) > 2):
                break
            assert self.process.poll() is None, "gone at start: " + self.log()
            assert time.monotonic() < until, "no port file: " + self.log()
            time.sleep(0.005)
        self.address = self._address(lines[0])
        self.admin_address = self._address(lines[1]) if lines[1] else None
        return self

    @staticmethod
    def _address(line):
        host, _, port = line.strip().rpartition(":")
        return (host or "127.0.0.1", int(port))

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self, within=15):
        """SIGTERM, and what must then be true of every gateway."""
        balance = None
        if self.process.poll() is None and self.admin_address:
            balance = self.settled()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("did not end on SIGTERM: " + self.log()[-2000:])
        finally:
            self.process = None
        assert code == 0, "exit code %d: %s" % (code, self.log()[-3000:])
        assert not balance, "counters do not balance: %s" % balance
        bad = [line for line in self.log().splitlines() if re.search(r'level="?error|"level":\s*"error"', line)]
        bad = [line for line in bad if not any(re.search(e, line) for e in self.errors_expected)]
        assert not bad, "logged as errors: %s" % bad[:5]
        assert "Sanitizer" not in self.log() and "runtime error:" not in self.log(), self.log()[-4000:]

    def log(self, since=0):
        with open(self.log_file, errors="replace") as f:
            f.seek(since)
            return f.read()

    # --- what it says of itself ---
    def metrics(self):
        """'name{labels}' -> value, one request on the admin listener."""
        c = http.client.HTTPConnection(*self.admin_address, timeout=10)
        c.request("GET", "/metrics")
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        assert r.status == 200, text
        out = {}
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                out[name] = float(value)
        return out

    def count(self, name, metrics=None, **labels):
        """The sum of a metric over the rows that carry these labels."""
        total = 0
        for key, value in (metrics or self.metrics()).items():
            if key.split("{")[0] == name and all('%s="%s"' % (k, v) in key for k, v in labels.items()):
                total += value
        return total

    def unbalanced(self):
        m = self.metrics()
        c = lambda name, **labels: self.count("flamegate_" + name, m, **labels)
        pairs = {
            "profiles": (c("profiles_received_total"), c("profiles_accepted_total") + c("profiles_refused_total") + c("profiles_failed_total")),
            "connections": (c("connections_opened_total"), c("connections_closed_total") + c("connections")),
            "requests": (c("requests_received_total"), c("requests_total") + c("requests_cut_total") + c("inflight_requests")),
        }
        for name in ("profiles_received_total", "connections_opened_total", "requests_received_total"):
            assert any(k.startswith("flamegate_" + name) for k in m), "no metric flamegate_%s" % name
        return {k: v for k, v in pairs.items() if v[0] != v[1]}

    def settled(self, within=5):
        """Waits for the counters to balance; what does not, else nothing. (Closing a connection takes a turn of the loop.)"""
        until = time.monotonic() + within
        while True:
            wrong = self.unbalanced()
            if not wrong or time.monotonic() > until:
                return wrong
            time.sleep(0.05)

    def peak_memory(self):
        """Peak resident bytes."""
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(r"VmHWM:\s+(\d+) kB", f.read()).group(1)) << 10

    def assert_memory(self, limit=2 * (256 << 20)):
        if not SANITIZED:  # shadow memory and quarantine are not the product's
            assert self.peak_memory() < limit, "peak %.0f MiB" % (self.peak_memory() / (1 << 20))

    # --- talking ---
    def wire(self, timeout=15):
        return Wire(self.address, timeout)

    def request(self, method, target, body=None, headers=None, timeout=30):
        c = http.client.HTTPConnection(*self.address, timeout=timeout)
        try:
            c.putrequest(method, target, skip_accept_encoding=True)
            headers = dict(headers or {})
            if body is not None and not any(k.lower() in ("content-length", "transfer-encoding") for k in headers):
                headers["Content-Length"] = str(len(body))
            for k, v in headers.items():
                c.putheader(k, v)
            c.endheaders()
            if body:
                try:
                    c.send(body)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # refused before its end; the answer is there to read
            r = c.getresponse()
            return Reply(r.status, {k.lower(): v for k, v in r.getheaders()}, r.read())
        finally:
            c.close()

    def send(self, target, body, headers=None, key=None, **kw):
        """POST with the server key."""
        return self.request("POST", target, body, {**basic("any", key or self.key), **(headers or {})}, **kw)

    def ingest(self, body, name="shop", format="pprof", headers=None, key=None, prefix="", **params):
        params = {"name": name, **({"format": format} if format else {}), **params}
        return self.send(prefix + "/ingest?" + urllib.parse.urlencode(params), body, headers, key)

    def push(self, body, headers=None, key=None, prefix=""):
        return self.send(prefix + PUSH, body, {**PROTO, **(headers or {})}, key)

    def read(self, path, headers=None, key=None, **params):
        """GET under /api/v1 with the reader key; the raw reply."""
        params = {k.rstrip("_"): v for k, v in params.items() if v is not None}
        query = "?" + urllib.parse.urlencode(params) if params else ""
        return self.request("GET", "/api/v1/" + path + query, None, {**basic("any", key or self.reader), **(headers or {})})

    def get(self, path, **params):
        """The JSON of a good answer."""
        r = self.read(path, **params)
        assert r.status == 200, (path, params, r)
        assert r.headers["content-type"] == "application/json", r.headers
        return r.json()

    def rows(self, **params):
        """(function, file) -> [self, total] of everything selected, and the answer itself."""
        answer = self.get("functions", limit=1_000_000, **params)
        rows = {}
        for f in answer["functions"]:
            row = rows.setdefault((f["function"], f["file"]), [0, 0])
            row[0] += f["self"]
            row[1] += f["total"]
        return rows, answer

    def original(self, ident):
        """The bytes as they came; None from a store that keeps none and says so."""
        reply = self.read("profiles/%s/original" % ident)
        if self.samples and reply.status == 404:
            assert reply.json()["message"].startswith("off:"), reply
            return None
        assert reply.status == 200, reply
        return reply.body

    def profiles(self, **params):
        """Every profile of the selection, over all pages."""
        out, cursor = [], None
        while True:
            page = self.get("profiles", **params, **({"cursor": cursor} if cursor else {}))
            out += page["profiles"]
            cursor = page.get("next")
            if not cursor:
                return out

    def until(self, what, wanted, within=5):
        """Polls until what() == wanted, for things that follow an answer (marks); then asserts it."""
        end = time.monotonic() + within
        while True:
            got = what()
            if got == wanted or time.monotonic() > end:
                assert got == wanted, "%r is not %r" % (got, wanted)
                return got
            time.sleep(0.03)
